"""Shows how training goes while it goes: steps, rewards, accuracy, dead groups, tokens, time left.

One row per run that trains now, so that arms, whose rewards are not comparable, are never averaged.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ahalab.records.step import Step

LINE_SECONDS = 15.0
REFRESHES = 2  # a second
BAR_WIDTH = 24


@dataclass(slots=True)
class RunningCell:
    """What is known of one run that trains now."""

    step: int = 0
    figures: Step | None = None  # the last step that generated: others have no figures
    tokens_from: int | None = None  # the trainer's count when this process first saw it
    tokens: int = 0

    def take(self, step: Step) -> None:
        """Take in the latest step."""
        self.step = step.step
        if step.has_figures:
            self.figures = step
        if step.tokens is None:
            return
        if self.tokens_from is None or step.tokens < self.tokens_from:  # rows cut by a resume
            self.tokens_from = 0 if step.step == 1 else step.tokens
        self.tokens = step.tokens

    @property
    def tokens_here(self) -> int:
        """Tokens since this process began to look."""
        return self.tokens - (self.tokens_from or 0)


@dataclass(frozen=True, slots=True)
class Seen:
    """How far training was at one time."""

    time: float
    done: int
    tokens: int


class TrainingProgress:
    """Progress of training on stderr: a live table on a terminal, a line now and then elsewhere.

    Silent when `show` is off, as for a job of `ahalab run`.
    """

    def __init__(self, total: int, done: int = 0, *, show: bool = True) -> None:
        self.total = total
        self.done = done
        self._began = time.monotonic()
        self._told = self._began
        self._base = Seen(self._began, done, 0)  # what speed is measured from
        self._after_start: Seen | None = None  # the first progress seen
        self._cells: dict[str, RunningCell] = {}
        self._ended_tokens = 0  # of runs that are no longer shown
        self._console = Console(stderr=True) if show else Console(quiet=True)
        self._live: Live | None = None
        # Not `console.is_terminal`, which FORCE_COLOR overrules: a log gets no control codes.
        if show and sys.stderr.isatty() and not self._console.is_dumb_terminal:
            self._live = Live(
                get_renderable=self._table,
                console=self._console,
                refresh_per_second=REFRESHES,
            )

    def __enter__(self) -> Self:
        """Start to show."""
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop to show, leaving the last state on the screen."""
        if self._live is not None:
            self._live.stop()
        elif error is None:
            self._line()

    def on_step(self, name: str, step: Step) -> None:
        """Take in a step of the one run that trains in this process."""
        if name not in self._cells and step.step > 1:
            self._base = Seen(self._began, step.step - 1, 0)  # resumed: no speed of ours
        self.update({name: (step,)}, step.step)

    def update(self, latest: Mapping[str, Sequence[Step]], done: int) -> None:
        """Take in the latest steps of every run that trains now, and the steps done in all."""
        self.done = done
        for name in [name for name in self._cells if name not in latest]:
            self._ended_tokens += self._cells.pop(name).tokens_here
        for name, steps in latest.items():
            cell = self._cells.setdefault(name, RunningCell())
            for step in steps:
                cell.take(step)
        if self.done > self._base.done and self._after_start is None:
            self._after_start = Seen(time.monotonic(), self.done, self._tokens())
        if self._live is None and time.monotonic() - self._told > LINE_SECONDS:
            self._line()

    def _tokens(self) -> int:
        return self._ended_tokens + sum(cell.tokens_here for cell in self._cells.values())

    def _rates(self) -> tuple[float, float]:
        """Return steps and tokens a second, over all runs.

        Once there are two steps, the start (imports, the model) is left out.
        """
        tokens, now = self._tokens(), time.monotonic()
        by_steps = by_tokens = self._base
        if self._after_start is not None:
            by_steps = self._after_start if self.done > self._after_start.done else by_steps
            by_tokens = self._after_start if tokens > self._after_start.tokens else by_tokens
        steps_rate = (self.done - by_steps.done) / max(now - by_steps.time, 1e-9)
        return steps_rate, (tokens - by_tokens.tokens) / max(now - by_tokens.time, 1e-9)

    def _line(self) -> None:
        self._told = time.monotonic()
        steps, tokens = self._rates()
        left = f", {clock((self.total - self.done) / steps)} left" if steps > 0 else ""
        parts = [f"training: {self.done} of {self.total} steps, {tokens:.0f} tokens/s{left}"]
        parts += [f"{name} {_told(cell)}" for name, cell in self._cells.items()]
        # Written as it is: a console would wrap it.
        if not self._console.quiet:
            self._console.file.write("; ".join(parts) + "\n")
            self._console.file.flush()

    def _table(self) -> Group:
        steps, tokens = self._rates()
        left = clock((self.total - self.done) / steps) if steps > 0 else "-:--"
        head = Table.grid(padding=(0, 1))
        head.add_row(
            "training",
            ProgressBar(total=self.total, completed=self.done, width=BAR_WIDTH),
            f"{self.done}/{self.total}",
            f"{tokens:,.0f} tokens/s" if tokens else "- tokens/s",
            clock(time.monotonic() - self._began),
            f"left {left}",
        )
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("run", overflow="ellipsis", no_wrap=True)
        for column in ("step", "reward", "strict", "dead", "cut"):
            table.add_column(column, justify="right", no_wrap=True)
        table.add_column("components", overflow="fold")
        for name, cell in self._cells.items():
            table.add_row(Text(name), str(cell.step), *_figures(cell))
        return Group(head, table) if self._cells else Group(head)


def _figures(cell: RunningCell) -> tuple[str, str, str, str, Text]:
    """Return reward, strict accuracy, dead groups, truncation and components of a run."""
    step = cell.figures
    if step is None:
        return "-", "-", "-", "-", Text("")
    return (
        _number(step.reward_mean),
        _share(step.strict_fraction),
        _share(step.zero_variance_fraction),
        _share(step.truncated_fraction),
        Text(", ".join(f"{name} {_number(value)}" for name, value in step.components.items())),
    )


def _told(cell: RunningCell) -> str:
    """Return one run on one line."""
    reward, strict, dead, cut, components = _figures(cell)
    return (
        f"step {cell.step}: reward {reward} ({components.plain}), strict {strict}, "
        f"dead groups {dead}, cut {cut}"
    )


def clock(seconds: float) -> str:
    """Return a duration as m:ss, or h:mm:ss."""
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"
