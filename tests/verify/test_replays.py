"""Replays from another machine: told and counted, never passed in silence; every field checked."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ahalab.records.base import decode_file
from ahalab.records.replay import ChangedVerdict, Replay, ReplayDifference, ReplayedAnswers
from ahalab.verify.answers import Sets, answers_to_check, check_answers
from ahalab.verify.checks import Check, Ledger
from ahalab.verify.journals import check_journals
from ahalab.verify.matrices import Outcomes, line_up
from ahalab.verify.reading import Study
from ahalab.verify.replay import check_replay
from ahalab.verify.study import verify_study
from ahalab.verify.workers import ALONE, Workers
from foreign_replay import (
    ELSEWHERE,
    RIGHT,
    STATED,
    WRONG,
    each_of,
    first_with,
    replay_elsewhere,
)
from tampering import edit_json, edit_row, read_lines, reseal

RUN = "arms/historical/seed-1"
RECORD = "analysis/replay.json"
FLIPS = each_of(
    first_with("wrong", "wrong", RIGHT),  # gained in both readings
    first_with("correct", "correct", STATED),  # lost in the strict reading alone
    first_with("wrong", "wrong", WRONG, skip=1),  # wrong in other words
)


def by_name(root: Path) -> dict[str, Check]:
    return {check.name: check for check in verify_study(root).checks}


def read(root: Path) -> Replay:
    return decode_file((root / RECORD).read_bytes(), Replay, RECORD)


@pytest.fixture(scope="module")
def elsewhere(sound_study: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three answers of one adapter came out otherwise elsewhere. Nobody may write to it."""
    root = tmp_path_factory.mktemp("elsewhere") / "synthetic"
    shutil.copytree(sound_study, root)
    replay_elsewhere(root, {RUN: FLIPS})
    return root


@pytest.fixture(scope="module")
def turned(sound_study: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """On the other machine one arm answers everything rightly: its verdict changes."""
    root = tmp_path_factory.mktemp("turned") / "synthetic"
    shutil.copytree(sound_study, root)
    right = {f"arms/random/seed-{seed}": lambda _: RIGHT for seed in (1, 2)}
    replay_elsewhere(root, right)
    return root


def copied(root: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(root, tmp_path / "synthetic"))


# Another machine ----------------------------------------------------------------------------------


def test_a_replay_elsewhere_passes_and_how_many_answers_differ_is_told(elsewhere: Path) -> None:
    verification = verify_study(elsewhere)
    failed = [(c.name, c.failures) for c in verification.checks if c.status == "failed"]
    assert failed == []
    assert verification.result == "PASSED"
    note = next(c.note for c in verification.checks if c.name == "replay")
    assert note.startswith("generated again under another versions.torch: 3 of 168 answers differ")
    assert "correct ones +1 \N{MINUS SIGN}1 (strict), conclusion: stands" in note


def test_the_record_counts_equal_answers_and_flips_of_each_set(elsewhere: Path) -> None:
    found = read(elsewhere)
    flipped = next(s for s in found.sets if s.answers == f"{RUN}/answers")
    assert (flipped.n, flipped.equal) == (24, 21)
    assert (flipped.strict_gained, flipped.strict_lost) == (1, 1)
    assert (flipped.lenient_gained, flipped.lenient_lost) == (1, 0)
    assert (found.n, found.equal, found.strict_gained, found.lenient_lost) == (168, 165, 1, 0)
    assert all(s.equal == 24 for s in found.sets if s is not flipped)
    torch = ReplayDifference(field="versions.torch", first="none", again="another")
    assert {s.protocol for s in found.sets} == {(torch,)}


def test_the_report_says_it_and_binds_its_figures_to_claims(elsewhere: Path) -> None:
    page = (elsewhere / "report.html").read_text(encoding="utf-8")
    assert "165 of 168 answers equal, under another versions.torch" in page
    assert 'data-claim="replay.equal">165</td>' in page
    claims = json.loads((elsewhere / "claims.json").read_bytes())["claims"]
    assert {c["id"]: c["value"] for c in claims}["replay.conclusion"] == "stands"


def test_a_conclusion_that_does_not_stand_elsewhere_is_a_failure_that_names_it(
    turned: Path,
) -> None:
    check = by_name(turned)["replay"]
    assert check.status == "failed"
    told = {(f.expected, f.found) for f in check.failures}
    place = "random against base, strict"
    assert (f"{place}: no evidence, as evaluated", "improved") in told
    assert {c.arm for c in read(turned).changed} >= {"random"}


def test_rows_of_a_replay_elsewhere_are_graded_again(elsewhere: Path, tmp_path: Path) -> None:
    study = copied(elsewhere, tmp_path)
    line = next(
        n
        for n, raw in enumerate(read_lines(study / f"replay/{RUN}/answers.jsonl"), 1)
        if json.loads(raw)["strict"] == "wrong"
    )
    edit_row(study / f"replay/{RUN}/answers.jsonl", line, strict="correct")
    reseal(study)
    found = by_name(study)
    assert [(f.file, f.line) for f in found["regrade"].failures] == [
        (f"replay/{RUN}/answers.jsonl", line)
    ]


def test_versions_forged_in_one_replay_do_not_pass_as_another_machine(study: Path) -> None:
    path = study / f"replay/{RUN}/answers.protocol.json"
    edit_json(path, lambda tree: tree.update(versions=ELSEWHERE))
    reseal(study)
    check = by_name(study)["protocol"]
    place = "versions.torch as in the other replays' protocol: none"
    assert [(f.file, f.expected, f.found) for f in check.failures] == [
        (f"replay/{RUN}/answers.protocol.json", place, "another")
    ]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("seed", 9), ("batch_size", 4), ("scorer_version", "1"), ("dtype", "bfloat16"),
        ("cells_per_batch", 3), ("samples", 2), ("limit", 5),
    ],
)  # fmt: skip
def test_a_replay_may_differ_in_nothing_but_what_generates(
    elsewhere: Path, tmp_path: Path, field: str, value: Any
) -> None:
    study = copied(elsewhere, tmp_path)
    path = study / f"replay/{RUN}/answers.protocol.json"
    edit_json(path, lambda tree: tree.update({field: value}))
    reseal(study)
    failures = by_name(study)["protocol"].failures
    assert any(f.file == f"replay/{RUN}/answers.protocol.json" and field in f.expected
               for f in failures)  # fmt: skip


def test_a_replay_that_was_killed_is_incomplete_and_no_failure(study: Path) -> None:
    journal = study / f"replay/{RUN}/answers.journal.jsonl"
    journal.write_bytes(b"".join(read_lines(journal)[:-2]))
    rows = study / f"replay/{RUN}/answers.jsonl"
    rows.write_bytes(b"".join(read_lines(rows)[:16]))
    (study / "manifest.json").unlink()
    check = by_name(study)["replay"]
    assert [f for f in check.failures if f.file != RECORD] == []
    assert f"{RUN}: planned, and not generated again yet" in check.note


# Every field of the record ------------------------------------------------------------------------


def altered(value: Any) -> Any:
    """Return another value of the same kind."""
    if isinstance(value, bool) or value is None:
        return 7
    if isinstance(value, int):
        return value + 1
    if isinstance(value, str):
        words = {"stands": "changed", "changed": "stands", "base": "control", "strict": "lenient"}
        return words.get(value, "worse" if value in ("improved", "no evidence") else f"{value}x")
    return value[:-1] if value else [ENTRY]


ENTRY = {"arm": "random", "seed": None, "against": "base", "metric": "strict",
         "first": "no evidence", "again": "worse"}  # fmt: skip


def leaves(tree: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the way to every field of the first entry of every list, and to every list."""
    for key, value in tree.items():
        yield (*at, key)
        if isinstance(value, list) and value and isinstance(value[0], dict):
            yield from leaves(value[0], (*at, key, 0))


def checked(root: Path, outcomes: Outcomes, again: Sets) -> list[tuple[str, str]]:
    ledger = Ledger(None)
    check_replay(Study(root, ledger), outcomes, again)
    return [
        (failure.file, failure.expected)
        for check in ledger.verification().checks
        for failure in check.failures
    ]


@pytest.mark.parametrize("source", ["elsewhere", "turned"])
def test_no_field_of_the_record_can_be_altered_unseen(
    source: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    root = copied(request.getfixturevalue(source), tmp_path)
    study = Study(root, Ledger(None))
    journals = check_journals(study)
    shares, same = answers_to_check(study, journals)
    with Workers(study, shares, ALONE) as workers:
        found, again = check_answers(study, journals, workers.answers(shares), same)
    assert study.plan is not None
    outcomes = line_up(study.plan, [p for _, p in study.prompts("eval")], found)
    assert outcomes is not None
    sound = (root / RECORD).read_bytes()
    before = checked(root, outcomes, again)
    assert bool(before) == (source == "turned")  # there the changed verdicts fail in any case
    ways = [way for way in leaves(json.loads(sound)) if way[-1] != "schema"]
    kinds = (Replay, ReplayedAnswers, ReplayDifference)
    kinds += (ChangedVerdict,) if source == "turned" else ()
    fields = {name for kind in kinds for name in kind.__struct_fields__} - {"schema"}
    assert {way[-1] for way in ways if isinstance(way[-1], str)} >= fields
    for way in ways:
        tree = json.loads(sound)
        place = tree
        for step in way[:-1]:
            place = place[step]
        place[way[-1]] = altered(place[way[-1]])
        (root / RECORD).write_bytes((json.dumps(tree, indent=1) + "\n").encode())
        told = checked(root, outcomes, again)
        assert len(told) > len(before), way
    (root / RECORD).write_bytes(sound)
    assert checked(root, outcomes, again) == before
