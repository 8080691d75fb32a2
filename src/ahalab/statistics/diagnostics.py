"""Summarises one training run from its rows."""

from __future__ import annotations

import math
import statistics as stdlib
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any, cast

from msgspec import UNSET

from ahalab.records.diagnostics import Diagnostics, Trend
from ahalab.records.rollout import Rollout
from ahalab.records.step import Step
from ahalab.records.validation import ValidationAnswer
from ahalab.statistics.alarms import Evidence, fifth, find_spikes, raised
from ahalab.statistics.training import (
    all_right,
    all_wrong,
    fraction,
    groups_of,
    mean,
    paid_though_wrong,
    unpaid_though_right,
    wrong_advantage_fraction,
    zero_variance,
)
from ahalab.statistics.validation import validation_points

RULES_VERSION = "2"  # rises with every change that summarises the same rows otherwise

TRENDS = {
    "reward": "reward_mean",
    "strict": "strict_fraction",
    "lenient": "lenient_fraction",
    "historical": "historical_fraction",
    "formatted": "formatted_fraction",
    "truncated": "truncated_fraction",
    "length_tokens": "length_mean_tokens",
    "length_right_tokens": "length_right_tokens",
    "length_wrong_tokens": "length_wrong_tokens",
    "unique_completions": "unique_completions",
    "repetition": "repetition_mean",
    "reflection": "reflection_fraction",
    "entropy": "entropy",
}
"""Trend of the summary -> figure of a step."""


def diagnose(
    arm: str,
    seed: int,
    steps: Sequence[Step],
    rollouts: Sequence[Rollout],
    effect_norm: float | None,
    validation: Sequence[ValidationAnswer] = (),
) -> Diagnostics:
    """Summarise a run.

    Args:
        arm: Name of the arm.
        seed: Training seed.
        steps: Rows of steps.jsonl, in order.
        rollouts: Rows of rollouts.jsonl, in order.
        effect_norm: Frobenius norm of the adapter's scaled B @ A; None when it is not at hand.
        validation: Rows of validation.jsonl; none when the plan asks for none.
    """
    groups = groups_of(rollouts)
    trends: dict[str, Any] = {
        name: _trend(steps, _figure(figure)) for name, figure in TRENDS.items()
    }
    names = list(rollouts[0].components) if rollouts else []
    dead = mean(float(zero_variance(g)) for g in groups)
    spikes = find_spikes(steps, groups)
    evidence = Evidence(
        steps, groups, trends["reward"], trends["strict"], trends["lenient"], trends["formatted"],
        trends["truncated"], trends["entropy"], dead, spikes, effect_norm,
    )  # fmt: skip
    return Diagnostics(
        rules_version=RULES_VERSION,
        arm=arm,
        seed=seed,
        steps=len(steps),
        rollouts=len(rollouts),
        **trends,
        components={name: _trend(steps, _component(name)) for name in names},
        component_correlations=_correlations(rollouts, names),
        entropy_slope=_slope([(s.step, s.entropy) for s in steps if s.entropy is not None]),
        zero_variance_fraction=dead,
        all_right_fraction=mean(float(all_right(g)) for g in groups),
        all_wrong_fraction=mean(float(all_wrong(g)) for g in groups),
        mixed_fraction=mean(float(not all_right(g) and not all_wrong(g)) for g in groups),
        unrewarded_fraction=fraction(rollouts, lambda r: r.reward is None),
        paid_though_wrong_fraction=fraction(rollouts, paid_though_wrong),
        unpaid_though_right_fraction=fraction(rollouts, unpaid_though_right),
        wrong_advantage_fraction=wrong_advantage_fraction(rollouts),
        adapter_effect_norm=effect_norm,
        spikes=spikes,
        alarms=raised(evidence),
        validation=validation_points(validation) or UNSET,
    )


def _trend(steps: Sequence[Step], figure: Callable[[Step], float | None]) -> Trend:
    """Return the mean of a figure over the first and over the last fifth of the steps."""
    width = fifth(steps)

    def over(part: Sequence[Step]) -> float | None:
        return mean(v for s in part if (v := figure(s)) is not None)

    return Trend(first=over(steps[:width]), last=over(steps[-width:]))


def _figure(name: str) -> Callable[[Step], float | None]:
    return lambda step: cast("float | None", getattr(step, name))


def _component(name: str) -> Callable[[Step], float | None]:
    return lambda step: step.components.get(name)


def _correlations(
    rollouts: Sequence[Rollout], names: Sequence[str]
) -> dict[str, dict[str, float | None]]:
    """Return Pearson's r of every two components over the rollouts that have both.

    None where one of them never varies.
    """
    found: dict[str, dict[str, float | None]] = {}
    for one, other in combinations(names, 2):
        pairs = [
            (a, b)
            for r in rollouts
            if (a := r.components[one].value) is not None
            and (b := r.components[other].value) is not None
        ]
        found.setdefault(one, {})[other] = _pearson(pairs)
    return found


def _pearson(pairs: Sequence[tuple[float, float]]) -> float | None:
    if len(pairs) < 2 or any(len({p[i] for p in pairs}) < 2 for i in (0, 1)):
        return None
    return stdlib.correlation([a for a, _ in pairs], [b for _, b in pairs])


def _slope(points: Sequence[tuple[int, float]]) -> float | None:
    """Return the least-squares change per step; None below two steps."""
    if len(points) < 2:
        return None
    slope = stdlib.linear_regression([x for x, _ in points], [y for _, y in points]).slope
    return slope if math.isfinite(slope) else None
