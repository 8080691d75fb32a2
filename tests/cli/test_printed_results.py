"""What results look like: sentences, tables at 80 columns, JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import Call
from msgspec.structs import replace
from small_study import make_protocol, put, write_answers, write_study

from ahalab.analyze.compare import analyze
from ahalab.cli.output import harmless
from ahalab.records.base import decode_file, encode, encode_pretty
from ahalab.records.comparison import Comparison
from ahalab.records.diagnostics import Diagnostics, Trend
from ahalab.records.run import Alarm
from ahalab.store.layout import AnswerPaths, StudyPaths

MINUS = "\N{MINUS SIGN}"


def letters(right: int, flipped: int = 0) -> str:
    return "W" * flipped + "C" * right + "W" * (60 - right - flipped)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> tuple[Comparison, StudyPaths]:
    root = tmp_path_factory.mktemp("results") / "small"
    plan, paths = write_study(
        root,
        letters(30),
        {
            ("correctness", 0): letters(50), ("correctness", 1): letters(51),
            ("random", 0): letters(27, flipped=1), ("random", 1): letters(28),
        },
        unfinished=[("historical", 0), ("historical", 1)],
    )  # fmt: skip
    return analyze(plan, paths)[0], paths


def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let rich write as on a terminal of 80 columns, without colours."""
    from rich.console import Console

    from ahalab.cli import ablation_table, output

    for module in (output, ablation_table):
        monkeypatch.setattr(module, "results_console", lambda: Console(width=80, highlight=False))


def test_what_is_missing_is_told_first_and_then_the_primary_sentences(
    call: Call, study: tuple[Comparison, StudyPaths]
) -> None:
    comparison, paths = study
    lines = call("analyze", paths.root).out.splitlines()
    assert lines[0] == (
        "Missing from the plan's grid: arms/historical/seed-0, arms/historical/seed-1."
    )
    sentences = [a.sentence for a in comparison.arms if a.primary]
    assert [line for line in lines if line in sentences] == sentences
    assert "No noise floor: the base was not generated again yet." in lines


def test_more_looked_at_than_planned_stands_in_the_first_line(call: Call, tmp_path: Path) -> None:
    plan, paths = write_study(tmp_path, "CCWW", {("random", 0): "CCWC", ("random", 1): "CCWW"})
    name = "arms/random/seed-0/checkpoint-5/answers"
    other = AnswerPaths(tmp_path / f"{name}.jsonl", name)
    write_answers(plan, paths, other, "CCCC", make_protocol(plan, adapter_digest="sha256:5"))
    first = call("analyze", tmp_path).out.splitlines()[0]
    assert first.startswith(f"Looked at beyond the plan: {name}. The verdicts below are of the ")


def test_the_table_aligns_text_left_and_numbers_right(
    call: Call, study: tuple[Comparison, StudyPaths]
) -> None:
    lines = call("analyze", study[1].root).out.splitlines()
    head = next(n for n, line in enumerate(lines) if line.startswith("arm "))
    table = [line.rstrip() for line in lines[head : head + 7]]
    assert {line.index("%") for line in table[1:]} == {table[0].index("accuracy") + 7}
    assert {line.split()[0] for line in table[1:]} == {"correctness", "random"}
    assert len({len(line) for line in table}) == 1  # the last column ends in one place
    assert {line[table[0].index("against")] for line in table[1:]} == {"b", "c"}
    lost = next(line for line in table if line.startswith("random"))
    assert f"{MINUS}4.2" in lost  # 27.5 of 60 right on average, against 30
    assert "-" not in lost


def test_no_line_of_any_table_is_wrapped_at_80_columns(
    call: Call, study: tuple[Comparison, StudyPaths], monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow(monkeypatch)
    root = study[1].root
    lines = call("ablate", root).out.splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.split()[0] for line in lines[1:5]] == ["correctness"] * 2 + ["random"] * 2
    assert [line.split()[1] for line in lines[1:5]] == ["0", "1", "0", "1"]
    verdicts = call("analyze", root).out.splitlines()
    start = next(n for n, line in enumerate(verdicts) if line.startswith("arm "))
    rows = verdicts[start + 1 : start + 7]
    assert [row.split()[0] for row in rows] == ["correctness", "random", "correctness"] * 2
    assert max(map(len, verdicts)) <= 80


def test_a_long_arm_name_is_folded_and_never_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from msgspec.structs import replace

    from ahalab.cli.output import print_verdicts

    narrow(monkeypatch)
    plan, paths = write_study(tmp_path / "s", letters(30), {("random", 0): letters(31)})
    found = analyze(plan, paths)[0]
    long = "a-reward-with-a-rather-long-name-that-says-it-all"
    print_verdicts(replace(found, arms=(replace(found.arms[0], arm=long),)))
    out = capsys.readouterr().out
    table = out[out.index("\narm ") + 1 :].splitlines()[1:]
    assert "".join(line.split(" ")[0] for line in table).startswith(long)
    assert max(map(len, table)) <= 80


def test_many_cut_answers_are_told_for_both_sides_and_few_are_not() -> None:
    from ahalab.cli.output import cut_warning
    from ahalab.records.comparison import ReadingRates

    def rates(answers: str, cut: int) -> ReadingRates:
        outcomes = {"correct": 100 - cut, "truncated": cut}
        return ReadingRates(
            answers=answers, n=100, strict=outcomes, lenient=outcomes, mean_tokens=9.0
        )

    adapters = [rates("arms/a/seed-1/answers", 40), rates("arms/a/seed-2/answers", 7)]
    told = cut_warning([rates("base/answers", 3), rates("base/floor", 99), *adapters])
    assert told is not None
    assert "base 3%, adapters 7% to 40% of answers" in told
    assert cut_warning([rates("base/answers", 4), rates("arms/a/seed-1/answers", 4)]) is None
    assert cut_warning([]) is None


def test_alarms_stand_below_the_ablation(call: Call, tmp_path: Path) -> None:
    from msgspec.structs import replace

    from ahalab.records.base import decode_file
    from ahalab.records.diagnostics import Diagnostics
    from ahalab.records.run import Alarm

    _, paths = write_study(tmp_path / "s", letters(30), {("random", 0): letters(31)})
    path = paths.run("random", 0).diagnostics
    found = decode_file(path.read_bytes(), Diagnostics, str(path))
    alarms = tuple(Alarm(name=n, evidence="it did", remedy="do not") for n in ("one", "two"))
    put(path, encode_pretty(replace(found, alarms=alarms)))
    said = call("ablate", paths.root)
    assert said.out.splitlines()[-1] == "alarms of random, seed 0: one, two"
    told = call("diagnose", paths.run("random", 0).folder).out
    assert "alarm one: it did. Try: do not." in told


def test_json_is_the_record_itself(call: Call, study: tuple[Comparison, StudyPaths]) -> None:
    comparison, paths = study
    assert call("analyze", paths.root, "--format", "json").out == encode(comparison).decode() + "\n"
    ablation = json.loads(call("ablate", paths.root, "--format", "json").out)
    assert [c["seed"] for c in ablation["cells"]] == [0, 1, 0, 1]
    run = paths.run("random", 0).folder
    assert json.loads(call("diagnose", run, "--format", "json").out)["arm"] == "random"


def test_an_analysis_that_differs_from_the_sealed_one_is_told(call: Call, tmp_path: Path) -> None:
    from ahalab.records.base import digest
    from ahalab.store.manifest import write_manifest

    plan, paths = write_study(tmp_path / "s", letters(30), {("random", 0): letters(31)})
    analyze(plan, paths)
    put(paths.prompts("train"), b"")
    write_manifest(paths, digest(plan))
    told = "The analysis is not the one that was sealed."
    assert told not in call("analyze", paths.root).err
    put(paths.comparison, b"{}")
    write_manifest(paths, digest(plan))
    assert told in call("analyze", paths.root).err
    assert told in call("ablate", paths.root).err


def test_one_seed_is_told_in_the_table_too(call: Call, tmp_path: Path) -> None:
    _, paths = write_study(tmp_path / "s", letters(30), {("random", 0): letters(31)})
    row = next(x for x in call("analyze", paths.root).out.splitlines() if x.startswith("random  "))
    assert row.split()[-3:] == ["one", "seed", "-"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb", "a\nb"), ("\x1b[1m", "^[[1m"), ("\x00\x07\t", "^@^G^I"), ("\x7f", "^?"),
        ("\x9b", "\\x9b"), ("\u202e\u2066", "\\u202e\\u2066"), ("\u2028", "\\u2028"),
        ("\ud800", "\\ud800"), ("\ue000", "\\ue000"), ("\U000e0041", "\\U000e0041"),
        ("\ufe0f\u3164", "\\ufe0f\\u3164"),
        ("\uffff", "\\uffff"), ("−é漢 ok", "−é漢 ok"),
    ],
)  # fmt: skip
def test_what_a_terminal_would_obey_is_shown_instead(text: str, shown: str) -> None:
    assert harmless(text) == shown


def test_a_strangers_diagnosis_commands_no_terminal(
    call: Call, study: tuple[Comparison, StudyPaths], tmp_path: Path
) -> None:
    hostile = "\x1b]52;c;aGk=\x07 \x9b2J \u202e [red]x[/red] [/]"
    path = study[1].run("correctness", 0).diagnostics
    found = decode_file(path.read_bytes(), Diagnostics, "diagnostics.json")
    trend = Trend(first=0.25, last=0.5)
    alarm = Alarm(name="x", evidence=hostile, remedy=hostile)
    put(
        tmp_path / "diagnostics.json",
        encode_pretty(replace(found, arm=hostile, components={hostile: trend}, alarms=(alarm,))),
    )
    said = call("diagnose", tmp_path)
    assert said.code == 0
    assert not set(said.out) & set("\x1b\x07\x9b\u202e")
    assert said.out.count("[red]x[/red] [/]") == 4  # arm, component, evidence, remedy
