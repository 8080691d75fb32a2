"""`equivalent` is two one-sided tests at alpha/2: against tests computed by other means."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats
from statsmodels.stats.weightstats import DescrStatsW

from ahalab.statistics.difference import difference_over_questions
from ahalab.statistics.verdict import VerdictName, decide

ALPHA = 0.05


def verdict(gained: int, lost: int, n: int, margin: float) -> VerdictName:
    differences = [1.0] * gained + [-1.0] * lost + [0.0] * (n - gained - lost)
    found = difference_over_questions(differences)
    return decide(found.p_value, found.interval, margin=margin).name


def score_z(gained: int, lost: int, n: int, difference: float) -> float:
    """Score statistic of a true difference, its likelihood maximised over a grid and a search."""

    def unlikely(lost_rate: float) -> float:
        gained_rate = lost_rate + difference
        rates = ((gained, gained_rate), (lost, lost_rate), (n - gained - lost, None))
        rest = 1.0 - gained_rate - lost_rate
        return -sum(
            count * math.log(max(rest if rate is None else rate, 1e-300))
            for count, rate in rates
            if count
        )

    low, high = max(0.0, -difference), (1.0 - difference) / 2.0
    lost_rate = _minimum(unlikely, low, high)
    variance = n * (2.0 * lost_rate + difference - difference**2)
    return (gained - lost - n * difference) / math.sqrt(variance)


def _minimum(function: Callable[[float], float], low: float, high: float) -> float:
    found = optimize.minimize_scalar(
        function, bounds=(low, high), method="bounded", options={"xatol": 1e-12}
    ).x
    return min((low, float(found), high), key=function)


def tost(gained: int, lost: int, n: int, margin: float) -> float:
    """The larger of the two one-sided p-values, at -margin and +margin."""
    above = stats.norm.sf(score_z(gained, lost, n, -margin))
    below = stats.norm.cdf(score_z(gained, lost, n, margin))
    return float(max(above, below))


@given(st.integers(0, 40), st.integers(0, 40), st.integers(1, 900), st.floats(0.005, 0.3))
def test_pairs_are_equivalent_where_both_score_tests_reject(
    gained: int, lost: int, rest: int, margin: float
) -> None:
    n = gained + lost + rest
    found, p_value = verdict(gained, lost, n, margin), tost(gained, lost, n, margin)
    if p_value > ALPHA / 2 + 1e-6:
        assert found != "equivalent"
    elif p_value < ALPHA / 2 - 1e-6 and found not in ("improved", "worse"):
        changed = difference_over_questions([1.0] * gained + [-1.0] * lost + [0.0] * rest)
        assert changed.interval is not None
        borderline = (changed.p_value or 1.0) <= ALPHA or changed.interval.excludes_zero
        assert found == ("no evidence" if borderline else "equivalent")


@pytest.mark.parametrize(("n", "margin"), [(100, 0.02), (200, 0.02), (1000, 0.02), (50, 0.2)])
def test_without_a_discordant_pair_worked_by_hand(n: int, margin: float) -> None:
    # Under a difference of m the restricted likelihood of n ties is largest with no lost pair, so
    # the variance of gained - lost is n m (1 - m) and z = n m / sqrt(n m (1 - m)).
    z = math.sqrt(n * margin / (1 - margin))
    expected = "equivalent" if stats.norm.sf(z) < ALPHA / 2 else "no evidence"
    assert (
        decide(1.0, difference_over_questions([0.0] * n).interval, margin=margin).name == expected
    )
    assert tost(0, 0, n, margin) == pytest.approx(stats.norm.sf(z), rel=1e-6)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("margin", [0.05, 0.08, 0.1, 0.11, 0.15, 0.2])
def test_several_answers_are_equivalent_where_statsmodels_rejects_both_ways(
    sign: float, margin: float
) -> None:
    values = [0.25, -0.125, 0.0, 0.125, 0.0, 0.0, -0.25, 0.125, 0.125, 0.0]
    values = [sign * value for value in values]
    found = difference_over_questions(values)
    p_value, _, _ = DescrStatsW(values).ttost_mean(-margin, margin)
    name = decide(found.p_value, found.interval, margin=margin).name
    assert name == ("equivalent" if p_value < ALPHA / 2 else "no evidence")


def test_a_wide_interval_around_nothing_is_not_equivalence_and_more_questions_are() -> None:
    assert verdict(3, 3, 100, 0.02) == "no evidence"
    assert verdict(3, 3, 2_000, 0.02) == "equivalent"


def test_without_a_margin_nothing_is_equivalent() -> None:
    interval = difference_over_questions([0.0] * 100_000).interval
    assert decide(None, interval).name == "no evidence"


@pytest.mark.parametrize("margin", [0.0, -0.1, float("nan"), float("inf")])
def test_a_margin_that_is_none_is_refused(margin: float) -> None:
    with pytest.raises(ValueError, match="margin"):
        verdict(1, 2, 10, margin)
