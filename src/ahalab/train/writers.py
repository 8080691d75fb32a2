"""The row files of a run, open for writing together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ahalab.records.base import digest
from ahalab.records.plan import Plan
from ahalab.records.rollout import Rollout
from ahalab.records.step import Step, Timing
from ahalab.records.validation import ValidationAnswer
from ahalab.store.layout import RunPaths, StudyPaths
from ahalab.store.rows import RowFile, RowWriter, finished


@dataclass(frozen=True, slots=True)
class RunFiles:
    """The row files of a run."""

    rollouts: RowFile
    steps: RowFile
    timings: RowFile
    validation: RowFile | None = None  # None: the plan asks for none

    def by_name(self) -> dict[str, RowFile]:
        """Return each file under its name."""
        files = {"rollouts": self.rollouts, "steps": self.steps, "timings": self.timings}
        return files | ({"validation": self.validation} if self.validation else {})


@dataclass(frozen=True, slots=True)
class RunWriters:
    """Their writers."""

    rollouts: RowWriter[Rollout]
    steps: RowWriter[Step]
    timings: RowWriter[Timing]
    validation: RowWriter[ValidationAnswer] | None = None

    def by_name(self) -> dict[str, RowWriter[Any]]:
        """Return each writer under the name of its file."""
        writers: dict[str, RowWriter[Any]] = {
            "rollouts": self.rollouts,
            "steps": self.steps,
            "timings": self.timings,
        }
        return writers | ({"validation": self.validation} if self.validation else {})


def run_files(plan: Plan, paths: StudyPaths, run: RunPaths) -> RunFiles:
    """Return what the row files of a run are and belong to."""
    plan_digest = digest(plan)
    broken = paths.broken / run.name

    def file(path: Path, schema: str) -> RowFile:
        return RowFile(path, schema, plan_digest, run.name, broken)

    return RunFiles(
        file(run.rollouts, "rollout/1"),
        file(run.steps, "step/1"),
        file(run.timings, "timing/1"),
        file(run.validation, "validation/1") if plan.validation else None,
    )


@contextmanager
def open_writers(files: RunFiles, batches: Mapping[str, int] | None) -> Iterator[RunWriters]:
    """Open the files, cut to what a checkpoint vouches for.

    Args:
        files: The files.
        batches: Committed batches to keep of each, by name; None to begin again.

    Raises:
        AhaLabError: See `RowWriter`.
    """
    with ExitStack() as stack:
        opened = {n: stack.enter_context(RowWriter[Any](f)) for n, f in files.by_name().items()}
        writers = RunWriters(**opened)
        for name, writer in writers.by_name().items():
            writer.cut(batches[name] if batches else 0)
        yield writers


def seal_left_open(files: RunFiles, batches: Mapping[str, int]) -> None:
    """Seal what a kill between the last checkpoint and the end left open."""
    for name, file in files.by_name().items():
        if not finished(file):
            with RowWriter[Any](file) as writer:
                writer.cut(batches[name])
                writer.seal()
