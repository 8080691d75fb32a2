"""Every set of answers that a study may hold: whose they are, where they lie, what each is beside.

A set is what one side wrote once to some questions. So a page that shows one, and one that lays two
over the same questions side by side, need to know nothing of why it was made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from msgspec import UNSET

from ahalab.errors import InputError
from ahalab.plan.cells import BASE, FLOOR, Cell, answer_cells, training_cells
from ahalab.plan.templates import OWN
from ahalab.records.plan import Plan
from ahalab.records.templates import TemplateSet
from ahalab.records.terms import Split
from ahalab.store.layout import AnswerPaths, StudyPaths
from ahalab.tasks.places import run_paths
from ahalab.tasks.templates import read_template_set

SetKind = Literal["evaluation", "floor", "replay", "template", "validation", "without", "kept"]
UNDER = "replay/"
STEP = "/step-"
MAX_DIGITS = 16  # of a step in an address


@dataclass(frozen=True, slots=True)
class AnswerFile:
    """A file of answers: one set, or, of a validation, one set a checkpoint."""

    name: str  # as `base`, `arms/random/seed-1`, `replay/base`, `arms/random/seed-1/validation`
    kind: SetKind
    paths: AnswerPaths
    cell: Cell  # who answers
    split: Split  # of the questions
    beside: str  # the set that it is compared with when no other is asked for
    writer: str  # name of the lock that its writer holds


@dataclass(frozen=True, slots=True)
class AnswerSet:
    """One set of answers."""

    file: AnswerFile
    step: int | None = None  # steps done, of a validation

    @property
    def name(self) -> str:
        """Its name in addresses: the file's, and the checkpoint's step."""
        return set_name(self.file.name, self.step)


def set_name(file: str, step: int | None) -> str:
    """Return the name of a set, by the name of its file and its step."""
    return file if step is None else f"{file}{STEP}{step}"


def answer_files(plan: Plan, paths: StudyPaths) -> list[AnswerFile]:
    """Return every file of answers, also those that are not there yet: the evaluation's first."""
    asked = read_templates(paths)
    found = [_evaluated(paths, cell) for cell in answer_cells(plan)]
    if plan.validation is not UNSET:
        found += [_validated(paths, cell) for cell in training_cells(plan)]
    sides = [BASE, *training_cells(plan)]
    found += [_replayed(paths, cell) for cell in sides]
    found += _under_templates(paths, asked) if asked else []
    found += [file for cell in sides for file in _finished(paths, cell)]
    return found


def find_set(plan: Plan, paths: StudyPaths, name: str) -> AnswerSet:
    """Return the set of a name, from the list of those that there may be.

    Raises:
        InputError: The study has no such set.
    """
    files = {file.name: file for file in answer_files(plan, paths)}
    if name in files and files[name].kind != "validation":
        return AnswerSet(files[name])
    stem, _, step = name.rpartition(STEP)
    numbered = step.isascii() and step.isdecimal() and len(step) < MAX_DIGITS
    if stem in files and files[stem].kind == "validation" and numbered:
        return AnswerSet(files[stem], int(step))
    raise InputError(f"expected a set of answers of the study, found {name[:80]!r}.")


def read_templates(paths: StudyPaths) -> TemplateSet | None:
    """Return the templates that the base was tried under; None where there are none to read."""
    try:
        return read_template_set(paths)
    except (InputError, OSError):  # `ahalab verify` tells what is wrong with it
        return None


def _evaluated(paths: StudyPaths, cell: Cell) -> AnswerFile:
    answers = _paths(paths, cell)
    kind: SetKind = "floor" if cell == FLOOR else "evaluation"
    beside = FLOOR if cell == BASE else BASE
    return AnswerFile(cell.name, kind, answers, cell, "eval", beside.name, answers.name)


def _validated(paths: StudyPaths, cell: Cell) -> AnswerFile:
    run = run_paths(paths, cell)
    name = f"{run.name}/validation"
    answers = AnswerPaths(run.validation, name)
    return AnswerFile(name, "validation", answers, cell, "validation", "", run.name)


def _replayed(paths: StudyPaths, cell: Cell) -> AnswerFile:
    answers = _paths(paths, cell, UNDER)
    name = f"{UNDER}{cell.name}"
    return AnswerFile(name, "replay", answers, cell, "eval", cell.name, answers.name)


def _under_templates(paths: StudyPaths, asked: TemplateSet) -> Iterator[AnswerFile]:
    for template in asked.templates:
        answers, name = paths.template_answers(template.name), f"templates/{template.name}"
        beside = f"templates/{OWN}"
        yield AnswerFile(name, "template", answers, BASE, asked.split, beside, answers.name)


def _finished(paths: StudyPaths, cell: Cell) -> Iterator[AnswerFile]:
    """Yield what came of a side's answers with a marker: without it, and continued freely."""
    answers = paths.continuations(cell.name)
    kinds: tuple[SetKind, ...] = ("without", "kept")
    for kind in kinds:
        name = f"reflection/{cell.name}/{kind}"
        yield AnswerFile(name, kind, answers, cell, "eval", cell.name, answers.name)


def _paths(paths: StudyPaths, cell: Cell, under: str = "") -> AnswerPaths:
    if cell.arm is not None and cell.seed is not None:
        return paths.answers(cell.arm, cell.seed, under)
    return paths.floor_answers if cell == FLOOR else paths.base_answers(under)
