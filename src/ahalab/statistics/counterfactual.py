"""What other rewards would have taught from the same rollouts: signs and mass.

Everything here is about advantages, what GRPO multiplies each completion's log-probability with:
two rewards that give the same advantages give the same gradient.
"""
# Axes: K arms, the recorded one first; B rollouts of a generation batch, groups in a row; two
# readings (strict, lenient); two weightings (by response, by the loss).

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ahalab.statistics.inputs import FloatArray
from ahalab.statistics.training import SAME_REWARD, generation_advantages, handed_rewards, mean

BY_RESPONSE = frozenset({"grpo", "sapo"})
BY_TOKEN_OF_BATCH = frozenset({"bnpo", "cispo", "dapo", "vespo"})
BY_TOKEN = frozenset({"dr_grpo", "luspo"})

BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Taught:
    """The advantages that one arm gives a generation batch."""

    rewards: FloatArray  # shape (B,); NaN: no reward
    advantages: FloatArray  # shape (B,), exactly 0 where nothing is taught
    dead_groups: int


def taught(rewards: Sequence[float | None], group_size: int, scale: str) -> Taught:
    """Return the advantages that rewards give, as TRL computes them, free of rounding noise.

    Args:
        rewards: Rewards of a generation batch, shape (B,), groups in a row; None for none.
        group_size: G.
        scale: TRL's `scale_rewards`: group, batch or none.

    Raises:
        ValueError: The scale is not known, or the groups are not whole or of one rollout.
    """
    groups = [rewards[at : at + group_size] for at in range(0, len(rewards), group_size)]
    if group_size < 2 or len(rewards) % group_size:
        raise ValueError(
            f"expected whole groups of 2 rollouts or more, found {len(rewards)} rollouts in groups "
            f"of {group_size}"
        )
    found = generation_advantages(groups, scale)
    if found is None:
        raise ValueError(f"scale_rewards: expected group, batch or none, found {scale!r}")
    dead = 0
    advantages: list[float] = []
    for group, given in zip(groups, found, strict=True):
        handed = handed_rewards(group)
        dead += max(handed) - min(handed) <= SAME_REWARD
        centre = mean(handed) or 0.0
        advantages += [  # what is left of a reward at its group's mean is rounding noise
            0.0 if abs(reward - centre) <= SAME_REWARD else advantage
            for reward, advantage in zip(handed, given, strict=True)
        ]
    known = [np.nan if reward is None else reward for reward in rewards]
    return Taught(np.array(known, dtype=np.float64), np.array(advantages), dead)


def loss_weights(lengths: Sequence[int], cut: Sequence[bool] | None, loss_type: str) -> FloatArray:
    """Return how much the loss weighs each rollout of a generation batch, up to a constant.

    `grpo` averages over each response's tokens, so that responses weigh alike; the others sum over
    tokens. `dapo` and its like divide by the tokens of a batch, here by those of the generation
    batch: which rollouts met in one micro-batch is not recorded.

    Args:
        lengths: Completion tokens, shape (B,).
        cut: Which rollouts were cut, shape (B,), where the loss masks those; else None.
        loss_type: TRL's `loss_type`.

    Returns:
        Weights, shape (B,), at least 0.

    Raises:
        ValueError: How the loss is normalised is not known.

    Source:
        TRL GRPOTrainer._compute_loss.
    """
    tokens = np.array(lengths, dtype=np.float64)
    if cut is not None:
        tokens[np.array(cut, dtype=bool)] = 0.0
    if loss_type in BY_RESPONSE:
        return (tokens > 0).astype(np.float64) / max(1, len(tokens))
    if loss_type in BY_TOKEN_OF_BATCH:
        return tokens / max(1.0, float(tokens.sum()))
    if loss_type in BY_TOKEN:
        return tokens / max(1, len(tokens))
    known = ", ".join(sorted(BY_RESPONSE | BY_TOKEN_OF_BATCH | BY_TOKEN))
    raise ValueError(f"loss_type: expected one of {known}, found {loss_type!r}")


@dataclass(frozen=True, slots=True)
class Batch:
    """A generation batch under every arm."""

    taught: Sequence[Taught]  # shape (K,), the recorded arm first
    right: BoolArray  # by the evaluation scorer, strict and lenient, shape (2, B)
    weights: FloatArray  # by response (all 1) and by the loss, shape (2, B)
    groups: int


@dataclass(frozen=True, slots=True)
class MassShares:
    """How much of an arm's mass lies where it should not, as fractions; None: it has no mass."""

    absolute_on_wrong: float | None  # of the sum of |advantage|
    positive_on_wrong: float | None  # of the sum of positive advantages: what is reinforced
    negative_on_right: float | None  # of the sum of negative ones: what is discouraged


@dataclass(frozen=True, slots=True)
class ArmFigures:
    """What one arm would have paid and taught over the rollouts of a run."""

    paid_right: float | None  # mean reward of right answers, lenient
    paid_wrong: float | None
    unrewarded: float  # fraction of rollouts
    dead: float  # fraction of groups
    magnitude: float  # mean |advantage| over rollouts
    flipped: float  # fraction of rollouts: the sign is the opposite of the recorded one
    silenced: float  # fraction: the recorded advantage is not 0, this one is
    awakened: float  # fraction: the recorded one is 0, this one is not
    shares: tuple[tuple[MassShares, ...], ...]  # by reading (strict, lenient) and weighting


class Tally:
    """Sums over the generation batches of one run: memory does not grow with the rollouts."""

    def __init__(self, arms: int) -> None:
        self.rollouts = self.groups = 0
        self._dead, self._unrewarded = np.zeros(arms), np.zeros(arms)
        self._paid, self._payments = np.zeros((arms, 2)), np.zeros((arms, 2))  # wrong, right
        self._signs = np.zeros((arms, 3))  # flipped, silenced, awakened
        self._mass = np.zeros((arms, 3, 2))  # all, positive, negative; by weighting
        self._astray = np.zeros((arms, 3, 2, 2))  # the part astray; by reading and weighting
        self.products = np.zeros((arms, arms))

    def add(self, batch: Batch) -> None:
        """Add a generation batch."""
        rewards = np.stack([arm.rewards for arm in batch.taught])
        advantages = np.stack([arm.advantages for arm in batch.taught])
        self.rollouts += advantages.shape[1]
        self.groups += batch.groups
        self._dead += [arm.dead_groups for arm in batch.taught]
        known = ~np.isnan(rewards)
        self._unrewarded += (~known).sum(axis=1)
        for side, rows in enumerate((~batch.right[1], batch.right[1])):
            self._paid[:, side] += np.where(known & rows, rewards, 0.0).sum(axis=1)
            self._payments[:, side] += (known & rows).sum(axis=1)
        signs, recorded = np.sign(advantages), np.sign(advantages[0])
        self._signs[:, 0] += (signs * recorded < 0).sum(axis=1)
        self._signs[:, 1] += ((signs == 0) & (recorded != 0)).sum(axis=1)
        self._signs[:, 2] += ((signs != 0) & (recorded == 0)).sum(axis=1)
        parts = (np.abs(advantages), np.maximum(advantages, 0.0), np.maximum(-advantages, 0.0))
        for at, part in enumerate(parts):
            astray = batch.right if at == 2 else ~batch.right
            self._mass[:, at] += np.einsum("kb,wb->kw", part, batch.weights)
            self._astray[:, at] += np.einsum(
                "kb,mb,wb->kmw", part, astray.astype(float), batch.weights
            )
        self.products += advantages @ advantages.T

    def figures(self, arm: int) -> ArmFigures:
        """Return the figures of one arm.

        Raises:
            ValueError: No batch was added.
        """
        if not self.rollouts:
            raise ValueError("expected at least one rollout, found none")
        wrong, right = map(_ratio, self._paid[arm], self._payments[arm])
        flipped, silenced, awakened = (float(n / self.rollouts) for n in self._signs[arm])
        return ArmFigures(
            paid_right=right,
            paid_wrong=wrong,
            unrewarded=float(self._unrewarded[arm] / self.rollouts),
            dead=float(self._dead[arm] / self.groups),
            magnitude=float(self._mass[arm, 0, 0] / self.rollouts),
            flipped=flipped,
            silenced=silenced,
            awakened=awakened,
            shares=tuple(tuple(self._shares(arm, m, w) for w in range(2)) for m in range(2)),
        )

    def _shares(self, arm: int, reading: int, weighting: int) -> MassShares:
        astray, mass = self._astray[arm, :, reading, weighting], self._mass[arm, :, weighting]
        return MassShares(*(_ratio(part, whole) for part, whole in zip(astray, mass, strict=True)))


def _ratio(part: float, whole: float) -> float | None:
    return float(part / whole) if whole > 0 else None
