"""How replays and exceptions are printed: at 80 columns, in words, as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import Call
from small_study import make_protocol, write_answers, write_study

from ahalab.cli.replay import print_replay, share
from ahalab.records.base import digest_bytes
from ahalab.records.replay import ChangedVerdict, Replay, ReplayDifference, ReplayedAnswers
from ahalab.store.layout import StudyPaths

MINUS = "\N{MINUS SIGN}"
TORCH = ReplayDifference(field="versions.torch", first="2.13.0", again="2.14.0")


def one(name: str, n: int, equal: int, flips: tuple[int, int, int, int]) -> ReplayedAnswers:
    gained, lost, lenient_gained, lenient_lost = flips
    return ReplayedAnswers(
        answers=f"{name}/answers", n=n, equal=equal, strict_gained=gained, strict_lost=lost,
        lenient_gained=lenient_gained, lenient_lost=lenient_lost, protocol=(TORCH,),
    )  # fmt: skip


def replay(**changes: object) -> Replay:
    fields: dict[str, object] = {
        "plan_digest": "sha256:0",
        "sets": (
            one("base", 13190, 13189, (0, 0, 0, 0)),
            one("arms/additive_format/seed-10", 13190, 13000, (101, 99, 77, 1200)),
        ),
        "missing": (), "n": 26380, "equal": 26189, "strict_gained": 101, "strict_lost": 99,
        "lenient_gained": 77, "lenient_lost": 1200, "conclusion": "stands", "verdicts": 10,
        "changed": (),
    }  # fmt: skip
    return Replay(**(fields | changes))  # type: ignore[arg-type]


def test_a_replay_reads_at_80_columns_with_a_row_per_set(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from rich.console import Console

    import ahalab.cli.replay as printed

    monkeypatch.setattr(printed, "results_console", lambda: Console(width=80, highlight=False))
    print_replay(replay())
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.split() for line in lines[1:4]] == [
        ["base", "13190", "13189", "99.99", "%", "+0", f"{MINUS}0", "+0", f"{MINUS}0"],
        ["additive_format/seed-10", "13190", "13000", "98.55", "%", "+101", f"{MINUS}99", "+77",
         f"{MINUS}1200"],
        ["all", "26380", "26189", "99.27", "%", "+101", f"{MINUS}99", "+77", f"{MINUS}1200"],
    ]  # fmt: skip
    assert "  versions.torch: 2.14.0, was 2.13.0" in lines
    assert lines[-1] == "The conclusion stands: all 10 verdicts come out again."


def test_a_share_below_the_whole_is_never_rounded_to_it() -> None:
    assert [share(*pair) for pair in ((10**6 - 1, 10**6), (7, 7), (0, 3), (1, 3))] == [
        "99.99", "100.00", "0.00", "33.33",
    ]  # fmt: skip


def test_changed_verdicts_and_missing_sets_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    change = ChangedVerdict(
        arm="random", seed=None, against="control", metric="lenient", first="no evidence",
        again="worse",
    )  # fmt: skip
    print_replay(replay(conclusion="changed", changed=(change,)))
    assert capsys.readouterr().out.endswith(
        "The conclusion DOES NOT stand: 1 of 10 verdicts change.\n"
        "  random against control, lenient: worse, was no evidence\n"
    )
    print_replay(replay(conclusion="not drawn", missing=("base",), verdicts=None))
    out = capsys.readouterr().out
    assert out.endswith("No conclusion is drawn: base not generated again.\n")


# Exceptions ---------------------------------------------------------------------------------------


@pytest.fixture
def mixed(tmp_path: Path) -> StudyPaths:
    """Two adapters, one of which answered on another device."""
    sets = {("random", 0): "CCCW", ("random", 1): "CCWW"}
    plan, paths = write_study(tmp_path / "s", "CCWW", sets)
    protocol = make_protocol(plan, adapter_digest=digest_bytes(b"random1"), device="cuda")
    write_answers(plan, paths, paths.answers("random", 1), "CCWW", protocol)
    return paths


def test_an_exception_stands_first_in_what_is_printed_and_in_the_json(
    call: Call, mixed: StudyPaths
) -> None:
    said = call("analyze", mixed.root)
    assert said.code == 2
    assert said.line.endswith("record the exception (ahalab analyze STUDY --allow device).")
    said = call("analyze", mixed.root, "--allow", "device", "--allow", "dtype")
    assert said.code == 0
    first = "EXCEPTION, device: cpu, 1 threads for the base, cuda for arms/random/seed-1."
    assert said.out.splitlines()[0] == first
    assert "--allow dtype: nothing differs in it" in said.err
    said = call("analyze", mixed.root, "--allow", "device", "--format", "json")
    assert [one["field"] for one in json.loads(said.out)["allowed"]] == ["device"]


def test_other_commands_go_by_the_recorded_exception_and_say_so(
    call: Call, mixed: StudyPaths
) -> None:
    assert call("ablate", mixed.root).code == 2
    call("analyze", mixed.root, "--allow", "device")
    said = call("ablate", mixed.root)
    assert said.code == 0
    assert said.out.startswith("EXCEPTION: the protocols differ in device;")
    assert call("report", mixed.root).code == 0
    page = mixed.report.read_text(encoding="utf-8")
    assert "differs by exception (--allow) in device of arms/random/seed-1" in page
    assert call("analyze", mixed.root).code == 2  # nothing is allowed by habit


@pytest.mark.parametrize("field", ["devise", "adapter_digest", "plan_digest"])
def test_a_field_that_is_no_exception_is_one_line(
    call: Call, mixed: StudyPaths, field: str
) -> None:
    said = call("analyze", mixed.root, "--allow", field)
    assert said.code == 2
    assert said.line.startswith("ahalab: --allow")
