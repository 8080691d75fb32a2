"""What is recorded of one training run: one arm, one seed."""

from __future__ import annotations

from typing import Any, Literal

from ahalab.records.base import Record


class Alarm(Record, frozen=True, kw_only=True):
    """Something in a run that a reader must know before believing its curve."""

    name: str  # stable, dotted-free
    evidence: str
    remedy: str


class Attempt(Record, frozen=True, kw_only=True):
    """One start of the training process; attempts are listed, never erased."""

    number: int
    started_utc: str
    steps_found: int  # committed when it began; those after the last checkpoint ran again


class RunRecord(Record, frozen=True, kw_only=True):
    """Everything that identifies a run and what it used."""

    schema: Literal["ahalab.run/1"] = "ahalab.run/1"
    plan_digest: str
    arm: str
    control: bool
    components: dict[str, float]  # component name -> weight
    rewards: dict[str, str]  # own reward -> digest of the source that ran
    seed: int
    like: str | None  # the pilot whose prompts, order and configuration this run reuses
    requested_grpo: dict[str, Any]  # as the plan asked
    effective_grpo: dict[str, Any]  # every field of GRPOConfig as TRL held it
    lean_step: str  # "on", or why every row entered the training pass
    effective_lora: dict[str, Any]
    model_id: str
    model_revision: str | None
    base_digest: str
    tokenizer_digest: str
    template_digest: str
    scorer_version: str
    training_parser_version: str
    versions: dict[str, str]
    device: str
    dtype: str
    threads: int
    git_commit: str | None
    started_utc: str
    finished_utc: str
    attempts: tuple[Attempt, ...]
    steps_done: int
    rollouts_written: int
    rollouts_expected: int  # the trainer's own count of completions
    adapter_digest: str
    alarms: tuple[Alarm, ...]
