# Axis suffixes: N questions, G clusters.
# ruff: noqa: N803
"""Tests, intervals and verdicts by other code than the analysis, so that it does not check itself.

McNemar's tests come from scipy's binomial distribution; Tango's interval from maximising the
restricted likelihood numerically and inverting the test by root finding; the error by question from
its definition.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import comb

import numpy as np
import numpy.typing as npt
from scipy import optimize, stats

FloatArray = npt.NDArray[np.float64]
Bounds = tuple[float, float]


def exact_p(gained: int, lost: int) -> float | None:
    """Return the exact two-sided McNemar p; None without a discordant pair."""
    if gained + lost == 0:
        return None
    return float(stats.binomtest(gained, gained + lost, 0.5, alternative="two-sided").pvalue)


def mid_p(gained: int, lost: int) -> float | None:
    """Return the mid-p: both tails, with half of what is as likely as the observation."""
    total = gained + lost
    if total == 0:
        return None
    chances = stats.binom.pmf(np.arange(total + 1), total, 0.5)
    fewer = min(gained, lost)
    if 2 * fewer == total:
        return 1.0
    return float(min(1.0, 2 * math.fsum(chances[:fewer]) + chances[fewer]))


def score_interval(gained: int, lost: int, n: int, confidence: float) -> Bounds:
    """Return Tango's interval of the difference, as fractions."""
    z = float(stats.norm.isf((1 - confidence) / 2))
    observed = (gained - lost) / n

    def excess(difference: float) -> float:
        variance = n * _variance(gained, lost, n, difference)
        return float((gained - lost - n * difference) ** 2 - z * z * variance)

    step = 1e-10  # off the estimate, where the test statistic is 0
    low, high = -1.0, 1.0
    if lost < n:
        low = float(optimize.brentq(excess, -1.0, observed - step, xtol=1e-13))
    if gained < n:
        high = float(optimize.brentq(excess, observed + step, 1.0, xtol=1e-13))
    return low, high


def _variance(gained: int, lost: int, n: int, difference: float) -> float:
    """Return the variance of one pair's difference at the restricted maximum of the likelihood."""
    lowest, highest = max(0.0, -difference), (1.0 - difference) / 2.0

    def slope(rate: float) -> float:
        """Derivative of the log likelihood in the rate of lost pairs; it falls."""
        total = 0.0
        for count, share, sign in (
            (gained, rate + difference, 1.0),
            (lost, rate, 1.0),
            (n - gained - lost, 1.0 - 2.0 * rate - difference, -2.0),
        ):
            if count:
                total += sign * (math.inf if share <= 0.0 else count / share)
        return total

    if highest - lowest <= 0.0 or slope(lowest) <= 0.0:
        rate = lowest
    elif slope(highest) >= 0.0:
        rate = highest
    else:
        rate = _falling_root(slope, lowest, highest)
    return max(0.0, 2.0 * rate + difference - difference**2)


def _falling_root(slope: Callable[[float], float], low: float, high: float) -> float:
    """Halve the interval in which a falling function crosses 0 (it may be infinite at the ends)."""
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if slope(middle) > 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def by_question(
    differences_N: FloatArray, clusters: Sequence[str], confidence: float
) -> tuple[Bounds | None, float | None]:
    """Return interval and p of a mean difference, clusters of questions being the unit.

    SE^2 = G/(G-1) * sum_g (sum_{i in g} (d_i - dbar))^2 / N^2, t with G - 1 degrees of freedom.
    """
    mean = math.fsum(differences_N) / len(differences_N)
    error, groups = question_error(differences_N, clusters), len(set(clusters))
    if error is None:
        return None, None
    half = float(stats.t.isf((1 - confidence) / 2, groups - 1)) * error
    p_value = float(2 * stats.t.sf(abs(mean) / error, groups - 1))
    return (max(-1.0, mean - half), min(1.0, mean + half)), min(1.0, p_value)


def question_error(differences_N: FloatArray, clusters: Sequence[str]) -> float | None:
    """Return the error of a mean difference over clusters; None where nothing varies."""
    mean = math.fsum(differences_N) / len(differences_N)
    sums: dict[str, float] = defaultdict(float)
    for label, value in zip(clusters, differences_N, strict=True):
        sums[label] += float(value) - mean
    groups = len(sums)
    square = math.fsum(s * s for s in sums.values()) / len(differences_N) ** 2
    if groups < 2 or square <= 1e-28:
        return None
    return math.sqrt(groups / (groups - 1) * square)


def paired_bounds(
    differences_N: FloatArray, clusters: Sequence[str], confidence: float
) -> tuple[Bounds, float | None]:
    """Return interval and p where a question occurs twice or has several answers.

    Where every question's mean change is -1, 0 or 1, the questions are pairs again.
    """
    found: dict[str, list[float]] = {}
    for label, value in zip(clusters, differences_N, strict=True):
        found.setdefault(label, []).append(float(value))
    means = [sum(values) / len(values) for values in found.values()]
    if all(mean in (-1.0, 0.0, 1.0) for mean in means):
        gained, lost = means.count(1.0), means.count(-1.0)
        low, high = score_interval(gained, lost, len(means), confidence)
        if low <= float(differences_N.mean()) <= high:
            return (low, high), mid_p(gained, lost)
    interval, p_value = by_question(differences_N, clusters, confidence)
    return interval or (-1.0, 1.0), p_value


def step_down(p_values: Sequence[float | None]) -> list[float | None]:
    """Return Holm's adjusted p: the largest (m - j) p_(j) over all smaller or equal ones."""
    known = sorted(p for p in p_values if p is not None)
    return [
        None
        if p is None
        else max(min(1.0, (len(known) - at) * q) for at, q in enumerate(known) if q <= p)
        for p in p_values
    ]


def verdict(
    p_raw: float | None,
    p_adjusted: float | None,
    bounds: Bounds | None,
    margin: float,
    alpha: float,
) -> str:
    """Return the verdict: a change needs p, adjusted p and interval; then the margin is asked.

    Args:
        p_raw: Two-sided p; None where undefined.
        p_adjusted: The same after Holm.
        bounds: Interval of the difference, fractions; None where there is none.
        margin: Largest difference that does not matter, a fraction.
        alpha: Level.
    """
    if bounds is None:
        return "no evidence"
    low, high = bounds
    says_p = p_raw is not None and p_raw <= alpha
    says_interval = low > 0 or high < 0
    if says_p and says_interval and p_adjusted is not None and p_adjusted <= alpha:
        return "improved" if low > 0 else "worse"
    if says_p == says_interval and -margin < low and high < margin:
        return "equivalent"
    return "no evidence"


def pass_at_k(questions: Sequence[tuple[int, int]], k: int) -> float | None:
    """Return pass@k as a ratio of whole numbers: subsets of k answers that hold a correct one.

    Args:
        questions: (correct, answers) of each.
        k: Answers that one may try.

    Returns:
        Probability, mean over questions; None where a question has fewer than k answers.
    """
    if not questions or any(given < k for _, given in questions):
        return None
    ways = [Fraction(comb(given - right, k), comb(given, k)) for right, given in questions]
    return float(1 - sum(ways) / len(ways))
