"""Equivalence and non-inferiority: interval bounds, and the tests that they invert."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.weightstats import DescrStatsW

from ahalab.statistics.by_question import by_question
from ahalab.statistics.equivalence import Equivalence, against_margin, tost_pairs, tost_t
from ahalab.statistics.interval import Interval
from ahalab.statistics.tango import tango_interval


@pytest.mark.parametrize(
    ("low", "high", "no_worse", "no_better"),
    [
        (-0.01, 0.01, True, True),
        (-0.01, 0.03, True, False),
        (-0.03, 0.01, False, True),
        (-0.03, 0.03, False, False),
        (-0.02, 0.01, False, True),  # a bound on the margin rules nothing out
        (0.05, 0.08, True, False),  # better than the margin: no worse, and not equivalent
    ],
)
def test_the_bounds_decide(low: float, high: float, no_worse: bool, no_better: bool) -> None:
    found = against_margin(Interval(low, high), 0.02)
    assert found == Equivalence(0.02, no_worse, no_better, no_worse and no_better)


def test_a_wide_interval_around_nothing_is_not_equivalence() -> None:
    # an interval that reaches -6.2 points does not rule out 2
    assert not against_margin(Interval(-0.062, 0.041), 0.02).equivalent


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 900), st.floats(0.005, 0.3))
def test_the_test_on_pairs_agrees_with_the_tango_interval(
    gained: int, lost: int, rest: int, margin: float
) -> None:
    n = gained + lost + rest
    if n == 0:
        return
    interval = tango_interval(gained, lost, n, confidence=0.90)
    p_value = tost_pairs(gained, lost, n, margin)
    if abs(p_value - 0.05) > 1e-6:
        assert (p_value < 0.05) == against_margin(interval, margin).equivalent


@pytest.mark.parametrize(("n", "margin"), [(100, 0.02), (1000, 0.02), (50, 0.2)])
def test_without_a_discordant_pair_the_test_on_pairs_worked_by_hand(n: int, margin: float) -> None:
    # Under a difference of m the restricted likelihood of n ties is largest with no lost pair, so
    # the variance of gained - lost is n m (1 - m) and z = n m / sqrt(n m (1 - m)).
    z = math.sqrt(n * margin / (1 - margin))
    assert tost_pairs(0, 0, n, margin) == pytest.approx(stats.norm.sf(z), rel=1e-9)


def test_the_test_on_pairs_for_many_questions_is_walds() -> None:
    gained, lost, n, margin = 5_100, 5_000, 100_000, 0.003
    difference = (gained - lost) / n
    error = math.sqrt((gained + lost) / n - difference**2) / math.sqrt(n)
    assert tost_pairs(gained, lost, n, margin) == pytest.approx(
        stats.norm.sf((margin - difference) / error), rel=0.02
    )


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_t_test_agrees_with_statsmodels(sign: float) -> None:
    values = [0.25, -0.125, 0.0, 0.125, 0.0, 0.0, -0.25, 0.125, 0.125, 0.0]
    values = [sign * value for value in values]
    estimate = by_question(values)
    assert estimate.standard_error is not None
    oracle, _, _ = DescrStatsW(values).ttost_mean(-0.1, 0.1)
    found = tost_t(estimate.difference, estimate.standard_error, estimate.degrees_of_freedom, 0.1)
    assert found == pytest.approx(float(oracle), rel=1e-9)


def test_more_questions_without_a_change_become_equivalence() -> None:
    assert not against_margin(tango_interval(0, 0, 100), 0.02).equivalent
    assert against_margin(tango_interval(0, 0, 1000), 0.02).equivalent
    assert tost_pairs(0, 0, 1000, 0.02) < 0.025 < tost_pairs(0, 0, 100, 0.02)


@pytest.mark.parametrize("margin", [0.0, -0.1, float("nan"), float("inf")])
def test_a_margin_that_is_none_is_refused(margin: float) -> None:
    with pytest.raises(ValueError, match="margin"):
        against_margin(Interval(-0.1, 0.1), margin)
    with pytest.raises(ValueError, match="margin"):
        tost_pairs(1, 2, 10, margin)
    with pytest.raises(ValueError, match="margin"):
        tost_t(0.0, 0.1, 5, margin)


def test_an_error_of_zero_and_a_nan_difference_are_refused() -> None:
    with pytest.raises(ValueError, match="standard_error"):
        tost_t(0.0, 0.0, 5, 0.1)
    with pytest.raises(ValueError, match="difference"):
        tost_t(float("nan"), 0.1, 5, 0.1)
