"""The summary of one training run, recomputed from its rows."""

from __future__ import annotations

from typing import Literal

from ahalab.records.base import Record
from ahalab.records.run import Alarm


class Trend(Record, frozen=True, kw_only=True):
    """One quantity at the start and at the end of a run (means over a fifth of the steps)."""

    first: float | None
    last: float | None


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
    truncated: Trend
    length_tokens: Trend
    entropy: Trend
    components: dict[str, Trend]
    zero_variance_fraction: float | None  # groups, whole run
    paid_though_wrong_fraction: float | None  # training parser correct, evaluation scorer not
    unpaid_though_right_fraction: float | None
    wrong_advantage_fraction: float | None
    reflection_fraction: float | None
    adapter_effect_norm: float | None  # Frobenius norm of scaled B @ A over all modules
    alarms: tuple[Alarm, ...]
