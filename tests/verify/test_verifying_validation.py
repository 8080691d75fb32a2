"""The validation of a study: none where the plan asks for none, unfinished while it trains."""

from __future__ import annotations

import shutil
from pathlib import Path

from ahalab.verify.checks import Check
from ahalab.verify.study import verify_study
from mutations.kinds import RUN
from study_builder import PLAN, build
from tampering import edit_rows, reseal


def failures(root: Path) -> dict[str, list[tuple[str, str, str]]]:
    return {
        check.name: [(f.file, f.expected, f.found) for f in check.failures]
        for check in verify_study(root).checks
        if check.status == "failed"
    }


def by_name(root: Path) -> dict[str, Check]:
    return {check.name: check for check in verify_study(root).checks}


def test_a_study_that_asks_for_none_says_nothing_of_it_and_may_hold_none(
    sound_study: Path, tmp_path: Path
) -> None:
    without = build(tmp_path / "synthetic", PLAN.partition("validation:")[0])
    assert verify_study(without).result == "PASSED"
    for path in without.rglob("*"):
        assert "validation" not in path.name
        assert path.is_dir() or path.suffix == ".html" or b"validation" not in path.read_bytes()
    for name in (f"{RUN}/validation", "prompts/validation"):
        for ending in (".jsonl", ".journal.jsonl"):
            shutil.copyfile(sound_study / f"{name}{ending}", without / f"{name}{ending}")
    reseal(without)
    what = "no validation, as the plan asks for none"
    told = failures(without)["arms.all"]
    assert told == [(f"{n}/validation.jsonl", what, "some") for n in ("prompts", RUN)]


def test_a_run_between_two_checkpoints_is_incomplete_and_no_failure(study: Path) -> None:
    (study / f"{RUN}/run.json").unlink()
    edit_rows(study / f"{RUN}/validation.jsonl", lambda rows: rows[:5])
    reseal(study)
    check = by_name(study)["cover"]
    assert (check.status, check.failed) == ("incomplete", 0)
    assert f"{RUN}/validation.jsonl: not every checkpoint is there yet" in check.note
    for name in (f"{RUN}/validation.jsonl", f"{RUN}/validation.journal.jsonl"):
        (study / name).unlink()
    reseal(study)
    assert f"{RUN}/validation.jsonl: not validated yet" in by_name(study)["arms.all"].note


def test_a_finished_run_may_not_lack_its_last_checkpoint(study: Path) -> None:
    edit_rows(study / f"{RUN}/validation.jsonl", lambda rows: rows[:5])
    reseal(study)
    told = failures(study)["cover"]
    assert len(told) == 5
    assert all(e.endswith("at step 4") and found == "none" for _, e, found in told)
