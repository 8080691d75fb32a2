"""`ahalab replay`: which answer sets, into which folder, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ahalab.analyze.answers import load_study_answers
from ahalab.analyze.compare import analyze, compare, write_record
from ahalab.analyze.protocols import recorded_exceptions
from ahalab.analyze.replay import compare_replay, read_replay
from ahalab.errors import IncompleteError, InputError
from ahalab.evaluate.pair import answers_present
from ahalab.plan.cells import BASE, FLOOR, Cell, find_cell, rounds, training_cells
from ahalab.records.plan import Plan
from ahalab.records.replay import Replay
from ahalab.store.layout import StudyPaths


def replayed_cells(plan: Plan, paths: StudyPaths, names: Sequence[str]) -> list[Cell]:
    """Return the answer sets to generate again: those named, or all that were evaluated.

    Raises:
        InputError: A name is no cell of the plan, or the floor.
        IncompleteError: One was not evaluated yet, so there is nothing to compare with.
    """
    if FLOOR.name in names:
        raise InputError(
            "--cell: expected base or arms/ARM/seed-S, found floor. The noise floor is the base "
            "generated again already: replay the base."
        )
    wanted = [find_cell(plan, name) for name in names] or [
        cell for cell in (BASE, *training_cells(plan)) if answers_present(paths, cell)
    ]
    together = [cell for round_ in rounds(plan, wanted or [BASE]) for cell in round_]
    for cell in together:
        if not answers_present(paths, cell):
            raise IncompleteError(
                f"{paths.root}: expected answers of {cell.name} to compare a replay with, found "
                "none that are finished. Run: ahalab evaluate"
            )
    return wanted


def replayed_into(paths: StudyPaths, folder: Path | None) -> StudyPaths:
    """Return where a replay is written: to the study's own folder, or to another.

    Raises:
        InputError: The other one is a study with evidence of its own.
    """
    if folder is None or folder.resolve() == paths.root.resolve():
        return paths
    into = StudyPaths(folder)
    if into.plan.exists():
        raise InputError(
            f"--to {folder}: expected a folder for this replay alone, found a study. "
            "Name another folder."
        )
    return into


def conclude(plan: Plan, paths: StudyPaths, into: StudyPaths) -> Replay:
    """Compare a replay with the evaluation, and write what came of it.

    In the study's own folder the whole analysis is written again, since its claims name the replay.

    Raises:
        IncompleteError: No adapter was evaluated, so that there is no conclusion.
        ProtocolError: The replay's protocols differ in more than what generates.
    """
    exceptions = recorded_exceptions(paths)
    if into == paths:
        analyze(plan, paths, exceptions)
        found = read_replay(paths)
    else:
        study = load_study_answers(plan, paths, exceptions)
        found = compare_replay(study, compare(study), into)
        if found is not None:
            write_record(into.replay, found)
    if found is None:
        raise IncompleteError(f"{into.root}: no answer set was generated again yet. Replay again.")
    return found
