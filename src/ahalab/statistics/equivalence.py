"""No worse, or the same: what an interval, or a test, says against a margin fixed in the plan.

A large p-value never shows that nothing changed; an interval that lies inside the margin does.
"""

from __future__ import annotations

from dataclasses import dataclass

from scipy import special

from ahalab.statistics.inputs import count, pair_counts, positive
from ahalab.statistics.interval import Interval
from ahalab.statistics.tango import tango_score


@dataclass(frozen=True, slots=True)
class Equivalence:
    """Which side of the margin the interval rules out."""

    margin: float  # fraction, > 0
    no_worse: bool  # non-inferior: a loss of the margin or more is ruled out
    no_better: bool  # a gain of the margin or more is ruled out
    equivalent: bool  # both


def against_margin(interval: Interval, margin: float) -> Equivalence:
    """Compare an interval with the margin.

    With a 95 % interval each side is a one-sided test at 2.5 %, stricter than the 90 % interval
    that TOST at 5 % would take; the one interval that is printed decides.

    Args:
        interval: Interval of the difference, fractions.
        margin: Largest difference that does not matter, a fraction > 0.

    Returns:
        What is ruled out. A bound that equals the margin rules nothing out.

    Raises:
        ValueError: A margin that is not above 0 and finite.

    Source:
        Schuirmann 1987, J. Pharmacokinetics and Biopharmaceutics 15:657.
    """
    margin = positive("margin", margin)
    no_worse, no_better = interval.low > -margin, interval.high < margin
    return Equivalence(margin, no_worse, no_better, no_worse and no_better)


def tost_pairs(gained: int, lost: int, n: int, margin: float) -> float:
    """Equivalence p-value from counts of pairs: two one-sided score tests, at -margin and +margin.

    Args:
        gained: Pairs with base wrong, adapter correct.
        lost: Pairs with base correct, adapter wrong.
        n: All pairs.
        margin: Largest difference that does not matter, a fraction in (0, 1).

    Returns:
        The larger of the two one-sided p-values. It is below a exactly when the Tango interval at
        confidence 1 - 2a lies inside the margin.

    Raises:
        ValueError: Counts that do not fit, or a margin outside (0, 1).

    Source:
        Tango 1998, Statistics in Medicine 17:891; Schuirmann 1987.
    """
    gained, lost, n = pair_counts(gained, lost, n)
    margin = positive("margin", margin)
    above_lower = special.ndtr(-tango_score(gained, lost, n, -margin))
    below_upper = special.ndtr(tango_score(gained, lost, n, margin))
    return float(max(above_lower, below_upper))


def tost_t(difference: float, standard_error: float, degrees: int, margin: float) -> float:
    """Equivalence p-value from an estimate and its error, by two one-sided t tests.

    Args:
        difference: Estimate, a fraction.
        standard_error: Its error, a fraction > 0.
        degrees: Degrees of freedom, >= 1.
        margin: Largest difference that does not matter, a fraction > 0.

    Returns:
        The larger of the two one-sided p-values.

    Raises:
        ValueError: A difference outside [-1, 1], or an error or margin that is not above 0.

    Source:
        Schuirmann 1987, J. Pharmacokinetics and Biopharmaceutics 15:657.
    """
    if not -1.0 <= difference <= 1.0:
        raise ValueError(f"difference: expected a number in [-1, 1], found {difference!r}")
    standard_error, margin = positive("standard_error", standard_error), positive("margin", margin)
    nearest = margin - abs(difference)  # distance to the bound that is harder to rule out
    return float(special.stdtr(count("degrees", degrees, at_least=1), -nearest / standard_error))
