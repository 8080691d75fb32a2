"""The summary of one training run, recomputed from its rows."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

from ahalab.records.base import Record
from ahalab.records.run import Alarm


class Trend(Record, frozen=True, kw_only=True):
    """One quantity at the start and at the end of a run (means over a fifth of the steps)."""

    first: float | None
    last: float | None


class Spike(Record, frozen=True, kw_only=True):
    """A step whose gradient norm or KL is far above that of the steps before."""

    figure: Literal["grad_norm", "kl"]
    step: int
    value: float
    median_before: float  # of the values above 0 among the steps before
    prompt_ids: tuple[str, ...]  # of the batch that the step learned from


class ValidationPoint(Record, frozen=True, kw_only=True):
    """Greedy accuracy on the validation split at one checkpoint."""

    step: int  # optimizer steps done
    prompts: int
    strict_fraction: float
    lenient_fraction: float
    truncated_fraction: float


class Diagnostics(Record, frozen=True, kw_only=True):
    """What the reward, the groups, the lengths and the parsers did over a run."""

    schema: Literal["ahalab.diagnostics/1"] = "ahalab.diagnostics/1"
    rules_version: str  # of the rules that summarise and raise alarms
    arm: str
    seed: int
    steps: int
    rollouts: int
    reward: Trend
    strict: Trend
    lenient: Trend
    historical: Trend
    formatted: Trend  # rollouts that meet the asked format
    truncated: Trend
    length_tokens: Trend
    length_right_tokens: Trend
    length_wrong_tokens: Trend
    unique_completions: Trend
    repetition: Trend
    reflection: Trend  # rollouts with a reflection marker
    entropy: Trend
    entropy_slope: float | None  # least-squares change per step
    components: dict[str, Trend]
    component_correlations: dict[str, dict[str, float | None]]  # Pearson's r over rollouts
    zero_variance_fraction: float | None  # groups, whole run
    all_right_fraction: float | None  # groups, whole run, by the evaluation scorer, strict
    all_wrong_fraction: float | None
    mixed_fraction: float | None
    unrewarded_fraction: float | None  # rollouts without a reward
    paid_though_wrong_fraction: float | None  # training parser correct, evaluation scorer not
    unpaid_though_right_fraction: float | None
    wrong_advantage_fraction: float | None
    adapter_effect_norm: float | None  # Frobenius norm of scaled B @ A over all modules
    spikes: tuple[Spike, ...]
    alarms: tuple[Alarm, ...]
    # By checkpoint; absent when the plan asks for no validation.
    validation: tuple[ValidationPoint, ...] | UnsetType = UNSET
