"""The paired score interval of Tango (1998): an interval that works without a discordant pair too.

Wald's interval has width zero when nothing changed and is too short for few discordant pairs; the
score interval inverts a test whose variance is computed under the difference being tested.
"""

from __future__ import annotations

import math

from scipy import optimize, special

from ahalab.statistics.inputs import pair_counts, probability
from ahalab.statistics.interval import Interval


def tango_interval(gained: int, lost: int, n: int, confidence: float = 0.95) -> Interval:
    """Interval of adapter accuracy minus base accuracy on the same questions.

    Args:
        gained: Pairs with base wrong, adapter correct.
        lost: Pairs with base correct, adapter wrong.
        n: All pairs.
        confidence: Coverage aimed at, in (0, 1).

    Returns:
        Fractions in [-1, 1]; covers questions.

    Raises:
        ValueError: Counts that do not fit, or a confidence outside (0, 1).

    Source:
        Tango 1998, Statistics in Medicine 17:891.
    """
    gained, lost, n = pair_counts(gained, lost, n)
    z = float(special.ndtri(0.5 + probability("confidence", confidence) / 2.0))
    # The lower bound is the upper one with the sides swapped, so that swapping is exact.
    return Interval(-_upper(lost, gained, n, z), _upper(gained, lost, n, z), "questions")


def _upper(gained: int, lost: int, n: int, z: float) -> float:
    """The largest difference that the score test at `z` does not reject."""
    if gained == n:
        return 1.0

    def excess(difference: float) -> float:
        # z_score^2 > z^2, as a bounded function: the plain ratio is infinite at difference 1
        deviation = (gained - lost - n * difference) ** 2
        if deviation == 0.0:
            return -0.5  # the point estimate, where the variance may be 0 too
        return deviation / (deviation + z * z * _variance(gained, lost, n, difference)) - 0.5

    return float(optimize.brentq(excess, (gained - lost) / n, 1.0, xtol=1e-14, rtol=1e-13))


def _variance(gained: int, lost: int, n: int, difference: float) -> float:
    """Variance of gained - lost under `difference`, with the lost rate at its restricted maximum.

    The restricted maximum of the trinomial likelihood solves A q^2 + B q + C = 0 (Tango 1998, eq.
    12).
    """
    a = 2.0 * n
    b = -(gained + lost) + (2.0 * n - gained + lost) * difference
    c = -lost * difference * (1.0 - difference)
    root = math.sqrt(max(0.0, b * b - 4.0 * a * c))
    # Two forms of the larger root; each avoids subtracting nearly equal numbers.
    lost_rate = (root - b) / (2.0 * a) if b <= 0.0 else -2.0 * c / (root + b)
    return max(0.0, n * (2.0 * lost_rate + difference * (1.0 - difference)))
