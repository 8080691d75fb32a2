"""The base's answers under templates are rescored and kept as those of the evaluation are."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from test_rescored_answers import KEPT, NEW, SMALL, other

from ahalab.records.answer import Answer
from ahalab.store.reading import read_rows, sealed_path
from ahalab.verify.study import verify_study
from study_builder import build
from tampering import edit_row, reseal
from template_builder import add_templates

ROWS = "templates/plan/answers"


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("before") / "results" / "small"
    return add_templates(build(root, SMALL), 5)


@pytest.fixture(scope="module")
def rescored(before: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("after") / "results" / "small"
    shutil.copytree(before, root)
    done = other("rescore", root, "--write")
    assert done.returncode == 0, done.stderr
    assert "templates/format" in done.stdout
    return root


def rows_of(root: Path) -> dict[str, list[Answer]]:
    """Return the answers under every template."""
    files = sorted(root.glob("templates/*/answers.journal.jsonl"))
    return {f.parent.name: [r for _, r in read_rows(f.parent / "answers.jsonl", Answer)]
            for f in files}  # fmt: skip


def test_their_outcomes_and_the_comparison_are_those_of_the_new_scorer(
    before: Path, rescored: Path
) -> None:
    said = json.loads(other("verify", rescored, "--format", "json").stdout)
    assert said["result"] == "PASSED", [c for c in said["checks"] if c["failures"]]
    old, new = rows_of(before), rows_of(rescored)
    assert old.keys() == new.keys()
    assert {row.rule for rows in old.values() for row in rows} - {"hashes", "none"}
    found = json.loads((rescored / "analysis/templates.json").read_bytes())["templates"]
    for result in found:
        rows = new[result["name"]]
        assert [row.completion for row in rows] == [row.completion for row in old[result["name"]]]
        assert {row.rule for row in rows} <= {"hashes", "none"}
        assert result["lenient"].get("correct", 0) == sum(r.lenient == "correct" for r in rows)
        path = rescored / f"templates/{result['name']}/answers.protocol.json"
        assert json.loads(path.read_bytes())["scorer_version"] == NEW


def test_the_answers_as_they_were_are_kept_and_tampering_with_them_is_named(
    before: Path, rescored: Path, tmp_path: Path
) -> None:
    kept = rescored / KEPT / f"{ROWS}.jsonl"
    assert sealed_path(kept).is_file()
    assert [row for _, row in read_rows(kept, Answer)] == [
        row for _, row in read_rows(before / f"{ROWS}.jsonl", Answer)
    ]
    copy = shutil.copytree(rescored, tmp_path / "small")
    edit_row(copy / f"{ROWS}.jsonl", 1, completion="#### 1")
    reseal(copy)
    failed = {c.name: c.failures[0] for c in verify_study(copy).checks if c.failures}
    assert failed["rescored"].expected.startswith("the completion of today's answer")
