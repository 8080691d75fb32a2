"""The base under templates as evidence: none where none was tried, unfinished while it answers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from ahalab.verify.checks import Check
from ahalab.verify.study import verify_study
from mutations.kinds import record
from study_builder import PLAN, build
from tampering import read_lines, rebuild, reseal
from template_builder import add_templates

FORMAT = "templates/format"


def by_name(root: Path) -> dict[str, Check]:
    return {check.name: check for check in verify_study(root).checks}


def failed(root: Path) -> dict[str, str]:
    """Return the first failure of every check that fails."""
    checks = verify_study(root).checks
    return {c.name: f"{c.failures[0].file}: {c.failures[0].expected}" for c in checks if c.failures}


def test_a_study_that_tried_none_says_nothing_of_it(tmp_path: Path) -> None:
    without = build(tmp_path / "synthetic")
    assert verify_study(without).result == "PASSED"
    assert not (without / "templates").exists()
    assert not (without / "analysis/templates.json").exists()
    assert b"template." not in (without / "claims.json").read_bytes()
    assert "other templates" not in (without / "report.html").read_text("utf-8")


def test_the_report_tells_how_far_the_protocol_moves_the_base(sound_study: Path) -> None:
    page = (sound_study / "report.html").read_text("utf-8")
    sentences = json.loads((sound_study / "analysis/templates.json").read_bytes())["ranges"]
    for found in sentences:
        assert found["sentence"].replace("'", "&#39;") in page
    assert 'data-claim="template.format.strict_accuracy"' in page


def test_without_validation_the_questions_are_those_of_the_training(tmp_path: Path) -> None:
    root = add_templates(build(tmp_path / "synthetic", PLAN.partition("validation:")[0]))
    assert failed(root) == {}
    prompts = [json.loads(line) for line in read_lines(root / f"{FORMAT}/prompts.jsonl")]
    assert {prompt["split"] for prompt in prompts} == {"train"}


def test_a_sampled_plan_still_asks_its_base_greedily_under_templates(tmp_path: Path) -> None:
    sampling = "floor_batch_size: 6, temperature: 0.8, samples: 2,"
    root = build(tmp_path / "synthetic", PLAN.replace("floor_batch_size: 6,", sampling))
    assert failed(add_templates(root)) == {}
    record(f"{FORMAT}/answers.protocol.json", "generation", "temperature", to=0.8)(root)
    reseal(root)
    assert "generation.temperature: 1.0" in failed(root)["protocol"]


def test_a_template_that_is_not_answered_yet_is_incomplete_and_no_failure(study: Path) -> None:
    for name in ("answers.jsonl", "answers.journal.jsonl", "answers.protocol.json"):
        (study / FORMAT / name).unlink()
    (study / "analysis/templates.json").unlink()
    rebuild(study)
    check = by_name(study)["arms.all"]
    assert (check.status, check.failed) == ("incomplete", 0)
    assert f"{FORMAT}/answers.jsonl: not answered yet" in check.note
    assert failed(study) == {}


def test_a_comparison_without_all_its_answers_is_a_failure(study: Path) -> None:
    for name in ("answers.jsonl", "answers.journal.jsonl", "answers.protocol.json"):
        (study / FORMAT / name).unlink()
    reseal(study)
    assert "templates with an answer to every question" in failed(study)["stat.n"]


def test_the_owner_who_raises_an_outcome_and_compares_again_is_caught(study: Path) -> None:
    path = study / f"{FORMAT}/answers.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"strict":"wrong"', b'"strict":"correct"', 1))
    rebuild(study)
    assert f"{FORMAT}/answers.jsonl" in failed(study)["regrade"]


def test_a_built_in_set_of_another_version_is_not_compared_and_says_so(study: Path) -> None:
    record("templates/templates.json", "version", to="0")(study)
    reseal(study)
    check = by_name(study)["plan.match"]
    assert check.status == "not checked"
    assert "the built-in set of version 0, here is 1" in check.note


def test_answers_without_the_set_that_they_belong_to_are_refused(study: Path) -> None:
    shutil.rmtree(study / "templates")
    reseal(study)
    assert "which templates were tried" in failed(study)["arms.all"]
