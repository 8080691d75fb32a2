# Axis suffixes: N questions, G clusters, U distinct rows, D draws.
# ruff: noqa: N803, N806
"""Percentile bootstrap of the difference, as a check on the score and t intervals.

Drawing N pairs with replacement and counting gained and lost is one multinomial draw of (gained,
lost, rest): the same law, in milliseconds. The same holds for any differences with few distinct
values.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ahalab.statistics.inputs import (
    FloatArray,
    Seed,
    cluster_index,
    count,
    fractions,
    generator,
    pair_counts,
    probability,
)
from ahalab.statistics.interval import Interval

_COUNTS_AT_ONCE = 2**21  # multinomial counts held at a time, 16 MB


def bootstrap_pairs(
    gained: int,
    lost: int,
    n: int,
    seed: Seed,
    draws: int = 9999,
    confidence: float = 0.95,
) -> Interval:
    """Bootstrap interval of adapter accuracy minus base accuracy, one answer to each question.

    Without a discordant pair every draw is 0 and so is the width; prefer the score interval
    (tango.py).

    Args:
        gained: Pairs with base wrong, adapter correct.
        lost: Pairs with base correct, adapter wrong.
        n: All pairs.
        seed: Seed or Generator.
        draws: Bootstrap draws.
        confidence: Coverage aimed at, in (0, 1).

    Returns:
        Percentile interval, fractions; covers questions.

    Raises:
        ValueError: Counts that do not fit, no seed, draws < 1, or a confidence outside (0, 1).

    Source:
        Efron and Tibshirani 1993, An Introduction to the Bootstrap, chapter 13.
    """
    gained, lost, n = pair_counts(gained, lost, n)
    draws = count("draws", draws, at_least=1)
    confidence = probability("confidence", confidence)
    shares = np.array([gained, lost, n - gained - lost]) / n
    drawn = generator(seed).multinomial(n, shares, size=draws)
    return _percentiles((drawn[:, 0] - drawn[:, 1]) / n, confidence)


def bootstrap_questions(
    differences: ArrayLike,
    seed: Seed,
    draws: int = 9999,
    clusters: Sequence[object] | None = None,
    confidence: float = 0.95,
) -> Interval:
    """Bootstrap interval of the mean difference, drawing questions, or clusters, with replacement.

    Args:
        differences: d_i, fractions in [-1, 1], shape (N,).
        seed: Seed or Generator.
        draws: Bootstrap draws.
        clusters: Labels, shape (N,); a cluster's questions are drawn together. None: each stands
            alone.
        confidence: Coverage aimed at, in (0, 1).

    Returns:
        Percentile interval, fractions; covers questions.

    Raises:
        ValueError: Wrong shape, values not finite or outside [-1, 1], no seed, draws < 1.

    Source:
        Efron and Tibshirani 1993, An Introduction to the Bootstrap, chapters 8 and 13.
    """
    values_N = fractions("differences", differences, axes=1)
    draws = count("draws", draws, at_least=1)
    confidence = probability("confidence", confidence)
    rng = generator(seed)
    index, groups = cluster_index(clusters, values_N.size)
    sums_G = np.bincount(index, weights=values_N, minlength=groups)
    sizes_G = np.bincount(index, minlength=groups)
    rows, repeats = np.unique(np.column_stack([sums_G, sizes_G]), axis=0, return_counts=True)
    means = np.empty(draws)
    step = max(1, _COUNTS_AT_ONCE // len(rows))
    for start in range(0, draws, step):
        size = min(step, draws - start)
        sums_and_sizes = rng.multinomial(groups, repeats / groups, size=size) @ rows  # (size, 2)
        means[start : start + size] = sums_and_sizes[:, 0] / sums_and_sizes[:, 1]
    return _percentiles(means, confidence)


def _percentiles(means_D: FloatArray, confidence: float) -> Interval:
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(means_D, [tail, 1.0 - tail])
    return Interval(float(low), float(high), "questions")
