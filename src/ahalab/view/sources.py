"""Which studies lie in the folders given, and which row files of a study are indexed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from ahalab.errors import InputError
from ahalab.plan.cells import Cell, training_cells
from ahalab.plan.load import load_plan
from ahalab.plan.schedule import prompts_asked
from ahalab.records.plan import Plan
from ahalab.store.layout import StudyPaths
from ahalab.tasks.places import run_paths
from ahalab.view.database import study_id
from ahalab.view.sets import AnswerFile, answer_files

RowKind = Literal["prompt", "step", "timing", "answer", "rollout"]


@dataclass(frozen=True, slots=True)
class Study:
    """One study that is shown."""

    id: str
    paths: StudyPaths
    plan: Plan


@dataclass(frozen=True, slots=True)
class BrokenStudy:
    """A folder whose plan can't be read."""

    root: Path
    fault: str


@dataclass(frozen=True, slots=True)
class Source:
    """One row file, and what its rows are."""

    kind: RowKind
    name: str  # within the study, as `arms/random/seed-0/rollouts`
    path: Path  # the plain path
    cell: Cell | None = None  # the run; None: prompts and answers
    answers: AnswerFile | None = None  # whose answers; None: other rows


def check_folders(folders: Iterable[Path]) -> None:
    """Refuse folders that hold no study.

    Raises:
        InputError: There is no such folder, or no study in it or one folder below.
    """
    for folder in folders:
        if not folder.is_dir():
            raise InputError(
                f"{folder}: expected a study's results folder, or a folder of such, found none."
            )
        if not list(_roots(folder)):
            raise InputError(
                f"{folder}: expected a study.yaml there or one folder below, found none. Give a "
                "folder that `ahalab run` or `ahalab train` writes to."
            )


def find_studies(folders: Iterable[Path]) -> tuple[list[Study], list[BrokenStudy]]:
    """Return the studies in some folders: each folder itself, or those right below it."""
    found: dict[str, Study] = {}
    broken: dict[Path, BrokenStudy] = {}
    for folder in folders:
        for root in _roots(folder):
            try:
                study = _opened(root, _version(StudyPaths(root).plan))
            except InputError as error:
                broken[root] = BrokenStudy(root, str(error))
            else:
                found.setdefault(study.id, study)
    return list(found.values()), list(broken.values())


@lru_cache(maxsize=1_000)
def _opened(root: Path, version: tuple[int, int, int] | None) -> Study:
    """Open a study; its plan is read again only where `version` says that it is another file.

    This is asked every second, and reading a plan takes some 50 ms.
    """
    paths = StudyPaths(root)
    return Study(study_id(root), paths, load_plan(paths.plan))


def _version(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ino


def _roots(folder: Path) -> Iterator[Path]:
    if StudyPaths(folder).plan.is_file():
        yield folder
        return
    try:
        below = sorted(path for path in folder.iterdir() if path.is_dir())
    except OSError:  # it was removed, or may not be read, since the viewer began
        return
    yield from (path for path in below if StudyPaths(path).plan.is_file())


def sources(study: Study) -> Iterator[Source]:
    """Yield every row file of a study, also those that are not there yet.

    Prompts come first, because rows name them; rollouts, which are most, last.
    """
    paths, plan = study.paths, study.plan
    for split in prompts_asked(plan):
        yield Source("prompt", f"prompts/{split}", paths.prompts(split))
    for cell in training_cells(plan):
        run = run_paths(paths, cell)
        yield Source("step", f"{cell.name}/steps", run.steps, cell)
        yield Source("timing", f"{cell.name}/timings", run.timings, cell)
    for file in answer_files(plan, paths):
        yield Source("answer", file.name, file.paths.answers, answers=file)
    for cell in training_cells(plan):
        run = run_paths(paths, cell)
        yield Source("rollout", f"{cell.name}/rollouts", run.rollouts, cell)
