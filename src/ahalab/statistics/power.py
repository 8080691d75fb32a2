"""How many questions: power of McNemar's tests, and the smallest difference that they would find.

Exact: every count of discordant pairs, weighted by its probability; no simulation, no normal law.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import optimize, special, stats

from ahalab.statistics.inputs import FloatArray, IntArray, count, probability

McNemarTest = Literal["midp", "exact"]


def mcnemar_power(
    gained_rate: float,
    lost_rate: float,
    n: int,
    alpha: float = 0.05,
    test: McNemarTest = "midp",
) -> float:
    """Chance that the test on n pairs gives p <= alpha.

    Args:
        gained_rate: Probability that a pair is base wrong, adapter correct.
        lost_rate: Probability that a pair is base correct, adapter wrong. Equal to `gained_rate`,
            the answer is the test's true level.
        n: Pairs.
        alpha: Two-sided level.
        test: Mid-p or exact.

    Returns:
        Probability.

    Raises:
        ValueError: Rates outside [0, 1] or with a sum above 1, n < 1, another test.

    Source:
        Fagerland, Lydersen and Laake 2013, BMC Medical Research Methodology 13:91.
    """
    n, alpha = count("n", n, at_least=1), probability("alpha", alpha)
    discordance = gained_rate + lost_rate
    if not (gained_rate >= 0.0 and lost_rate >= 0.0 and discordance <= 1.0):
        raise ValueError(
            "gained_rate and lost_rate: expected rates with a sum of at most 1, "
            f"found {gained_rate} and {lost_rate}"
        )
    _refuse_test(test)
    if discordance == 0.0:
        return 0.0
    return _power(_weighed(n, discordance, alpha, test), min(1.0, gained_rate / discordance))


def detectable_difference(
    discordance: float,
    n: int,
    power: float = 0.8,
    alpha: float = 0.05,
    test: McNemarTest = "exact",
) -> float | None:
    """Smallest difference that the test finds with the given power, exactly.

    Planned with the exact test unless told otherwise, as published tables are: it asks for some 0.1
    to 0.4 points more than the mid-p test that decides later.

    Args:
        discordance: psi, the share of pairs that are gained or lost, in (0, 1].
        n: Pairs.
        power: Chance wanted of finding it.
        alpha: Two-sided level.
        test: Mid-p or exact.

    Returns:
        A fraction up to psi; None when even psi (all discordant pairs gained) is not found so
        often.

    Raises:
        ValueError: psi outside (0, 1], n < 1, power or alpha outside (0, 1).
    """
    n, alpha = count("n", n, at_least=1), probability("alpha", alpha)
    discordance, power = _discordance(discordance), probability("power", power)
    weighed = _weighed(n, discordance, alpha, test)  # the same whatever the difference

    def shortfall(difference: float) -> float:
        return _power(weighed, (1.0 + difference / discordance) / 2.0) - power

    if shortfall(discordance) < 0.0:
        return None
    if shortfall(0.0) >= 0.0:
        return 0.0  # a power below the level asks for nothing
    return float(optimize.brentq(shortfall, 0.0, discordance, xtol=1e-6))


@dataclass(frozen=True, slots=True)
class _Weighed:
    """Every likely count of discordant pairs, shape (P,), its weight, and what is significant."""

    pairs: IntArray
    weight: FloatArray  # probability of that count
    most: IntArray  # largest smaller count with p <= alpha; -1: none


def _weighed(n: int, discordance: float, alpha: float, test: McNemarTest) -> _Weighed:
    """Weigh the counts that between them leave out less than 1e-12."""
    _refuse_test(test)
    likely = stats.binom.ppf([1e-13, 1.0 - 1e-13], n, discordance)
    pairs = np.arange(max(1, int(likely[0])), int(likely[1]) + 1)
    weight = stats.binom.pmf(pairs, n, discordance)
    return _Weighed(pairs, weight, _critical(pairs, alpha, test))


def _power(weighed: _Weighed, share: float) -> float:
    """Chance of a significant count, either way, when a `share` of the pairs is gained."""
    found = weighed.most >= 0
    pairs, most = weighed.pairs[found], weighed.most[found]
    tails = special.bdtr(most, pairs, share) + special.bdtr(most, pairs, 1.0 - share)
    return float(np.sum(weighed.weight[found] * tails))


def _refuse_test(test: str) -> None:
    if test not in ("midp", "exact"):
        raise ValueError(f"test: expected 'midp' or 'exact', found {test!r}")


def _discordance(value: float) -> float:
    return 1.0 if value == 1.0 else probability("discordance", value)


def _critical(pairs: IntArray, alpha: float, test: McNemarTest) -> IntArray:
    """Largest smaller count with p <= alpha, for each count of discordant pairs; -1: none.

    `quantile` is the first count with P(X <= m) >= alpha/2, so the answer is it or the one below:
    the exact p at it is at least alpha, while the mid-p still may not be.
    """
    quantile = stats.binom.ppf(alpha / 2.0, pairs, 0.5)
    at, below = stats.binom.cdf(quantile, pairs, 0.5), stats.binom.cdf(quantile - 1, pairs, 0.5)
    p_value = 2.0 * at if test == "exact" else at + below
    return np.asarray(np.where(p_value <= alpha, quantile, quantile - 1), dtype=np.int64)
