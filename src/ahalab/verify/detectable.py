# Axis suffixes: C counts of discordant pairs.
# ruff: noqa: N806
"""The smallest detectable change of one adapter, checked by other code than the analysis.

For pairs the recorded change is put into the power of the mid-p test, which must then be 80 %.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import stats

from ahalab.records.comparison import AdapterComparison
from ahalab.verify.oracle import FloatArray, question_error
from ahalab.verify.reading import Study, close

FILE = "analysis/comparison.json"
POWER = 0.8
POWER_TOLERANCE = 1e-3
POINTS_TOLERANCE = 1e-6
TAIL = 1e-7  # of the counts of discordant pairs, left out at each end


def check_detectable(
    study: Study, place: str, found: AdapterComparison, spread: FloatArray, clusters: Sequence[str]
) -> None:
    """Check the smallest change that a comparison of one adapter would have shown.

    Args:
        study: The study.
        place: How the comparison is called in a failure.
        found: The recorded comparison.
        spread: Adapter minus base by question, shape (N,).
        clusters: Labels, shape (N,), equal for a question that occurs twice.
    """
    recorded, tally = found.minimal_detectable_points, study.ledger["stat.recompute"]
    alpha = study.plan.analysis.alpha if study.plan is not None else 0.05
    if not isinstance(recorded, float | None):  # of an earlier version
        return
    means = _means(spread, clusters)
    if np.all(np.isin(means, (-1.0, 0.0, 1.0))):
        share = float(np.mean(means != 0))
        if recorded is None:
            reached = midp_power(share, share, len(means), alpha) if share else 0.0
            right, what = reached < POWER, "one: 80 % power is reached"
        else:
            power = midp_power(recorded / 100, share, len(means), alpha) if share else 0.0
            right, what = abs(power - POWER) < POWER_TOLERANCE, f"80 % power, there {power:.4f}"
    else:
        error, quantile = question_error(spread, clusters), 0.0
        if error is not None:
            quantile = float(stats.t.isf(alpha / 2, len(means) - 1) + stats.norm.ppf(POWER))
        expected = None if error is None else 100 * min(1.0, quantile * error)
        right, what = close(expected, recorded, POINTS_TOLERANCE), str(expected)
    if right:
        tally.passed()
    else:
        tally.fail(FILE, None, f"{place}: minimal_detectable_points of {what}", recorded)


def _means(spread: FloatArray, clusters: Sequence[str]) -> FloatArray:
    """Return the mean change of each question, those that occur twice taken together."""
    found: dict[str, list[float]] = {}
    for label, value in zip(clusters, spread, strict=True):
        found.setdefault(label, []).append(float(value))
    return np.array([sum(values) / len(values) for values in found.values()])


def midp_power(difference: float, discordance: float, n: int, alpha: float) -> float:
    """Return how often mid-p McNemar calls a change at a true difference.

    Every likely count of discordant pairs is weighed; for each, the largest count of gained pairs
    is found whose half mid-p, P(X < k) + P(X = k) / 2, is at most alpha / 2, and both tails from
    there on are added.

    Args:
        difference: True difference, a fraction up to `discordance`.
        discordance: Share of pairs whose outcome changes.
        n: Pairs.
        alpha: Two-sided level.
    """
    law = stats.binom(n, discordance)
    counts_C = np.arange(int(law.ppf(TAIL)), int(law.isf(TAIL)) + 1)
    share = (1.0 + difference / discordance) / 2.0
    last_C = stats.binom.ppf(alpha / 2, counts_C, 0.5)  # P(X < last) < alpha / 2: at most one off
    half_C = stats.binom.cdf(last_C, counts_C, 0.5) - stats.binom.pmf(last_C, counts_C, 0.5) / 2
    last_C = np.where(half_C <= alpha / 2, last_C, last_C - 1)
    lost_C = stats.binom.cdf(last_C, counts_C, share)
    gained_C = stats.binom.sf(counts_C - last_C - 1, counts_C, share)
    return float(law.pmf(counts_C) @ (lost_C + gained_C))
