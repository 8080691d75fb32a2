"""More looked at than planned: named by the analysis, held against the study by the verifier."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ahalab.plan.load import load_plan
from ahalab.store.layout import StudyPaths
from ahalab.tasks.unplanned import unplanned
from ahalab.verify.checks import Check
from ahalab.verify.study import verify_study
from mutations.kinds import RUN, copy_set
from tampering import edit_json, rebuild, reseal

COMPARISON = "analysis/comparison.json"


def look(root: Path) -> tuple[str, ...]:
    return unplanned(load_plan(root / "study.yaml"), StudyPaths(root))


def check(root: Path, name: str) -> Check:
    return next(c for c in verify_study(root).checks if c.name == name)


def test_a_study_as_planned_has_nothing_beyond_its_plan(study: Path) -> None:
    # With a replay, a floor and templates, all of which are planned.
    assert (study / "replay" / RUN / "answers.jsonl").is_file()
    assert (study / "templates").is_dir()
    assert look(study) == ()
    assert "unplanned" not in json.loads((study / COMPARISON).read_bytes())


@pytest.mark.parametrize("folder", [f"{RUN}/checkpoint-2", "more", f"replay/{RUN}/again"])
def test_answers_in_a_place_that_no_plan_has_are_named(study: Path, folder: str) -> None:
    copy_set(study, folder)
    assert look(study) == (f"{folder}/answers",)
    (study / folder / "answers.journal.jsonl").unlink()  # unsealed, they are still a look
    assert look(study) == (f"{folder}/answers",)


def test_answers_beside_the_planned_ones_are_named(study: Path) -> None:
    shutil.copyfile(study / RUN / "answers.jsonl", study / RUN / "answers-2.jsonl")
    assert look(study) == (f"{RUN}/answers-2",)


def test_the_adapter_of_a_checkpoint_is_named(study: Path) -> None:
    shutil.copytree(study / RUN / "adapter", study / RUN / "checkpoint-2")
    assert look(study) == (f"{RUN}/checkpoint-2",)


def test_sets_kept_by_a_rescore_are_those_of_the_plan_or_are_named(study: Path) -> None:
    copy_set(study, f"rescored/scorer-1/{RUN}")
    assert look(study) == ()
    copy_set(study, "rescored/scorer-1/arms/historical/seed-9")
    assert look(study) == ("rescored/scorer-1/arms/historical/seed-9/answers",)


def test_rows_that_answer_no_question_are_no_look(study: Path) -> None:
    copy_set(study, "notes")
    journal = study / "notes/answers.journal.jsonl"
    head, _, rest = journal.read_text().partition("\n")
    journal.write_text(head.replace("answer/1", "step/1") + "\n")  # a journal of its head alone
    assert rest
    assert look(study) == ()


def test_the_record_names_what_lies_beyond_and_the_verifier_counts_it_again(study: Path) -> None:
    copy_set(study, f"{RUN}/checkpoint-2")
    rebuild(study)
    named = json.loads((study / COMPARISON).read_bytes())["unplanned"]
    assert named == [f"{RUN}/checkpoint-2/answers"]
    assert "looked at beyond it: " in (study / "report.html").read_text()
    assert check(study, "outcome.added").status == "passed"
    assert check(study, "arms.all").failures[0].file == f"{RUN}/checkpoint-2/answers"

    edit_json(study / COMPARISON, lambda t: t.pop("unplanned"))
    reseal(study)
    hidden = check(study, "outcome.added")
    assert hidden.status == "failed"
    assert "checkpoint-2/answers" in hidden.failures[0].expected
