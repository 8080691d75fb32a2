"""What can be checked apart from the rest: one run, or one answer set, each by its own process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ahalab.plan.cells import Cell, answer_cells, training_cells
from ahalab.plan.schedule import prompts_asked
from ahalab.records.answer import Protocol
from ahalab.records.diagnostics import Diagnostics
from ahalab.records.run import RunRecord
from ahalab.tasks.places import answer_paths, run_paths
from ahalab.verify.journals import JournalFacts
from ahalab.verify.reading import Study


@dataclass(frozen=True, slots=True)
class Share:
    """One run or one answer set; it is in memory as a whole while it is checked."""

    kind: Literal["run", "answers"]
    cell: Cell
    under: str = ""  # or `replay/`
    journal: JournalFacts | None = None  # of the rows

    @property
    def rows(self) -> int:
        """Committed rows."""
        return self.journal.state.rows if self.journal is not None else 0

    @property
    def key(self) -> tuple[str, Cell, str]:
        """What tells it from the others."""
        return self.kind, self.cell, self.under


def read_ahead(study: Study) -> None:
    """Read what several shares are checked with, so that its faults are told once, and here."""
    if study.plan is None:
        return
    for cell in training_cells(study.plan):
        run = run_paths(study.paths, cell)
        study.record(run.record, RunRecord)
        study.record(run.diagnostics, Diagnostics)
    for cell in answer_cells(study.plan):
        for under in ("", "replay/"):
            study.record(answer_paths(study.paths, cell, under).protocol, Protocol)
    for split in prompts_asked(study.plan):
        study.prompts(split)
