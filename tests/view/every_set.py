"""Writes a study with every kind of answers: the rich one, some of its answers finished."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from reflection_builder import InventedCheck

from ahalab.plan.cells import BASE, training_cells
from ahalab.plan.load import load_plan
from ahalab.records.base import digest
from ahalab.records.validation import ValidationAnswer
from ahalab.store.layout import StudyPaths
from ahalab.store.reading import journal_path, read_rows
from ahalab.store.rows import RowFile, RowWriter
from rich_study import build_rich, finish_rich


def write_every_set(root: Path) -> Path:
    """Write evaluation, floor, replays, templates, validation and continuations, sealed."""
    build_rich(root)
    check = InventedCheck(root)
    check.finish_answers([BASE, *training_cells(check.plan)], lambda count: None)
    finish_rich(check.paths)
    return root


def validation_of(paths: StudyPaths, arm: str, seed: int) -> list[ValidationAnswer]:
    return [row for _, row in read_rows(paths.run(arm, seed).validation, ValidationAnswer)]


@contextmanager
def validating(paths: StudyPaths, arm: str, seed: int) -> Iterator[RowWriter[ValidationAnswer]]:
    """Open a run's validation as training does."""
    run, plan = paths.run(arm, seed), load_plan(paths.plan)
    file = RowFile(run.validation, "validation/1", digest(plan), run.name, paths.broken)
    with RowWriter[ValidationAnswer](file) as writer:
        yield writer


def begin_again(paths: StudyPaths, arm: str, seed: int) -> list[Sequence[ValidationAnswer]]:
    """Take a run back to before its first checkpoint; return what each one's answers were."""
    rows, path = validation_of(paths, arm, seed), paths.run(arm, seed).validation
    for old in (path, journal_path(path)):
        old.unlink()
    return [[row for row in rows if row.step == step] for step in sorted({r.step for r in rows})]
