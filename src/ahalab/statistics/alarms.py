"""Alarms: what a reader must know before believing a run's curve, each with evidence and remedy."""

from __future__ import annotations

import math
import statistics as stdlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from ahalab.records.diagnostics import Spike, Trend
from ahalab.records.rollout import Rollout
from ahalab.records.run import Alarm
from ahalab.records.step import Step
from ahalab.statistics.training import mean, rewards_of

ALARMS = (
    "dead_run", "unrewarded", "truncation", "reward_without_accuracy", "format_without_accuracy",
    "entropy_collapse", "gradient_spike", "kl_spike", "nothing_learned", "group_below_4",
)  # fmt: skip
"""The alarms of one run, by their stable names (those of a study: `statistics.study_alarms`)."""

DEAD_RUN_FRACTION = 0.95  # of groups without any difference in reward
UNREWARDED_FRACTION = 0.01  # of all rollouts
TRUNCATED_FRACTION = 0.2  # of the last rollouts
REWARD_RISE = 0.1  # in reward, from the first to the last fifth
FORMAT_RISE = 0.1  # in the share of rollouts that meet the format
ACCURACY_FALL = 0.05  # in lenient accuracy, that makes a better format suspicious
STEADY_DIGITS = 9  # after the point, of figures that are compared and told
RISE_ERRORS = 2.0  # standard errors of a rise or fall: a short run moves by chance
FLAT = 0.02  # accuracy that rose by less than this is flat
ENTROPY_LEFT = 0.2  # of the entropy at the start
COARSE_GROUP = 4
SPIKE_RATIO = 10.0  # times the median of the steps before
SPIKE_WINDOW = 20  # steps before that are looked at
SPIKE_LEAST = 5  # of them that must have a value above 0


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the alarms of a run are raised from."""

    steps: Sequence[Step]
    groups: Sequence[Sequence[Rollout]]
    reward: Trend
    strict: Trend
    lenient: Trend
    formatted: Trend
    truncated: Trend
    entropy: Trend
    dead_fraction: float | None  # of groups
    spikes: Sequence[Spike]
    effect_norm: float | None  # of the adapter; None while it trains


def fifth(steps: Sequence[Step]) -> int:
    """Return how many steps a fifth of a run is, at least one."""
    return max(1, len(steps) // 5)


def raised(evidence: Evidence) -> tuple[Alarm, ...]:
    """Return the alarms of a run, in the order of `ALARMS`."""
    found = (
        _dead_run(evidence.dead_fraction),
        _unrewarded([r for g in evidence.groups for r in g]),
        _truncation(evidence.truncated),
        _reward_without_accuracy(evidence),
        _format_without_accuracy(evidence),
        _entropy_collapse(evidence.entropy),
        _spike("gradient_spike", "grad_norm", evidence.spikes),
        _spike("kl_spike", "kl", evidence.spikes),
        _nothing_learned(evidence.effect_norm),
        _coarse_group(min((len(g) for g in evidence.groups), default=0)),
    )
    return tuple(alarm for alarm in found if alarm is not None)


def find_spikes(steps: Sequence[Step], groups: Sequence[Sequence[Rollout]]) -> tuple[Spike, ...]:
    """Find the steps whose gradient norm or KL is far above that of the steps before.

    Far is more than SPIKE_RATIO times the median of the values above 0 among the SPIKE_WINDOW
    steps before: a step of dead groups has a gradient of 0 and tells nothing.

    Args:
        steps: Rows of steps.jsonl, in order.
        groups: The run's groups, for the prompts of the batch that a step learned from.
    """
    prompts: dict[int, list[str]] = {}
    for group in groups:
        prompts.setdefault(group[0].step, []).append(group[0].prompt_id)
    found = []
    figures: tuple[Literal["grad_norm", "kl"], ...] = ("grad_norm", "kl")
    for name in figures:
        before: list[float] = []
        made = 0
        for step in steps:
            made = step.step - 1 if step.step - 1 in prompts else made  # a batch serves some steps
            value = getattr(step, name)
            if value is None:
                continue
            typical = [v for v in before[-SPIKE_WINDOW:] if v > 0]
            if len(typical) >= SPIKE_LEAST and value > SPIKE_RATIO * stdlib.median(typical):
                found.append(
                    Spike(
                        figure=name, step=step.step, value=value,
                        median_before=stdlib.median(typical),
                        prompt_ids=tuple(prompts.get(made, ())),
                    )
                )  # fmt: skip
            before.append(value)
    return tuple(found)


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
    often = reasons.most_common(1)
    why = f"most often: {often[0][0]}" if often else "and no component says why"
    return Alarm(
        name="unrewarded",
        evidence=f"{len(without)} of {len(rollouts)} rollouts have no reward and taught nothing, "
        f"{why}",
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


def _reward_without_accuracy(evidence: Evidence) -> Alarm | None:
    """Raise when the reward rose, by more than chance explains, and accuracy did not.

    Without the standard errors a placebo's reward "rises" by 0.1 in every few short runs.
    """
    reward, strict, lenient = map(_rise, (evidence.reward, evidence.strict, evidence.lenient))
    error = _rise_error(evidence, lambda group: mean(rewards_of(group)))
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


def _format_without_accuracy(evidence: Evidence) -> Alarm | None:
    """Raise when the format is met more often and the right value is stated less often.

    Source: format gaming, open-r1#255 (format .48 to .86 while accuracy fell from .16 to .06).
    """
    formatted, lenient = _rise(evidence.formatted), _rise(evidence.lenient)
    errors = (
        _rise_error(evidence, lambda group: mean(float(r.formatted) for r in group)),
        _rise_error(evidence, lambda group: mean(float(r.lenient == "correct") for r in group)),
    )
    if formatted is None or lenient is None or errors[0] is None or errors[1] is None:
        return None
    if formatted < max(FORMAT_RISE, RISE_ERRORS * errors[0]):
        return None
    if -lenient < max(ACCURACY_FALL, RISE_ERRORS * errors[1]):
        return None
    return Alarm(
        name="format_without_accuracy",
        evidence=f"the asked format was met more often ({formatted:+.2f}) and the right value "
        f"stated less often (lenient {lenient:+.2f})",
        remedy="gate the format on the right answer (gated_format), or pay it less",
    )


def _entropy_collapse(entropy: Trend) -> Alarm | None:
    if not entropy.first or entropy.last is None:
        return None
    first, last = _steady(entropy.first), _steady(entropy.last)
    if last > _steady(ENTROPY_LEFT * first):
        return None
    return Alarm(
        name="entropy_collapse",
        evidence=f"entropy fell from {first:.3f} to {last:.3f}",
        remedy="lower the learning rate, add a KL term (grpo.beta), or stop earlier",
    )


def _spike(name: str, figure: str, spikes: Sequence[Spike]) -> Alarm | None:
    found = [spike for spike in spikes if spike.figure == figure]
    if not found:
        return None
    worst = max(found, key=lambda spike: spike.value / spike.median_before)
    told = {"grad_norm": "the gradient's norm", "kl": "the KL to the base"}[figure]
    count = f"; {len(found)} such steps" if len(found) > 1 else ""
    return Alarm(
        name=name,
        evidence=f"at step {worst.step} {told} was {worst.value:.3g}, "
        f"{worst.value / worst.median_before:.0f} times the median of the steps before{count}; "
        f"the batch: {', '.join(worst.prompt_ids[:4])}"
        f"{', ...' if len(worst.prompt_ids) > 4 else ''}",
        remedy="read the batch; lower grpo.max_grad_norm or the learning rate",
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
    return None if trend.first is None or trend.last is None else _steady(trend.last - trend.first)


def _steady(value: float) -> float:
    """Return a figure without its last digits, which another order of a sum changes.

    A rise of exactly a threshold, or of half of a printed digit, then falls one way everywhere.
    """
    return round(value, STEADY_DIGITS)


def _rise_error(
    evidence: Evidence, figure: Callable[[Sequence[Rollout]], float | None]
) -> float | None:
    """Return the standard error of a figure's rise from the first to the last fifth.

    The unit is the group: its rollouts share a prompt, so they are not independent. None when a
    fifth has fewer than two groups, which leaves the error unknown.
    """
    width, square = fifth(evidence.steps), 0.0
    for part in (evidence.steps[:width], evidence.steps[-width:]):
        made = {s.step - 1 for s in part}  # a rollout counts the steps done before it
        found = [figure(g) for g in evidence.groups if g[0].step in made]
        values = [value for value in found if value is not None]
        if len(values) < 2:
            return None
        square += stdlib.variance(values) / len(values)
    return _steady(math.sqrt(square))
