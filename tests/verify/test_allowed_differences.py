"""Exceptions to the one protocol: told as exceptions, and exactly those that there are."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ahalab.analyze.compare import analyze
from ahalab.plan.cells import find_cell
from ahalab.plan.load import load_plan
from ahalab.records.answer import Answer
from ahalab.records.base import digest
from ahalab.report.html import write_report
from ahalab.store.layout import StudyPaths
from ahalab.store.manifest import write_manifest
from ahalab.store.reading import read_rows
from ahalab.tasks.places import answer_paths
from ahalab.verify.checks import Check
from ahalab.verify.study import verify_study
from foreign_replay import put_rows, read_protocol
from tampering import edit_json, reseal

RUN = "arms/historical/seed-1"
COMPARISON = "analysis/comparison.json"
DEVICE = "cuda, 1 threads"


def by_name(root: Path) -> dict[str, Check]:
    return {check.name: check for check in verify_study(root).checks}


@pytest.fixture(scope="module")
def excepted(sound_study: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One adapter (and its replay) answered on another device, and that was allowed."""
    root = tmp_path_factory.mktemp("excepted") / "synthetic"
    shutil.copytree(sound_study, root)
    paths = StudyPaths(root)
    plan = load_plan(paths.plan)
    for under in ("", "replay/"):
        target = answer_paths(paths, find_cell(plan, RUN), under)
        protocol = replace(read_protocol(target), device=DEVICE)
        rows = [row for _, row in read_rows(target.answers, Answer)]
        told = [replace(row, protocol=digest(protocol)) for row in rows]
        put_rows(plan, paths, target, told, protocol)
    analyze(plan, paths, ["device"])
    write_report(paths)
    write_manifest(paths, digest(plan))
    return root


@pytest.fixture
def own(excepted: Path, tmp_path: Path) -> Path:
    """A copy to tamper with."""
    return Path(shutil.copytree(excepted, tmp_path / "synthetic"))


def test_an_exception_is_told_as_one_and_not_as_a_check_that_passed(excepted: Path) -> None:
    verification = verify_study(excepted)
    check = next(c for c in verification.checks if c.name == "protocol")
    assert [(c.name, c.failures) for c in verification.checks if c.failures] == []
    assert verification.result == "PASSED"
    assert check.status == "not checked"
    assert check.note == (
        f"EXCEPTION by --allow: device of {RUN}/answers: {DEVICE}, the base's cpu, 1 threads"
    )


def test_the_report_shows_it_in_the_badges_and_in_the_provenance(excepted: Path) -> None:
    page = (excepted / "report.html").read_text(encoding="utf-8")
    assert f"differs by exception (--allow) in device of {RUN}</li>" in page
    assert f"device: {DEVICE} for {RUN}, cpu, 1 threads for the base" in page


def edited(*path: str | int, to: Any) -> Callable[[Any], None]:
    def edit(tree: Any) -> None:
        for step in path[:-1]:
            tree = tree[step]
        tree[path[-1]] = to

    return edit


@pytest.mark.parametrize(
    ("file", "edit", "check"),
    [
        (COMPARISON, edited("allowed", 0, "found", to="cuda, 2 threads"), "protocol"),
        (COMPARISON, edited("allowed", 0, "base", to="cpu, 9 threads"), "protocol"),
        (COMPARISON, edited("allowed", 0, "field", to="dtype"), "protocol"),
        (COMPARISON, edited("allowed", 0, "answers", to="base/floor"), "protocol"),
        (COMPARISON, edited("allowed", to=[]), "protocol"),
        (COMPARISON, lambda tree: tree.pop("allowed"), "protocol"),
        (COMPARISON, lambda tree: tree["allowed"].append(tree["allowed"][0]), "protocol"),
        ("analysis/ablation.json", edited("allowed", to=["dtype"]), "ablation"),
        ("analysis/ablation.json", lambda tree: tree.pop("allowed"), "ablation"),
        ("analysis/changed_responses.json", edited("allowed", to=["dtype"]), "changed"),
        ("analysis/changed_responses.json", lambda tree: tree.pop("allowed"), "changed"),
        ("claims.json", edited("claims", -1, "value", to=2), "claims"),
    ],
)
def test_what_is_recorded_as_allowed_is_exactly_what_differs(
    own: Path, file: str, edit: Callable[[Any], None], check: str
) -> None:
    edit_json(own / file, edit)
    reseal(own)
    found = by_name(own)[check]
    assert found.status == "failed"
    assert any(failure.file in (file, f"{RUN}/answers.protocol.json") for failure in found.failures)


def test_a_second_difference_is_not_covered_by_the_first(own: Path) -> None:
    edit_json(own / f"{RUN}/answers.protocol.json", edited("dtype", to="bfloat16"))
    reseal(own)
    failures = by_name(own)["protocol"].failures
    assert any("dtype as in the base's protocol" in failure.expected for failure in failures)


def test_another_base_is_no_exception_however_it_is_recorded(own: Path) -> None:
    edit_json(own / f"{RUN}/answers.protocol.json", edited("base_digest", to="sha256:0"))

    def allow(tree: Any) -> None:
        first = tree["allowed"][0]
        tree["allowed"].insert(0, {**first, "field": "base_digest"})

    edit_json(own / COMPARISON, allow)
    reseal(own)
    found = by_name(own)
    assert found["base.pin"].status == "failed"
    assert ("exceptions in how answers are made", "base_digest") in {
        (failure.expected, failure.found) for failure in found["protocol"].failures
    }
