"""Summarises one training run from its rows, and raises the alarms a reader must know of."""

from __future__ import annotations

import math
import statistics as stdlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from ahalab.records.diagnostics import Diagnostics, Trend
from ahalab.records.rollout import Rollout
from ahalab.records.run import Alarm
from ahalab.records.step import Step
from ahalab.statistics.training import (
    fraction,
    groups_of,
    mean,
    paid_though_wrong,
    rewards_of,
    unpaid_though_right,
    wrong_advantage_fraction,
    zero_variance,
)

RULES_VERSION = "2"  # rises with every change that summarises the same rows otherwise
DEAD_RUN_FRACTION = 0.95  # of groups without any difference in reward
UNREWARDED_FRACTION = 0.01  # of all rollouts
TRUNCATED_FRACTION = 0.2  # of the last rollouts
REWARD_RISE = 0.1  # in reward, from the first to the last fifth
RISE_ERRORS = 2.0  # standard errors of that rise: a short run's reward moves by chance
FLAT = 0.02  # accuracy that rose by less than this is flat
ENTROPY_LEFT = 0.2  # of the entropy at the start
COARSE_GROUP = 4


def _fifth(steps: Sequence[Step]) -> int:
    """Return how many steps a fifth of a run is, at least one."""
    return max(1, len(steps) // 5)


def _trend(steps: Sequence[Step], figure: Callable[[Step], float | None]) -> Trend:
    """Return the mean of a figure over the first and over the last fifth of the steps."""
    width = _fifth(steps)

    def over(part: Sequence[Step]) -> float | None:
        return mean(v for s in part if (v := figure(s)) is not None)

    return Trend(first=over(steps[:width]), last=over(steps[-width:]))


def diagnose(
    arm: str,
    seed: int,
    steps: Sequence[Step],
    rollouts: Sequence[Rollout],
    effect_norm: float | None,
) -> Diagnostics:
    """Summarise a run.

    Args:
        arm: Name of the arm.
        seed: Training seed.
        steps: Rows of steps.jsonl, in order.
        rollouts: Rows of rollouts.jsonl, in order.
        effect_norm: Frobenius norm of the adapter's scaled B @ A; None when it is not at hand.
    """
    groups = groups_of(rollouts)
    trends: dict[str, Any] = {
        "reward": _trend(steps, lambda s: s.reward_mean),
        "strict": _trend(steps, lambda s: s.strict_fraction),
        "lenient": _trend(steps, lambda s: s.lenient_fraction),
        "historical": _trend(steps, lambda s: s.historical_fraction),
        "truncated": _trend(steps, lambda s: s.truncated_fraction),
        "length_tokens": _trend(steps, lambda s: s.length_mean_tokens),
        "entropy": _trend(steps, lambda s: s.entropy),
    }
    names = list(rollouts[0].components) if rollouts else []
    dead = mean(float(zero_variance(g)) for g in groups)
    return Diagnostics(
        rules_version=RULES_VERSION,
        arm=arm,
        seed=seed,
        steps=len(steps),
        rollouts=len(rollouts),
        **trends,
        components={n: _trend(steps, lambda s, n=n: s.components.get(n)) for n in names},  # type: ignore[misc]
        zero_variance_fraction=dead,
        paid_though_wrong_fraction=fraction(rollouts, paid_though_wrong),
        unpaid_though_right_fraction=fraction(rollouts, unpaid_though_right),
        wrong_advantage_fraction=wrong_advantage_fraction(rollouts),
        reflection_fraction=fraction(rollouts, lambda r: bool(r.reflection)),
        adapter_effect_norm=effect_norm,
        alarms=_alarms(trends, dead, groups, _rise_error(steps, groups), effect_norm),
    )


def _rise_error(steps: Sequence[Step], groups: Sequence[Sequence[Rollout]]) -> float | None:
    """Return the standard error of the reward's rise from the first to the last fifth.

    The unit is the group: its rollouts share a prompt, so they are not independent. None when a
    fifth has fewer than two groups, which leaves the error unknown.
    """
    width, square = _fifth(steps), 0.0
    for part in (steps[:width], steps[-width:]):
        made = {s.step - 1 for s in part}  # a rollout counts the steps done before it
        found = [mean(rewards_of(g)) for g in groups if g[0].step in made]
        means = [value for value in found if value is not None]
        if len(means) < 2:
            return None
        square += stdlib.variance(means) / len(means)
    return math.sqrt(square)


def _alarms(
    trends: dict[str, Trend],
    dead: float | None,
    groups: Sequence[Sequence[Rollout]],
    rise_error: float | None,
    effect_norm: float | None,
) -> tuple[Alarm, ...]:
    found = [
        _dead_run(dead),
        _unrewarded([r for g in groups for r in g]),
        _truncation(trends["truncated"]),
        _reward_without_accuracy(trends, rise_error),
        _entropy_collapse(trends["entropy"]),
        _nothing_learned(effect_norm),
        _coarse_group(min((len(g) for g in groups), default=0)),
    ]
    return tuple(alarm for alarm in found if alarm is not None)


def _dead_run(dead: float | None) -> Alarm | None:
    if dead is None or dead < DEAD_RUN_FRACTION:
        return None
    return Alarm(
        name="dead_run",
        evidence=f"in {dead:.0%} of groups every reward was equal, so they taught nothing",
        remedy="use prompts of middling difficulty, larger groups, or a reward of more values",
    )


def _unrewarded(rollouts: Sequence[Rollout]) -> Alarm | None:
    without = [r for r in rollouts if r.reward is None]
    if not rollouts or len(without) < UNREWARDED_FRACTION * len(rollouts):
        return None
    reasons = Counter(
        f"{name} ({part.status})"
        for r in without
        for name, part in r.components.items()
        if part.value is None
    )
    return Alarm(
        name="unrewarded",
        evidence=f"{len(without)} of {len(rollouts)} rollouts have no reward and taught nothing, "
        f"most often: {reasons.most_common(1)[0][0]}",
        remedy="mend the reward's code, or the golds and bounds that its status names",
    )


def _truncation(truncated: Trend) -> Alarm | None:
    if truncated.last is None or truncated.last < TRUNCATED_FRACTION:
        return None
    return Alarm(
        name="truncation",
        evidence=f"{truncated.last:.0%} of the last completions were cut by max_completion_length",
        remedy="raise grpo.max_completion_length, or ask for shorter answers",
    )


def _reward_without_accuracy(trends: dict[str, Trend], error: float | None) -> Alarm | None:
    """Raise when the reward rose, by more than chance explains, and accuracy did not.

    Without the standard errors a placebo's reward "rises" by 0.1 in every few short runs.
    """
    reward, strict, lenient = (_rise(trends[n]) for n in ("reward", "strict", "lenient"))
    if reward is None or strict is None or lenient is None or error is None:
        return None
    if reward < max(REWARD_RISE, RISE_ERRORS * error):
        return None
    flat = [n for n, rise in (("strict", strict), ("lenient", lenient)) if rise < FLAT]
    if not flat:
        return None
    return Alarm(
        name="reward_without_accuracy",
        evidence=f"reward rose by {reward:.2f} (standard error {error:.2f}) while "
        f"{' and '.join(flat)} accuracy did not rise: strict {strict:+.2f}, lenient {lenient:+.2f}",
        remedy="read completions of high reward; pay for the answer before paying for its form",
    )


def _entropy_collapse(entropy: Trend) -> Alarm | None:
    if not entropy.first or entropy.last is None or entropy.last > ENTROPY_LEFT * entropy.first:
        return None
    return Alarm(
        name="entropy_collapse",
        evidence=f"entropy fell from {entropy.first:.3f} to {entropy.last:.3f}",
        remedy="lower the learning rate, add a KL term (grpo.beta), or stop earlier",
    )


def _nothing_learned(effect_norm: float | None) -> Alarm | None:
    if effect_norm is None or effect_norm > 0:
        return None
    return Alarm(
        name="nothing_learned",
        evidence="the adapter changes no weight: B @ A is zero in every module",
        remedy="check lora_alpha, target_modules, learning_rate, and groups without a gradient",
    )


def _coarse_group(group: int) -> Alarm | None:
    if group >= COARSE_GROUP or group == 0:
        return None
    coarse = (
        "advantages, divided by the group's deviation, are +-0.7 whatever the gap in reward"
        if group == 2
        else "so few rewards make a coarse baseline"
    )
    return Alarm(
        name="group_below_4",
        evidence=f"groups of {group}: {coarse}",
        remedy="set grpo.num_generations to 4 or more",
    )


def _rise(trend: Trend) -> float | None:
    return None if trend.first is None or trend.last is None else trend.last - trend.first
