# Axis suffixes: N questions.
# ruff: noqa: N806
"""One set of answers against another: which test fits, its p-value and its interval.

Where every question went up by one, down by one, or not at all, questions are pairs: McNemar's
test and Tango's interval. Otherwise (several answers a question) the mean over questions is tested.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from ahalab.statistics.by_question import by_question, cluster_means
from ahalab.statistics.inputs import fractions, probability
from ahalab.statistics.interval import Interval
from ahalab.statistics.paired import mcnemar_exact, mcnemar_midp
from ahalab.statistics.power import detectable_difference
from ahalab.statistics.tango import tango_interval


@dataclass(frozen=True, slots=True)
class Difference:
    """A mean difference over questions, tested."""

    units: int  # questions; clusters of equal ones where labels were given
    difference: float  # fraction
    gained: int | None  # units that went from wrong to correct; None where they are no pairs
    lost: int | None
    interval: Interval  # covers questions; [-1, 1] where nothing can be said
    p_value: float | None  # primary; None where undefined
    p_exact: float | None  # exact McNemar, for tables that quote it; None where units are no pairs
    standard_error: float | None  # fraction, by question; None for pairs


def difference_over_questions(
    differences: ArrayLike, clusters: Sequence[object] | None = None, confidence: float = 0.95
) -> Difference:
    """Test the mean difference with the question as the unit.

    A question that occurs twice counts once: where all of its answers changed alike, the questions
    are pairs again, and McNemar's p and Tango's interval do not move when every row is doubled.
    The t test is left to what is no pair: on few changed questions it is far too sure.

    Args:
        differences: d_i, second minus first, fractions in [-1, 1], shape (N,).
        clusters: Labels, shape (N,), equal for a question that occurs twice; None: each stands
            alone.
        confidence: Coverage aimed at, in (0, 1).

    Returns:
        The estimate with p and interval; its interval covers questions.

    Raises:
        ValueError: Wrong shape, values not finite or outside [-1, 1], labels missing.

    Source:
        Fagerland, Lydersen and Laake 2013, BMC Medical Research Methodology 13:91; Tango 1998,
        Statistics in Medicine 17:891; by_question.py for several answers a question.
    """
    values_N = fractions("differences", differences, axes=1)
    means = values_N if clusters is None else cluster_means(values_N, clusters)
    mean = float(values_N.mean())
    changed = np.abs(means)
    if np.all((changed == 0.0) | (changed == 1.0)):
        gained, lost = int(np.count_nonzero(means > 0.0)), int(np.count_nonzero(means < 0.0))
        bounds = tango_interval(gained, lost, means.size, confidence)
        if bounds.contains(mean):  # not where one question has many of the rows
            p_value, exact = mcnemar_midp(gained, lost), mcnemar_exact(gained, lost)
            return Difference(means.size, mean, gained, lost, bounds, p_value, exact, None)
    found = by_question(values_N, clusters, confidence)
    # Nothing to estimate an error from is not an error of zero.
    interval = found.interval or Interval(-1.0, 1.0)
    return Difference(
        means.size, mean, None, None, interval, found.p_value, None, found.standard_error
    )


def detectable(found: Difference, alpha: float = 0.05, power: float = 0.8) -> float | None:
    """Smallest true difference that such answers would show, at the discordance they have.

    Args:
        found: What was tested.
        alpha: Two-sided level, in (0, 1).
        power: Chance wanted of showing it, in (0, 1).

    Returns:
        A fraction; None where too little changed to tell, or for none however large.

    Raises:
        ValueError: alpha or power outside (0, 1).
    """
    alpha, power = probability("alpha", alpha), probability("power", power)
    if found.gained is not None and found.lost is not None:
        changed = found.gained + found.lost
        if changed == 0:
            return None
        return detectable_difference(changed / found.units, found.units, power, alpha, "midp")
    if found.standard_error is None:
        return None
    quantile = special.stdtrit(found.units - 1, 1.0 - alpha / 2.0) + special.ndtri(power)
    return min(1.0, float(quantile) * found.standard_error)
