"""What was found before the first step of training; working material, not evidence."""

from __future__ import annotations

from typing import Literal

from ahalab.records.base import Record

Level = Literal["ok", "note", "warning", "refused"]


class PreflightCheck(Record, frozen=True, kw_only=True):
    """One thing that was looked at."""

    # prompts, overlap, shared words, golds, template, base, adapter, memory, arm NAME, trackers
    name: str
    level: Level
    found: str
    remedy: str  # what to do; empty when there is nothing to do
    forcible: bool = True  # `--force` goes on over a refusal; not where training can't begin


class BaseProbe(Record, frozen=True, kw_only=True):
    """What the base wrote to a few training prompts, at the training's sampling settings."""

    prompts: int
    samples: int  # per prompt
    max_new_tokens: int  # the plan's max_completion_length
    cut: int  # completions that met that limit
    unfinished: int  # completions still being written when the time was up
    strict: int  # completions correct by the evaluation scorer
    lenient: int
    seconds: float


class MemoryPart(Record, frozen=True, kw_only=True):
    """One thing that takes memory, and how its size was found."""

    name: str
    bytes: int
    basis: str


class MemoryEstimate(Record, frozen=True, kw_only=True):
    """What one training process takes at its peak, compared with what is there."""

    parts: tuple[MemoryPart, ...]
    bytes: int  # at the peak: of generation and training pass the larger one counts
    processes: int  # side by side
    available_bytes: int | None  # on the device, for all of them; None: not known


class Preflight(Record, frozen=True, kw_only=True):
    """`.work/<study>/preflight.json`."""

    schema: Literal["ahalab.preflight/1"] = "ahalab.preflight/1"
    plan_digest: str
    checks: tuple[PreflightCheck, ...]
    probe: BaseProbe
    memory: MemoryEstimate
    forced: bool  # a refusal was overruled with `--force`
    seconds: float

    @property
    def refused(self) -> tuple[PreflightCheck, ...]:
        """The checks that would make a run worthless."""
        return tuple(check for check in self.checks if check.level == "refused")
