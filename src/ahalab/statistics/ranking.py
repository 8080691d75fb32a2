# Axis suffixes: S training seeds, N questions, G clusters, A arms, D draws.
# ruff: noqa: N803, N806
"""Which arm is best, and how sure that is: both questions and seeds are drawn again.

A ranking by mean alone hides that the first place may change with the next seed. Every draw takes
the same questions for all arms, which share them, and seeds for each arm apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ahalab.statistics.inputs import (
    FloatArray,
    Seed,
    cluster_index,
    cluster_sums,
    count,
    fractions,
    generator,
    probability,
)


@dataclass(frozen=True, slots=True)
class Ranked:
    """Where one arm stands."""

    best_fraction: float  # of the draws in which no arm is better; ties share
    rank_low: int  # interval of its rank, 1 is best
    rank_high: int


def rank_arms(
    differences_ASN: Sequence[ArrayLike],
    seed: Seed,
    draws: int = 2000,
    clusters: Sequence[object] | None = None,
    confidence: float = 0.95,
) -> list[Ranked]:
    """Rank arms by their mean difference from the base under resampling.

    The means of S seeds drawn from S vary by (S - 1)/S of what they should; they are stretched
    around the arm's own mean by sqrt(S / (S - 1)). An arm with one seed stands still: its rank
    carries the questions alone.

    Args:
        differences_ASN: For each arm its differences by seed and question, (S_a, N), fractions in
            [-1, 1], the questions in one order.
        seed: Seed or Generator. A draw takes one multinomial of the clusters, then one of each
            arm's seeds in turn; all draws of the clusters come first.
        draws: Resamples.
        clusters: Labels, shape (N,), of questions drawn together; None: each stands alone.
        confidence: Coverage of the interval of ranks, in (0, 1).

    Returns:
        One an arm, in their order.

    Raises:
        ValueError: No arm, another number of questions in two arms, values not finite or outside
            [-1, 1], draws < 1.

    Source:
        Hall and Miller 2009, Annals of Statistics 37:3929, on the bootstrap of ranks (too sure
        where arms are nearly equal); Owen 2007, Annals of Applied Statistics 1:386, on drawing
        both factors.
    """
    arms = [fractions("differences", values, axes=2) for values in differences_ASN]
    if not arms:
        raise ValueError("differences: expected at least one arm, found none")
    n = arms[0].shape[1]
    if any(values.shape[1] != n for values in arms):
        raise ValueError("differences: expected the same questions in every arm")
    draws, confidence = count("draws", draws, at_least=1), probability("confidence", confidence)
    rng = generator(seed)
    index, groups = cluster_index(clusters, n)
    sizes_G = np.bincount(index, minlength=groups)
    weights_DG = rng.multinomial(groups, np.full(groups, 1 / groups), size=draws)
    asked_D = weights_DG @ sizes_G
    means_AD = []
    for values_SN in arms:
        means_DS = (weights_DG @ cluster_sums(values_SN, index, groups).T) / asked_D[:, None]
        means_AD.append(_over_seeds(means_DS, rng))
    return _ranked(np.array(means_AD), (1 - confidence) / 2)


def _over_seeds(means_DS: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Average over seeds drawn again, shape (D,)."""
    draws, seeds = means_DS.shape
    centre_D: FloatArray = means_DS.mean(axis=1)
    if seeds == 1:
        return centre_D
    weights_DS = rng.multinomial(seeds, np.full(seeds, 1 / seeds), size=draws)
    drawn_D = (weights_DS * means_DS).sum(axis=1) / seeds
    stretched: FloatArray = centre_D + math.sqrt(seeds / (seeds - 1)) * (drawn_D - centre_D)
    return stretched


def _ranked(means_AD: FloatArray, tail: float) -> list[Ranked]:
    rounded_AD = np.round(means_AD, 12)  # equal means differ in their last bit only
    best_AD = rounded_AD == rounded_AD.max(axis=0)
    share_A = (best_AD / best_AD.sum(axis=0)).mean(axis=1)
    better_AD = (rounded_AD[:, None, :] < rounded_AD[None, :, :]).sum(axis=1)  # arms above
    ranks_A = np.quantile(better_AD + 1, [tail, 1 - tail], axis=1, method="inverted_cdf")
    return [
        Ranked(float(share), int(low), int(high))
        for share, low, high in zip(share_A, *ranks_A, strict=True)
    ]
