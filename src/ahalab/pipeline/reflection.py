"""`ahalab reflect`: which sides, the answers finished without reflecting, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence

from ahalab.analyze.compare import write_record
from ahalab.analyze.reflection import reflect
from ahalab.errors import IncompleteError, InputError
from ahalab.evaluate.pair import answers_present
from ahalab.evaluate.reflection import ReflectionCheck, marked_answers
from ahalab.pipeline.progress import StageProgress
from ahalab.pipeline.study import read_manifest, refuse_tampered
from ahalab.plan.cells import BASE, FLOOR, Cell, find_cell, training_cells
from ahalab.records.plan import Plan
from ahalab.records.reflection import Reflection
from ahalab.store.journal import read_journal
from ahalab.store.layout import StudyPaths
from ahalab.store.reading import journal_path


def sides_to_cut(plan: Plan, paths: StudyPaths, names: Sequence[str]) -> list[Cell]:
    """Return the sides to check: those named, or all that were evaluated.

    Raises:
        InputError: A name is no cell of the plan, or the floor.
        IncompleteError: Nothing was evaluated yet.
    """
    if FLOOR.name in names:
        raise InputError(
            "--cell: expected base or arms/ARM/seed-S, found floor, which is the base again. "
            "Check the base."
        )
    wanted = [find_cell(plan, name) for name in names] or [
        cell for cell in (BASE, *training_cells(plan)) if answers_present(paths, cell)
    ]
    if not wanted:
        raise IncompleteError(f"{paths.root}: no answers to cut yet. Run: ahalab evaluate")
    return wanted


def check_causes(
    plan: Plan, paths: StudyPaths, names: Sequence[str], *, quiet: bool = False
) -> Reflection:
    """Finish the answers of these sides without reflecting, and write what came of it. Resumable.

    Args:
        plan: The plan.
        paths: The study.
        names: Of cells; none: every side that was evaluated.
        quiet: Show no progress.

    Raises:
        AhaLabError: See `sides_to_cut` and `ReflectionCheck.finish_answers`; or sealed evidence
            was changed.
    """
    manifest = read_manifest(paths)
    if manifest is not None:
        refuse_tampered(manifest, paths)
    cells = sides_to_cut(plan, paths, names)
    total = sum(len(marked_answers(paths, cell)) for cell in cells)
    files = [paths.continuations(cell.name).answers for cell in cells]
    done = sum(read_journal(journal_path(file)).rows for file in files)
    check = ReflectionCheck(plan, paths)
    with StageProgress("reflect", total, "answers", done, show=not quiet) as progress:
        check.finish_answers(cells, progress.advance)
    found = reflect(plan, paths)
    write_record(paths.reflection, found)
    return found
