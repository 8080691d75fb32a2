# Axis suffixes: N answers.
# ruff: noqa: N803
"""Accuracy of two groups of answers that were not drawn by lot, as with and without some mark.

The question is the unit: several answers to one question are not as many observations. A difference
of such groups is an association. Which questions carry the mark was nobody's choice, and they
differ in difficulty.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from ahalab.statistics.inputs import FloatArray, IntArray, cluster_index, outcomes, probability
from ahalab.statistics.interval import Interval


@dataclass(frozen=True, slots=True)
class GroupRate:
    """The accuracy of one group."""

    answers: int
    questions: int  # with an answer in the group
    correct: int
    low: float | None  # Wilson's interval, fractions; None: no answer
    high: float | None

    @property
    def rate(self) -> float | None:
        """Accuracy, a fraction; None: no answer."""
        return self.correct / self.answers if self.answers else None


@dataclass(frozen=True, slots=True)
class GroupDifference:
    """Two groups and their difference, marked minus unmarked."""

    marked: GroupRate
    unmarked: GroupRate
    difference: float | None  # fraction; None: a group is empty
    interval: Interval | None  # covers questions


def compare_groups(
    correct_N: ArrayLike,
    marked_N: ArrayLike,
    questions: Sequence[object],
    confidence: float = 0.95,
) -> GroupDifference:
    """Compare the accuracy of marked and unmarked answers.

    Each group has Wilson's score interval at its effective size: its answers divided by how much
    more their rate varies by question than that of as many independent answers would. Where every
    answer is right, or every one wrong, that can't be seen, and its questions are its size. The
    difference has Newcombe's interval. A question with answers in both groups makes the groups
    alike, not unlike, so leaving that out makes the interval too long, never too short.

    Args:
        correct_N: Correctness, 0 or 1, shape (N,).
        marked_N: Whether the answer is marked, 0 or 1, shape (N,).
        questions: One label an answer, shape (N,), equal for answers to one question.
        confidence: Coverage aimed at, in (0, 1).

    Returns:
        Rates, difference, intervals; None wherever a group has no answer.

    Raises:
        ValueError: Wrong shape, a value not 0 or 1, labels missing.

    Source:
        Wilson 1927, J. American Statistical Association 22:209; Newcombe 1998, Statistics in
        Medicine 17:873 (method 10); Rao and Scott 1992, Biometrics 48:577 (effective sizes).
    """
    correct, marked = outcomes("correct_N", correct_N), outcomes("marked_N", marked_N)
    if correct.shape != marked.shape:
        raise ValueError(
            f"marked_N: expected {correct.size} values, one an answer, found {marked.size}"
        )
    index, _ = cluster_index(questions, correct.size)
    z = float(special.ndtri(0.5 + probability("confidence", confidence) / 2.0))
    values = correct.astype(np.float64)
    one = _rate(values[marked], index[marked], z)
    other = _rate(values[~marked], index[~marked], z)
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return GroupDifference(one, other, None, None)
    p, q = one.correct / one.answers, other.correct / other.answers
    low = p - q - math.hypot(p - one.low, other.high - q)
    high = p - q + math.hypot(one.high - p, q - other.low)
    return GroupDifference(one, other, p - q, Interval(max(-1.0, low), min(1.0, high)))


def _rate(values_N: FloatArray, index: IntArray, z: float) -> GroupRate:
    n, right = values_N.size, int(values_N.sum())
    questions = np.unique(index).size
    if n == 0:
        return GroupRate(0, 0, 0, None, None)
    rate = right / n
    size = float(questions)
    if 0 < right < n:
        sums = np.bincount(index, weights=values_N - rate)
        size = n / max(1.0, float(sums @ sums) / (n * rate * (1.0 - rate)))
    low, high = wilson(rate, size, z)
    return GroupRate(n, questions, right, low, high)


def wilson(rate: float, size: float, z: float) -> tuple[float, float]:
    """Return Wilson's score interval of a rate.

    Args:
        rate: Observed, a fraction.
        size: Observations, above 0; an effective size need not be whole.
        z: Normal quantile of the level.

    Source:
        Wilson 1927, J. American Statistical Association 22:209.
    """
    shrunk = 1.0 + z * z / size
    centre = (rate + z * z / (2.0 * size)) / shrunk
    half = z / shrunk * math.sqrt(rate * (1.0 - rate) / size + z * z / (4.0 * size * size))
    low = 0.0 if rate == 0.0 else max(0.0, centre - half)
    return low, 1.0 if rate == 1.0 else min(1.0, centre + half)
