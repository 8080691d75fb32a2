"""What a generation batch and a run did, recomputed from rollouts, never the trainer's word."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ahalab.records.rollout import Rollout

SAME_REWARD = 1e-9  # rewards of a group closer than this are equal: no gradient but rounding noise
ADVANTAGE_TOLERANCE = 1e-3  # between an advantage that a trainer applied and the one computed here
FLOAT32 = 1.2e-7  # relative spacing: the trainer holds rewards as float32


def mean(values: Iterable[float]) -> float | None:
    """Return the mean of values, None when there is none."""
    listed = list(values)
    return math.fsum(listed) / len(listed) if listed else None


def fraction(rollouts: Sequence[Rollout], holds: Callable[[Rollout], bool]) -> float | None:
    """Return the fraction of rollouts for which something holds, None when there is no rollout."""
    return mean(1.0 if holds(r) else 0.0 for r in rollouts)


def groups_of(rollouts: Iterable[Rollout]) -> list[list[Rollout]]:
    """Return the rollouts by group: the G completions of one prompt in one step."""
    groups: dict[tuple[int, int], list[Rollout]] = defaultdict(list)
    for rollout in rollouts:
        groups[rollout.step, rollout.group].append(rollout)
    return list(groups.values())


def rewards_of(rollouts: Iterable[Rollout]) -> list[float]:
    """Return the rewards of the rollouts that have one."""
    return [r.reward for r in rollouts if r.reward is not None]


def zero_variance(group: Sequence[Rollout]) -> bool:
    """Say whether all rewards of a group are equal, so that it teaches nothing."""
    rewards = rewards_of(group)
    return not rewards or max(rewards) - min(rewards) <= SAME_REWARD


def all_right(group: Sequence[Rollout]) -> bool:
    """Say whether every answer of a group is right, by the evaluation scorer, strict."""
    return all(r.strict == "correct" for r in group)


def all_wrong(group: Sequence[Rollout]) -> bool:
    """Say whether no answer of a group is right, by the evaluation scorer, strict."""
    return not any(r.strict == "correct" for r in group)


def handed_rewards(rewards: Sequence[float | None]) -> list[float]:
    """Return what a trainer is handed for one group, since it can't be handed an unknown.

    A rollout without a reward gets the mean of the group's rewards: its advantage is 0, and the
    mean that the others are compared with stays theirs. A group without any reward gets 0 for all.

    Args:
        rewards: Rewards of the group, shape (G,); None for a rollout without one.

    Returns:
        Finite numbers, shape (G,).
    """
    centre = mean(r for r in rewards if r is not None) or 0.0
    return [centre if r is None else r for r in rewards]


def wrong_advantage_fraction(rollouts: Sequence[Rollout]) -> float | None:
    """Return the share of all positive advantage that falls on wrong answers (lenient reading).

    Groups of equal reward are left out: their advantage is rounding noise over a small constant.
    None when no rollout has a positive advantage.
    """
    live = [r for g in groups_of(rollouts) if not zero_variance(g) for r in g if r.advantage > 0]
    total = math.fsum(r.advantage for r in live)
    if total == 0:
        return None
    return math.fsum(r.advantage for r in live if r.lenient != "correct") / total


def paid_though_wrong(rollout: Rollout) -> bool:
    """Say whether the training parser calls correct what the lenient reading does not."""
    return rollout.historical == "correct" and rollout.lenient != "correct"


def unpaid_though_right(rollout: Rollout) -> bool:
    """Say whether the training parser misses what the evaluation scorer, lenient, calls correct."""
    return rollout.historical != "correct" and rollout.lenient == "correct"


def advantages_from_rewards(rewards: Sequence[float], scale: str) -> list[float] | None:
    """Return the advantages of one group as TRL computes them, to check what the trainer applied.

    Args:
        rewards: Rewards of the group, shape (G,).
        scale: TRL's `scale_rewards`: `group` divides by the sample deviation + 1e-4, `none` does
            not.

    Returns:
        Advantages, shape (G,); None for `batch`, which needs more than the group, and for fewer
        than two rewards, which have no deviation.

    Source:
        TRL GRPOTrainer._generate_and_score_completions (mean and std over the group, ddof 1).
    """
    if scale not in {"group", "none"} or len(rewards) < 2:
        return None
    centre = math.fsum(rewards) / len(rewards)
    centred = [r - centre for r in rewards]
    if scale == "none":
        return centred
    deviation = math.sqrt(math.fsum(c * c for c in centred) / (len(rewards) - 1))
    return [c / (deviation + 1e-4) for c in centred]


def generation_advantages(
    groups: Sequence[Sequence[float | None]], scale: str
) -> list[list[float]] | None:
    """Return the advantages of a generation batch as TRL computes them.

    Args:
        groups: Rewards by group, shape (P, G); None for a rollout without one.
        scale: TRL's `scale_rewards`: as in `advantages_from_rewards`, or `batch`, which divides by
            the sample deviation of the whole batch + 1e-4.

    Returns:
        Advantages, shape (P, G); None for another scale, or for groups of one.
    """
    handed = [handed_rewards(group) for group in groups]
    found = []
    for rewards in handed:
        advantages = advantages_from_rewards(rewards, "none" if scale == "batch" else scale)
        if advantages is None:
            return None
        found.append(advantages)
    if scale != "batch":
        return found
    spread = _deviation([reward for rewards in handed for reward in rewards]) + 1e-4
    return [[centred / spread for centred in advantages] for advantages in found]


def advantage_tolerance(rewards: Sequence[float]) -> float:
    """Return how far the trainer's advantages of a group may lie from ours.

    Its float32 rewards differ from ours in the last digit, and a small deviation magnifies that.

    Args:
        rewards: What the trainer was handed, shape (G,).
    """
    dust = 4 * FLOAT32 * max(abs(r) for r in rewards) / (_deviation(rewards) + 1e-4)
    return max(ADVANTAGE_TOLERANCE, dust)


def _deviation(rewards: Sequence[float]) -> float:
    centre = math.fsum(rewards) / len(rewards)
    return math.sqrt(math.fsum((r - centre) ** 2 for r in rewards) / max(1, len(rewards) - 1))


def step_figures(rollouts: Sequence[Rollout]) -> dict[str, Any]:
    """Return the figures of `records.step.Step` that describe one generation batch.

    All are None for an empty batch (a step that reused an earlier one).
    """
    groups = groups_of(rollouts)
    rewards = rewards_of(rollouts)
    centre = mean(rewards)
    names = list(rollouts[0].components) if rollouts else []
    components = {
        name: mean(v for r in rollouts if (v := r.components[name].value) is not None)
        for name in names
    }
    lengths = [(len(r.completion_ids), r.lenient == "correct") for r in rollouts]
    return {
        "reward_mean": centre,
        "unrewarded_fraction": fraction(rollouts, lambda r: r.reward is None),
        "reward_std": None
        if centre is None
        else math.sqrt(math.fsum((r - centre) ** 2 for r in rewards) / len(rewards)),
        "zero_variance_fraction": mean(float(zero_variance(g)) for g in groups),
        "all_right_fraction": mean(float(all_right(g)) for g in groups),
        "all_wrong_fraction": mean(float(all_wrong(g)) for g in groups),
        "mixed_fraction": mean(float(not all_right(g) and not all_wrong(g)) for g in groups),
        "strict_fraction": fraction(rollouts, lambda r: r.strict == "correct"),
        "lenient_fraction": fraction(rollouts, lambda r: r.lenient == "correct"),
        "historical_fraction": fraction(rollouts, lambda r: r.historical == "correct"),
        "formatted_fraction": fraction(rollouts, lambda r: r.formatted),
        "components": components,
        "truncated_fraction": fraction(rollouts, lambda r: r.finish == "length"),
        "length_mean_tokens": mean(float(n) for n, _ in lengths),
        "length_right_tokens": mean(float(n) for n, right in lengths if right),
        "length_wrong_tokens": mean(float(n) for n, right in lengths if not right),
        "unique_completions": mean(float(len({r.completion for r in g})) for g in groups),
        "repetition_mean": mean(r.repetition for r in rollouts),
        "paid_though_wrong_fraction": fraction(rollouts, paid_though_wrong),
        "unpaid_though_right_fraction": fraction(rollouts, unpaid_though_right),
        "scorer_disagreement_fraction": fraction(
            rollouts, lambda r: (r.historical == "correct") != (r.strict == "correct")
        ),
        "wrong_advantage_fraction": wrong_advantage_fraction(rollouts),
        "reflection_fraction": fraction(rollouts, lambda r: bool(r.reflection)),
    }
