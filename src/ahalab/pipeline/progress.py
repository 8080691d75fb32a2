"""Shows how far a study is: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

LINE_SECONDS = 15.0


class StageProgress:
    """One stage's progress on stderr; silent when `show` is off, as for a job of `ahalab run`."""

    def __init__(
        self, stage: str, total: int, unit: str, done: int = 0, *, show: bool = True
    ) -> None:
        self.stage = stage
        self.total = total
        self.unit = unit
        self.done = done
        self._began_with = done
        self._began = time.monotonic()
        self._told = self._began
        console = Console(stderr=True)
        self._bar = (
            Progress(
                TextColumn("{task.description:<10}"),
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                TextColumn("{task.fields[unit]} {task.fields[rate]}"),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
                console=console,
            )
            if show and console.is_terminal
            else None
        )
        self._console = console if show else Console(quiet=True)

    def __enter__(self) -> Self:
        """Start to show."""
        if self._bar is not None:
            self._bar.start()
            self._task = self._bar.add_task(
                self.stage, total=self.total, completed=self.done, unit=self.unit, rate=""
            )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop to show, leaving the last state on the screen."""
        if self._bar is not None:
            self._bar.stop()
        elif error is None:
            self._line()

    def advance(self, count: int) -> None:
        """Add to what is done."""
        self.update(self.done + count)

    def update(self, done: int) -> None:
        """Set what is done."""
        self.done = done
        if self._bar is not None:
            self._bar.update(self._task, completed=done, rate=f"{self._rate():.1f}/s")
        elif time.monotonic() - self._told > LINE_SECONDS:
            self._line()

    def _rate(self) -> float:
        return (self.done - self._began_with) / max(time.monotonic() - self._began, 1e-9)

    def _line(self) -> None:
        self._told = time.monotonic()
        rate = self._rate()
        left = f", {(self.total - self.done) / rate:.0f} s left" if rate > 0 else ""
        self._console.print(
            f"{self.stage}: {self.done} of {self.total} {self.unit}, {rate:.1f}/s{left}",
            markup=False,
            highlight=False,
        )
