"""Watches runs that train in other processes, through what they have committed to disk."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ahalab.plain_files import open_plain
from ahalab.plan.cells import Cell
from ahalab.records.base import decode_row
from ahalab.records.step import Step
from ahalab.store.journal import read_journal
from ahalab.store.layout import StudyPaths
from ahalab.store.reading import journal_path
from ahalab.tasks.places import run_paths

TAIL_BYTES = 64 << 10  # of a step file: some twenty rows and more


@dataclass(slots=True)
class Watched:
    """One run as it was last seen."""

    attempts_before: int  # made before anyone watched
    journal_bytes: int = -1
    rows: int = 0
    runs: bool = False
    latest: tuple[Step, ...] = ()  # the last step with figures, and the last one


@dataclass(slots=True)
class Watch:
    """The step files of a study; a file is read again only when its journal grew."""

    paths: StudyPaths
    cells: Sequence[Cell]
    seen: dict[str, Watched] = field(default_factory=dict)

    def look(self) -> None:
        """Read what was committed since the last look."""
        for cell in self.cells:
            steps = run_paths(self.paths, cell).steps
            journal = journal_path(steps)
            size = _size(journal)
            if cell.name in self.seen and size == self.seen[cell.name].journal_bytes:
                continue
            state = read_journal(journal)
            watched = self.seen.setdefault(cell.name, Watched(len(state.attempts)))
            watched.journal_bytes, watched.rows = size, state.rows
            watched.runs = state.seal is None and len(state.attempts) > watched.attempts_before
            if watched.runs:
                watched.latest = latest_steps(steps, state.end) or watched.latest

    @property
    def done(self) -> int:
        """Steps committed in all."""
        return sum(watched.rows for watched in self.seen.values())

    @property
    def running(self) -> dict[str, tuple[Step, ...]]:
        """Return the latest steps of every run that began since the first look and goes on."""
        return {name: watched.latest for name, watched in self.seen.items() if watched.runs}


def latest_steps(path: Path, end: int) -> tuple[Step, ...]:
    """Return the last committed step, and before it the last that has figures, where another has.

    A step that reused a batch has none. Nothing is returned while the file is being replaced.

    Args:
        path: The step file, not sealed.
        end: Bytes committed, as the journal says.
    """
    start = max(0, end - TAIL_BYTES)
    try:
        with open_plain(path) as file:
            file.seek(start)
            tail = file.read(end - start)
    except OSError:
        return ()
    if len(tail) < end - start:
        return ()
    lines = tail.split(b"\n")[:-1][start > 0 :]  # the first one may be torn
    found: list[Step] = []
    for line in reversed(lines):
        step = decode_row(line, Step, str(path))
        if not found or step.has_figures:
            found.insert(0, step)
        if step.has_figures:
            break
    return tuple(found)


def _size(path: Path) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116 - polled
    except OSError:
        return -1
