# Axis suffixes: S training seeds, N questions, G clusters, K answers, A arms.
# ruff: noqa: N803, N806
"""Several planned comparisons: Holm's adjustment, and max-T with sign flips that the arms share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ahalab.statistics.inputs import Seed, cluster_index, cluster_sums, count, fractions, generator

_FLIPS_AT_ONCE = 2**21  # signs held at a time, 16 MB as floats


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjust p-values so that the chance of any false positive stays at alpha.

    Args:
        p_values: One a planned comparison, in [0, 1]; None where the test is undefined.

    Returns:
        Adjusted p-values in the same order. None stays None and does not count as a comparison: a
        test without a discordant pair cannot reject at any level, so it takes no part of alpha
        (Tarone 1990).

    Raises:
        ValueError: A p-value that is NaN or outside [0, 1].

    Source:
        Holm 1979, Scandinavian Journal of Statistics 6:65.
    """
    for where, p in enumerate(p_values):
        if p is not None and not 0.0 <= p <= 1.0:
            raise ValueError(f"p_values[{where}]: expected a number in [0, 1] or None, found {p!r}")
    known = sorted((p, where) for where, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0  # a later p may not come out smaller than an earlier one
    for rank, (p, where) in enumerate(known):
        largest = max(largest, min(1.0, (len(known) - rank) * p))
        adjusted[where] = largest
    return adjusted


def max_t(
    differences_AN: ArrayLike,
    seed: Seed,
    draws: int = 9999,
    clusters: Sequence[object] | None = None,
) -> list[float | None]:
    """Step-down max-T p-values of several arms against one base, less wasteful than Holm.

    One sign is drawn for each question and used for all arms, which keeps their correlation (they
    share the base's answers). Each arm's own flips are exact under its null; the joint law is an
    approximation, since exchanging base and one arm does not negate another arm's difference.

    Args:
        differences_AN: Adapter minus base by arm and question, shape (A, N), in [-1, 1].
        seed: Seed or Generator.
        draws: Sign flips.
        clusters: Labels, shape (N,); a cluster's questions flip together.

    Returns:
        Adjusted two-sided p-values, one an arm, at least 1 / (draws + 1); None for an arm without
        any difference, which does not count.

    Raises:
        ValueError: Wrong shape, values not finite or outside [-1, 1], no seed, draws < 1.

    Source:
        Westfall and Young 1993, Resampling-Based Multiple Testing, algorithm 2.8.
    """
    values_AN = fractions("differences_AN", differences_AN, axes=2)
    draws = count("draws", draws, at_least=1)
    rng = generator(seed)
    index, groups = cluster_index(clusters, values_AN.shape[1])
    sums_AG = cluster_sums(values_AN, index, groups)
    scale_A = np.sqrt((sums_AG**2).sum(axis=1))
    arms = np.flatnonzero(scale_A > 0.0)
    unit_AG = sums_AG[arms] / scale_A[arms, None]
    unit_AG = unit_AG[:, np.any(unit_AG != 0.0, axis=0)]
    observed = np.abs(unit_AG.sum(axis=1))
    order = np.argsort(-observed, kind="stable")
    at_least = np.zeros(len(arms), dtype=np.int64)
    for size in _chunks(draws, max(1, _FLIPS_AT_ONCE // max(1, unit_AG.shape[1]))):
        signs = rng.integers(0, 2, size=(size, unit_AG.shape[1]), dtype=np.int8) * 2.0 - 1.0
        drawn = np.abs(signs @ unit_AG[order].T)  # (size, A), strongest arm first
        # An arm competes with itself and the weaker ones: running maximum from the weakest.
        rivals = np.maximum.accumulate(drawn[:, ::-1], axis=1)[:, ::-1]
        at_least += (rivals >= observed[order] - 1e-9).sum(axis=0)
    stepped = np.maximum.accumulate((at_least + 1) / (draws + 1))
    adjusted: list[float | None] = [None] * len(values_AN)
    for place, arm in enumerate(arms[order]):
        adjusted[int(arm)] = float(stepped[place])
    return adjusted


def _chunks(total: int, size: int) -> list[int]:
    return [min(size, total - start) for start in range(0, total, size)]
