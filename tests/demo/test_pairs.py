"""Saved answers: which pairs are shown, and that the scorer decides when they are shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_study import make_answers, make_protocol, put_answers, write_study

from ahalab.demo.package import main as write_package
from ahalab.demo.pairs import packaged_pairs, score_pair, select, study_pairs
from ahalab.errors import AhaLabError, InputError
from ahalab.records.base import digest_bytes
from ahalab.store.layout import StudyPaths

#       0 both right, 1 gained, 2 lost, 3 a gain in format alone, 4 both wrong, 5 gained (cut)
BASE = "CWCFUT"
ADAPTER = "CCWCWC"


@pytest.fixture
def study(tmp_path: Path) -> StudyPaths:
    cells = {("correctness", 0): ADAPTER, ("random", 0): BASE}
    return write_study(tmp_path / "small", BASE, cells)[1]


def changes(study: StudyPaths, wanted: set[str], metric: str, cell: str | None = None) -> list[str]:
    found = select(study_pairs(study.root, cell), frozenset(wanted), metric)  # type: ignore[arg-type]
    return [f"{s.pair.question.split()[2]} {s.change(metric)}" for s in found]  # type: ignore[arg-type]


def test_pairs_come_in_prompt_order_with_their_change(study: StudyPaths) -> None:
    assert changes(study, set(), "strict") == [
        "0 both right", "1 gained", "2 lost", "3 gained", "4 both wrong", "5 gained",
    ]  # fmt: skip


def test_pairs_are_filtered_by_the_reading_asked_for(study: StudyPaths) -> None:
    assert changes(study, {"gained"}, "strict") == ["1 gained", "3 gained", "5 gained"]
    assert changes(study, {"gained"}, "lenient") == ["1 gained", "5 gained"]
    assert changes(study, {"lost"}, "lenient") == ["2 lost"]


def test_another_adapter_is_shown_by_name(study: StudyPaths) -> None:
    assert changes(study, {"gained", "lost"}, "strict", "arms/random/seed-0") == []


def test_a_cell_that_is_no_adapter_is_refused(study: StudyPaths) -> None:
    with pytest.raises(InputError, match="expected an adapter"):
        list(study_pairs(study.root, "base"))
    with pytest.raises(InputError, match="expected one of base, floor, arms/correctness/seed-0"):
        list(study_pairs(study.root, "arms/none/seed-0"))


def test_a_folder_without_a_study_is_an_expected_error(tmp_path: Path) -> None:
    with pytest.raises(AhaLabError, match=r"study\.yaml: expected a study plan"):
        list(study_pairs(tmp_path, None))


def test_the_verdict_is_the_scorers_and_not_the_stored_one(study: StudyPaths) -> None:
    from msgspec.structs import replace

    from ahalab.plan.load import load_plan

    plan = load_plan(study.plan)
    protocol = make_protocol(plan, adapter_digest=digest_bytes(b"correctness0"))
    rows = make_answers(study, ADAPTER, protocol)
    rows[1] = replace(rows[1], completion="#### 9")  # still stored as correct
    put_answers(plan, study, study.answers("correctness", 0), rows, protocol)
    assert changes(study, set(), "strict")[1] == "1 both wrong"
    told = [s.differing() for s in map(score_pair, study_pairs(study.root, None))]
    assert told[1] == ("correctness, strict: correct", "correctness, lenient: correct")
    assert set(told) == {(), told[1]}


def test_a_missing_answer_is_named(study: StudyPaths) -> None:
    from ahalab.plan.load import load_plan

    plan = load_plan(study.plan)
    protocol = make_protocol(plan, adapter_digest=digest_bytes(b"correctness0"))
    rows = make_answers(study, ADAPTER, protocol)[:-1]
    put_answers(plan, study, study.answers("correctness", 0), rows, protocol)
    with pytest.raises(InputError, match="expected an answer to 00005-"):
        list(study_pairs(study.root, None))


def test_the_letters_of_these_studies_score_as_they_are_written(study: StudyPaths) -> None:
    told = {
        s.pair.base_completion: (s.base.strict.outcome, s.base.lenient.outcome)
        for s in map(score_pair, study_pairs(study.root, None))
    }
    assert told == {
        "#### 7": ("correct", "correct"),
        "#### 8": ("wrong", "wrong"),
        "The answer is 7.": ("unparsed", "correct"),
        "I do not know.": ("unparsed", "unparsed"),
        "First we take": ("truncated", "truncated"),
    }


def test_the_packaged_run_reads_and_scores_and_shows_both_gains_and_losses() -> None:
    found = {s.change("strict") for s in map(score_pair, packaged_pairs())}
    assert {"gained", "lost"} <= found


def test_the_package_writer_keeps_texts_and_what_was_recorded_of_them(
    study: StudyPaths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ahalab.demo.package as package

    monkeypatch.setattr(package, "__file__", str(tmp_path / "package.py"))
    write_package(str(study.root), "arms/correctness/seed-0", "2")
    lines = (tmp_path / "saved_run.jsonl").read_bytes().split(b"\n")
    assert (len(lines), lines[-1]) == (3, b"")
    assert b'"base_recorded":{"strict":"wrong","lenient":"wrong"}' in lines[1]
    assert b'"adapter_recorded":{"strict":"correct","lenient":"correct"}' in lines[1]
    assert b'"base_completion":"#### 8"' in lines[1]
