"""`ahalab score`: one response, a file, a pipe; the JSON that other programs rely on."""

from __future__ import annotations

import io
import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from command import Call, run

KEYS = ["id", "strict", "lenient", "extracted", "rule", "status"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "rows.jsonl"


def write(file: Path, *rows: dict[str, Any]) -> Path:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return file


def scored(call: Call, file: Path, *rows: dict[str, Any]) -> list[dict[str, Any]]:
    said = call("score", write(file, *rows), "--format", "json")
    assert (said.code, said.err) == (0, "")
    return [json.loads(line) for line in said.out.splitlines()]


def test_one_response_is_scored_with_the_span_that_was_taken(call: Call) -> None:
    said = call("score", "2 + 5 = 7, so\n#### 7", "--gold", "7")
    assert (said.code, said.err) == (0, "")
    first, second = said.out.splitlines()
    assert first == "strict correct, lenient correct (ok)"
    # the seven stands at character 19 of "2 + 5 = 7, so" newline "#### 7"
    assert second == "  rule hashes, characters 19 to 20: 2 + 5 = 7, so #### [7]"


def test_a_response_without_an_answer_says_that_none_was_taken(call: Call) -> None:
    said = call("score", "I do not know.", "--gold", "7")
    assert said.out.splitlines()[0].startswith("strict unparsed, lenient unparsed")
    assert said.out.splitlines()[1].endswith("no answer taken")


def test_json_is_one_compact_object_a_row_in_order(call: Call, file: Path) -> None:
    write(
        file,
        {"id": "b", "response": "#### 7", "gold": "7"},
        {"id": 2, "response": "The answer is 7.", "gold": "7"},
        {"response": "#### 8", "gold": 7},
    )
    said = call("score", file, "--format", "json")
    lines = said.out.splitlines()
    assert lines[0] == (
        '{"id":"b","strict":"correct","lenient":"correct","extracted":"7","rule":"hashes",'
        '"status":"ok"}'
    )
    rows = [json.loads(line) for line in lines]
    assert [list(row) for row in rows] == [KEYS] * 3
    assert [row["id"] for row in rows] == ["b", 2, None]
    assert [(r["strict"], r["lenient"]) for r in rows] == [
        ("correct", "correct"), ("unparsed", "correct"), ("wrong", "wrong"),
    ]  # fmt: skip


@pytest.mark.parametrize("finish", ["stop", "eos", None])
def test_a_finished_response_may_say_so_as_other_tools_do(
    call: Call, file: Path, finish: str | None
) -> None:
    row = {"response": "no number here", "gold": "7", "finish_reason": finish}
    assert scored(call, file, row)[0]["lenient"] == "unparsed"


def test_a_cut_response_without_an_answer_is_truncated(call: Call, file: Path) -> None:
    row = {"response": "First we take", "gold": "7", "finish_reason": "length"}
    assert scored(call, file, row)[0]["strict"] == "truncated"


def test_a_null_in_a_row_means_that_it_is_not_given(call: Call, file: Path) -> None:
    row = {"response": "#### 7", "gold": "7", "task": None, "answer_format": None, "prompt": None}
    assert scored(call, file, row)[0]["strict"] == "correct"


def test_task_and_format_come_from_the_row_before_the_options(call: Call, file: Path) -> None:
    write(file, {"response": r"\boxed{7}", "gold": "7"},
          {"response": "#### 7", "gold": "7", "answer_format": "hashes"})  # fmt: skip
    said = call("score", file, "--answer-format", "boxed", "--format", "json")
    assert [json.loads(x)["strict"] for x in said.out.splitlines()] == ["correct", "correct"]


def test_countdown_takes_a_gold_that_is_an_object(call: Call, file: Path) -> None:
    gold = {"numbers": [1, 2, 3], "target": 7}
    row = {"response": "<answer>1 + 2 * 3</answer>", "gold": gold, "task": "countdown",
           "answer_format": "answer_tag"}  # fmt: skip
    assert scored(call, file, row)[0]["strict"] == "correct"


def test_a_gold_that_cannot_be_read_is_an_error_row_and_not_a_wrong_answer(
    call: Call, file: Path
) -> None:
    found = scored(call, file, {"response": "#### 7", "gold": "seven-ish"},
                   {"response": "#### 7", "gold": None})  # fmt: skip
    assert [(r["strict"], r["status"]) for r in found] == [("error", "error: gold")] * 2


def test_empty_lines_are_passed_over_and_still_counted(call: Call, file: Path) -> None:
    file.write_text('\n{"response": "#### 7", "gold": "7"}\n\n{"response": 5}\n', "utf-8")
    said = call("score", file)
    assert said.code == 2
    assert said.line.startswith(f"ahalab: {file}:4: expected an object with `response` and `gold`")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b'{"response": "a", "gold"', "expected a JSON object, found"),
        (b'["response", "gold"]', "expected an object with `response` and `gold`"),
        (b'{"response": "a"}', "expected an object with `response` and `gold`"),
        (b'{"response": 7, "gold": "7"}', "expected text in `response`, found int"),
        (b'{"response": null, "gold": "7"}', "expected text in `response`, found NoneType"),
        (b'{"response": "\xff", "gold": "7"}', "expected a JSON object, found"),
        (b"[" * 100_000, "expected a JSON object, found"),
        (b'{"response": "a", "gold": "7", "finish_reason": "tool"}',
         "expected finish_reason eos, stop, length, content_filter, tool_calls, found 'tool'"),
        (b'{"response": "a", "gold": "7", "finish_reason": ["stop"]}', "expected finish_reason"),
        (b'{"response": "a", "gold": "7", "task": 5}', "expected text in `task`, found 5"),
        (b'{"response": "a", "gold": "7", "prompt": []}', "expected text in `prompt`, found []"),
        (b'{"response": "a", "gold": "7", "task": "chess"}', "task: expected one of gsm8k"),
        (b'{"response": "a", "gold": "7", "answer_format": "xml"}', "xml"),
    ],
)  # fmt: skip
def test_a_line_that_cannot_be_scored_is_named(
    call: Call, file: Path, line: bytes, told: str
) -> None:
    file.write_bytes(b'{"response": "#### 7", "gold": "7"}\n' + line + b"\n")
    said = call("score", file)
    assert said.code == 2
    assert said.line.startswith(f"ahalab: {file}:2: ")
    assert told in said.line


def test_a_record_is_not_broken_at_a_line_separator_within_it(call: Call, file: Path) -> None:
    file.write_bytes('{"response": "a\u2028b\u0085 #### 7", "gold": "7"}\n'.encode())
    assert call("score", file, "--format", "json").out.count("\n") == 1


def test_a_file_that_is_not_there_is_told(call: Call, tmp_path: Path) -> None:
    for path in (tmp_path / "none.jsonl", tmp_path):
        said = call("score", path)
        assert said.code == 2
        assert said.line.startswith(f"ahalab: {path}: expected a JSONL file, found: ")


HOSTILE = "\x1b[31mred\x1b[0m \x1b]52;c;aGk=\x07 \u202eabc\u2066 \x00 \x9b1m [bold]x[/bold] #### 7"


def test_hostile_text_is_shown_escaped(call: Call, file: Path) -> None:
    said = call("score", write(file, {"id": HOSTILE, "response": HOSTILE, "gold": "7"}))
    assert said.code == 0
    assert not set(said.out) & set("\x1b\x07\u202e\u2066\x00\x9b")
    assert "^[[31mred" in said.out
    assert "\\u202eabc" in said.out
    assert "[bold]x[/bold]" in said.out  # as text: no markup is obeyed


def test_half_a_character_does_not_end_the_command(call: Call, file: Path) -> None:
    file.write_bytes(b'{"id": "\\ud800", "response": "\\ud800 #### 7", "gold": "7"}\n')
    said = call("score", file)
    assert (said.code, "\\ud800" in said.out) == (0, True)
    assert json.loads(call("score", file, "--format", "json").out)["strict"] == "correct"


def test_standard_input_holds_rows_or_with_a_gold_one_response() -> None:
    said = run("score", "-", "--format", "json", stdin='{"response": "#### 7", "gold": "7"}\n')
    assert (said.code, json.loads(said.out)["strict"]) == (0, "correct")
    said = run("score", "-", "--gold", "7", stdin="so it is\n#### 7\n")
    assert said.out.startswith("strict correct, lenient correct (ok)")
    said = run("score", "-", stdin="nonsense\n")
    assert said.code == 2
    assert said.line.startswith("ahalab: -:1: expected a JSON object")


def test_standard_input_that_is_no_text_is_told(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"#### \xff")))
    said = call("score", "-", "--gold", "7")
    assert said.code == 2
    assert said.line == "ahalab: -: expected UTF-8 text, found a bad byte at 5."


def latex(stated: str, gold: str, **more: Any) -> dict[str, Any]:
    return {"response": f"\\boxed{{{stated}}}", "gold": gold, "task": "math",
            "answer_format": "boxed", **more}  # fmt: skip


SLOW = "(x+1)^{9999}+1"  # within every bound
HOSTILE_PAIR = (r"5^{(5^{(5^{(5^5)})}-4)}", "5")


def test_mathematics_is_compared_in_a_worker_and_a_hostile_row_spoils_no_other(
    call: Call, file: Path
) -> None:
    started = time.monotonic()
    found = scored(
        call, file, latex(r"\sqrt{8}", r"2\sqrt{2}"), latex(*HOSTILE_PAIR),
        latex("10^{10^8}", "5"), latex("x^2+2x+1", "(x+1)^2"), latex(r"\sqrt{7}", r"2\sqrt{2}"),
        latex(r"\sqrt{8}", r"\frac{1}{"),
    )  # fmt: skip
    assert [(row["strict"], row["status"]) for row in found] == [
        ("correct", "ok"), ("error", "error: bounds"), ("error", "error: bounds"),
        ("correct", "ok"), ("wrong", "ok"), ("error", "error: gold"),
    ]  # fmt: skip
    assert time.monotonic() - started < 20


def test_a_row_that_needs_longer_than_its_time_is_an_error_and_the_next_is_right(
    call: Call, file: Path
) -> None:
    rows = [latex(SLOW, r"2\sqrt{2}", time_limit_s=0.5), latex(r"\sqrt{8}", r"2\sqrt{2}")]
    for order in (rows, rows[::-1]):
        found = {row["extracted"]: row for row in scored(call, file, *order)}
        assert found[SLOW]["strict"] == found[SLOW]["lenient"] == "error"
        assert found[SLOW]["status"] == "error: timeout"
        assert found[r"\sqrt{8}"]["strict"] == "correct"


@pytest.mark.parametrize("limit", [0, -1, "2", True, 1e9, [2]])
def test_a_time_limit_that_is_none_is_refused(call: Call, file: Path, limit: object) -> None:
    said = call("score", write(file, latex("1", "1", time_limit_s=limit)))
    assert said.code == 2
    assert "time_limit_s" in said.line
