# Axis suffixes: S training seeds, N questions, G clusters, K answers, A arms.
# ruff: noqa: N803, N806
"""Several answers a question, or questions in clusters: the question (or cluster) is the unit.

k answers to one question are not k observations: pooling them called 12 % of true nulls significant
where 5 % was promised. Differences are averaged over the answers first, and the spread over
questions carries both kinds of noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from ahalab.statistics.inputs import (
    FloatArray,
    IntArray,
    Seed,
    cluster_index,
    cluster_sums,
    count,
    fractions,
    generator,
    probability,
)
from ahalab.statistics.interval import Interval, clipped

DUST = 1e-28  # SE^2 below this is rounding: subtracting a mean from equal values leaves some


@dataclass(frozen=True, slots=True)
class QuestionEstimate:
    """A mean difference with its error over questions; None where nothing varies."""

    questions: int  # N
    clusters: int  # G, equal to N when every question stands alone
    difference: float  # fraction, adapter minus base
    standard_error: float | None  # fraction; None: one cluster, or all clusters alike
    degrees_of_freedom: int  # G - 1
    interval: Interval | None
    p_value: float | None  # two-sided t test of no difference


def cluster_means(differences: ArrayLike, clusters: Sequence[object]) -> FloatArray:
    """Average the questions of each cluster, as for questions that occur twice.

    Where every mean is -1, 0 or 1, the clusters are pairs again and McNemar's test applies to them:
    a p-value that does not move when every row is given four times.

    Args:
        differences: d_i, fractions in [-1, 1], shape (N,).
        clusters: Labels, shape (N,).

    Returns:
        Means, shape (G,), in the order in which the clusters first appear.

    Raises:
        ValueError: Wrong shape, values not finite or outside [-1, 1], labels missing.
    """
    values_N = fractions("differences", differences, axes=1)
    index, groups = cluster_index(clusters, values_N.size)
    sums = np.bincount(index, weights=values_N, minlength=groups)
    return np.asarray(sums / np.bincount(index, minlength=groups), dtype=np.float64)


def by_question(
    differences: ArrayLike, clusters: Sequence[object] | None = None, confidence: float = 0.95
) -> QuestionEstimate:
    """Estimate the mean difference with the question, or the cluster, as the unit.

    SE^2 = G/(G-1) * sum_g (sum_{i in g} (d_i - dbar))^2 / N^2, t with G - 1 degrees of freedom.
    Without clusters this is sd(d)/sqrt(N).

    Args:
        differences: d_i, fractions in [-1, 1], shape (N,).
        clusters: Labels, shape (N,): questions from one template or passage, or the same question
            twice. None: every question stands alone.
        confidence: Coverage aimed at, in (0, 1).

    Returns:
        The estimate; its interval covers questions. With a single cluster, or when all clusters
        agree to the digit, error, interval and p are None.

    Raises:
        ValueError: Wrong shape, values not finite or outside [-1, 1], labels missing.

    Source:
        Liang and Zeger 1986, Biometrika 73:13; Miller 2024, arXiv:2411.00640.
    """
    values_N = fractions("differences", differences, axes=1)
    confidence = probability("confidence", confidence)
    index, groups = cluster_index(clusters, values_N.size)
    mean = float(values_N.mean())
    error = cluster_error(values_N, index, groups)
    if error is None or error == 0.0:
        return QuestionEstimate(values_N.size, groups, mean, None, groups - 1, None, None)
    interval, p_value = t_interval_and_p(mean, error, groups - 1, confidence)
    return QuestionEstimate(values_N.size, groups, mean, error, groups - 1, interval, p_value)


def sign_flip_p(
    differences: ArrayLike,
    seed: Seed,
    draws: int = 9999,
    clusters: Sequence[object] | None = None,
) -> float | None:
    """Permutation test: base and adapter exchange their answers to each question at random.

    Flips of equal sizes are drawn together as a binomial, which has the same law and takes no
    (draws, N) array.

    Args:
        differences: d_i, fractions in [-1, 1], shape (N,).
        seed: Seed or Generator.
        draws: Sign flips.
        clusters: Labels, shape (N,); a cluster's questions flip together.

    Returns:
        Two-sided p, (1 + extreme) / (1 + draws); None when nothing differs.

    Raises:
        ValueError: Wrong shape, values not finite or outside [-1, 1], no seed, draws < 1.

    Source:
        Phipson and Smyth 2010, Stat. Appl. Genet. Mol. Biol. 9:39, for the added one.
    """
    values_N = fractions("differences", differences, axes=1)
    draws = count("draws", draws, at_least=1)
    rng = generator(seed)
    index, groups = cluster_index(clusters, values_N.size)
    sums_G = cluster_sums(values_N[None, :], index, groups)[0]
    # Rounding joins sizes that differ in the last bit only, as 0.75 - 0.5 and 0.25 may.
    sizes, repeats = np.unique(np.round(np.abs(sums_G), 12), return_counts=True)
    sizes, repeats = sizes[sizes > 0.0], repeats[sizes > 0.0]
    if sizes.size == 0:
        return None
    total = np.zeros(draws)
    for size, repeat in zip(sizes, repeats, strict=True):
        total += size * (2 * rng.binomial(int(repeat), 0.5, size=draws) - int(repeat))
    extreme = int(np.count_nonzero(np.abs(total) >= abs(float(sums_G.sum())) - 1e-9))
    return (1 + extreme) / (1 + draws)


def cluster_error(values_N: FloatArray, index: IntArray, groups: int) -> float | None:
    """Cluster-robust standard error of the mean; None with fewer than two clusters."""
    if groups < 2:
        return None
    deviations = np.bincount(index, weights=values_N - values_N.mean(), minlength=groups)
    square = groups / (groups - 1) * float(deviations @ deviations) / values_N.size**2
    return math.sqrt(square) if square > DUST else 0.0


def t_interval_and_p(
    centre: float, error: float, freedom: float, confidence: float
) -> tuple[Interval, float]:
    """Two-sided t interval (covers questions) and p-value of centre = 0."""
    quantile = float(special.stdtrit(freedom, 0.5 + confidence / 2.0))
    p_value = 2.0 * float(special.stdtr(freedom, -abs(centre) / error))
    return clipped(centre, quantile * error, "questions"), min(1.0, p_value)
