# Axis suffixes: S training seeds, N questions, G clusters.
# ruff: noqa: N803, N806
"""What the seeds say of a reward design, by other code than the analysis: in whole numbers.

Every question and seed contributes an integer, the answers gained. From these one table of
influences is laid out, E_sg = what cluster g under seed s adds to the mean difference D; its row
sums, column sums and what neither explains are the errors over seeds, over questions, and of both
(Cameron, Gelbach and Miller 2011, J. Business & Economic Statistics 29:238). Sums of squares are
exact fractions, so nothing here is rounded before the last root. The t quantiles come from the
inverse of the incomplete beta function, and the p-value from halving: the level at which the
interval of Banerjee 1961 (Sankhya A 23:1) reaches 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from scipy import special

from ahalab.verify.oracle import Bounds

Gains = Sequence[Sequence[int]]  # (S, N): answers that the adapter has right more than the base
SMALLEST_P = 1e-100  # smaller ones are told as this
Part = tuple[float, int]  # SE^2 of independent contributions, and its degrees of freedom


@dataclass(frozen=True, slots=True)
class ArmEstimate:
    """One reward design against the base or another design."""

    questions: int
    seeds: int  # of the design, not of what it is compared with
    difference: float  # fraction
    by_seed: tuple[float, ...]  # fractions, against the base
    standard_error: float | None  # fraction; None where one seed, or nothing that varies, tells
    half_width: float | None  # fraction, before the interval is cut at -1 and 1
    bounds: Bounds | None  # fractions; covers questions and seeds
    p_value: float | None


@dataclass(frozen=True, slots=True)
class _Influence:
    """One design's table, every entry an integer over `scale`."""

    difference: Fraction
    by_seed: tuple[Fraction, ...]
    by_cluster: list[int]  # column sums of E, over `scale`
    scale: int
    seeds_square: Fraction | None  # None: one seed, or one cluster
    rest_square: Fraction


def estimate_arm(
    sides: Sequence[Gains], samples: int, clusters: Sequence[str], confidence: float
) -> ArmEstimate:
    """Estimate a design against the base (one side), or against another design (two).

    Args:
        sides: The design's gains, (S, N); and, to be subtracted, the other's, (T, N).
        samples: Answers a question, K; gains lie between -K and K.
        clusters: Label of each question, shape (N,).
        confidence: Coverage, in (0, 1).
    """
    members: dict[str, list[int]] = {}
    for at, label in enumerate(clusters):
        members.setdefault(label, []).append(at)
    tables = [_influence(side, samples, list(members.values())) for side in sides]
    difference = tables[0].difference - sum(table.difference for table in tables[1:])
    parts = _parts(tables, [len(side) for side in sides])
    error = half = bounds = p_value = None
    if parts:
        seeds = sum(table.seeds_square or 0 for table in tables)
        rest = sum(table.rest_square for table in tables)
        questions = _questions_square(tables)
        square = max(questions, seeds, questions + seeds - rest)
        if square > 0:
            error = math.sqrt(square)
            half = _half_width(parts, 1 - confidence)
            bounds = (max(-1.0, float(difference) - half), min(1.0, float(difference) + half))
            p_value = _reaching_zero(parts, abs(float(difference)))
    return ArmEstimate(
        questions=len(clusters),
        seeds=len(sides[0]),
        difference=float(difference),
        by_seed=tuple(float(d) for d in tables[0].by_seed),
        standard_error=error,
        half_width=half,
        bounds=bounds,
        p_value=p_value,
    )


def _influence(gains_SN: Gains, samples: int, members: list[list[int]]) -> _Influence:
    S, N, G = len(gains_SN), len(gains_SN[0]), len(members)
    sums_SG = [[sum(row[at] for at in cluster) for cluster in members] for row in gains_SN]
    sizes = [len(cluster) for cluster in members]
    total, scale = sum(map(sum, sums_SG)), samples * (S * N) ** 2
    table = [
        [S * N * value - size * total for value, size in zip(row, sizes, strict=True)]
        for row in sums_SG
    ]
    by_seed = [sum(row) for row in table]
    by_cluster = [sum(row[g] for row in table) for g in range(G)]
    seeds_square, rest_square = None, Fraction(0)
    if S > 1 and G > 1:
        spread = Fraction(S, S - 1)
        seeds_square = spread * Fraction(sum(e * e for e in by_seed), scale**2)
        rest = sum(
            (N * S * value - S * size * of_seed - N * of_cluster) ** 2
            for row, of_seed in zip(table, by_seed, strict=True)
            for value, size, of_cluster in zip(row, sizes, by_cluster, strict=True)
        )
        rest_square = spread * Fraction(G, G - 1) * Fraction(rest, (scale * N * S) ** 2)
    return _Influence(
        difference=Fraction(total, S * N * samples),
        by_seed=tuple(Fraction(sum(row), N * samples) for row in sums_SG),
        by_cluster=by_cluster,
        scale=scale,
        seeds_square=seeds_square,
        rest_square=rest_square,
    )


def _questions_square(tables: Sequence[_Influence]) -> Fraction:
    """Return SE^2 over the clusters of questions, which both sides answered."""
    common = math.lcm(*(table.scale for table in tables))
    own, *others = [[e * (common // t.scale) for e in t.by_cluster] for t in tables]
    left = [value - sum(other[g] for other in others) for g, value in enumerate(own)]
    groups = len(own)
    return Fraction(groups, groups - 1) * Fraction(sum(e * e for e in left), common**2)


def _parts(tables: Sequence[_Influence], seeds: Sequence[int]) -> list[Part]:
    """Return what widens the interval; none where a side has one seed, or there is one cluster."""
    squares = [table.seeds_square for table in tables]
    if any(square is None for square in squares):
        return []
    parts = [(float(sq or 0), s - 1) for sq, s in zip(squares, seeds, strict=True)]
    return [*parts, (float(_questions_square(tables)), len(tables[0].by_cluster) - 1)]


def _half_width(parts: Sequence[Part], level: float) -> float:
    """Return the root of the sum of t^2 SE^2, each t at its own degrees of freedom."""
    return math.sqrt(math.fsum(_t_square(degrees, level) * square for square, degrees in parts))


def _t_square(degrees: int, level: float) -> float:
    """Return t^2 that is exceeded with probability `level`: (nu / (nu + t^2)) ~ Beta(nu/2, 1/2)."""
    if level < 0.5:
        share = float(special.betaincinv(degrees / 2, 0.5, level))
        return degrees * (1 - share) / share if share > 0 else math.inf
    share = float(special.betaincinv(0.5, degrees / 2, 1 - level))
    return degrees * share / (1 - share)


def _reaching_zero(parts: Sequence[Part], distance: float) -> float:
    """Return the level at which the interval's half width is the distance to 0."""
    low, high = math.log(SMALLEST_P), 0.0
    if _half_width(parts, SMALLEST_P) <= distance:
        return SMALLEST_P
    for _ in range(80):
        middle = (low + high) / 2
        if _half_width(parts, math.exp(middle)) > distance:
            low = middle
        else:
            high = middle
    return math.exp(high)
