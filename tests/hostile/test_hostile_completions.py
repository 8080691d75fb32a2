"""What a model may write, through `ahalab score`: one row never spoils another."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from command import Call

COUNTDOWN = {"numbers": [3, 5, 2], "target": 7}
# Response, gold, task, asked format, and the outcome that each reading may have.
HOSTILE = [
    ("<answer>3.5*2</answer>", COUNTDOWN, "countdown", "answer_tag", {"unparsed", "wrong"}),
    ("<answer>99**98**4</answer>", COUNTDOWN, "countdown", "answer_tag", {"unparsed", "wrong"}),
    ("<answer>7//2</answer>", COUNTDOWN, "countdown", "answer_tag", {"unparsed", "wrong"}),
    (f"<answer>{'(' * 300}3{')' * 300}</answer>", COUNTDOWN, "countdown", "answer_tag",
     {"unparsed", "wrong"}),
    (f"<answer>{'7' * 1_000_000}</answer>", "7", "gsm8k", "answer_tag",
     {"unparsed", "wrong", "error"}),
    ("<answer>__import__('os').abort() or 7</answer>", "8", "gsm8k", "answer_tag",
     {"unparsed", "wrong"}),
    (r"\boxed{10^{10^8}}", "x+1", "math", "boxed", {"error"}),
    (r"\boxed{5^{(5^{(5^{(5^5)})}-4)}}", "x+1", "math", "boxed", {"error"}),
    ("\x00\u202e\u2028\u0085 #### 7", "8", "gsm8k", "hashes", {"wrong"}),
]  # fmt: skip


def test_hostile_responses_get_their_outcome_and_sound_rows_between_keep_theirs(
    tmp_path: Path, call: Call
) -> None:
    sound = {"response": "#### 7", "gold": "7"}
    rows = []
    for response, gold, task, asked, _ in HOSTILE:
        row = {"response": response, "gold": gold, "task": task, "answer_format": asked}
        rows += [{**row, "time_limit_s": 1}, sound]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    began = time.monotonic()
    said = call("score", file, "--format", "json")
    assert (said.code, said.err) == (0, "")
    assert time.monotonic() - began < 30
    found = [json.loads(line) for line in said.out.splitlines()]
    for hostile, score in zip(HOSTILE, found[::2], strict=True):
        assert {score["strict"], score["lenient"]} <= hostile[4], (hostile[0][:60], score)
        if score["strict"] == "error":  # said to be out of bounds or of time, never just wrong
            assert score["status"].startswith("error: ")
    assert {row["strict"] for row in found[1::2]} == {"correct"}


@pytest.mark.parametrize("response", ["\x1b]52;c;aGk=\x07 7", "\x9b31m 7", "[/answer] [bold]7"])
def test_what_a_terminal_would_obey_is_shown_and_not_sent(call: Call, response: str) -> None:
    said = call("score", f"{response} #### 7", "--gold", "7")
    assert said.code == 0
    assert not {"\x1b", "\x07", "\x9b"} & set(said.out)
    assert "[/answer]" in said.out or "/answer" not in response


def test_an_error_that_quotes_thousands_of_digits_is_shortened_in_the_middle(
    tmp_path: Path, call: Call
) -> None:
    file = tmp_path / "study.yaml"
    file.write_text(f"name: {'9' * 4_000}x\nmodle: 1\n{'k' * 9_000}: 2\n")
    said = call("plan", file)
    assert said.code == 2
    assert said.line.startswith(f"ahalab: {file}:")
    assert len(said.line) < 2_100
