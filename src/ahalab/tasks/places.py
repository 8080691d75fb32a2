"""Where the files of a cell of the grid lie."""

from __future__ import annotations

from ahalab.plan.cells import FLOOR, Cell
from ahalab.store.layout import AnswerPaths, RunPaths, StudyPaths


def run_paths(paths: StudyPaths, cell: Cell) -> RunPaths:
    """Return the paths of a training run.

    Raises:
        ValueError: The cell is no training run.
    """
    return paths.run(*cell.run)


def answer_paths(paths: StudyPaths, cell: Cell, under: str = "") -> AnswerPaths:
    """Return where the answers of a cell lie; `under` is `replay/` for a replay."""
    if cell.trained:
        return paths.answers(*cell.run, under)
    return paths.floor_answers if cell == FLOOR else paths.base_answers(under)
