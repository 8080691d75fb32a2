"""Tango's interval: two R packages, closed forms and a numerical inversion of the score test."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from ahalab.statistics.paired import mcnemar_exact, mcnemar_midp
from ahalab.statistics.tango import tango_interval

Z2 = 1.959963984540054**2


@st.composite
def tables(draw: st.DrawFn, largest: int = 400) -> tuple[int, int, int]:
    n = draw(st.integers(1, largest))
    gained = draw(st.integers(0, n))
    return gained, draw(st.integers(0, n - gained)), n


def score_by_maximum_likelihood(gained: int, lost: int, n: int, difference: float) -> float:
    """The score statistic with the lost rate found by maximising the trinomial likelihood."""

    def minus_log_likelihood(lost_rate: float) -> float:
        gained_rate = lost_rate + difference
        rest = 1.0 - lost_rate - gained_rate
        return -(
            gained * math.log(max(gained_rate, 1e-300))
            + lost * math.log(max(lost_rate, 1e-300))
            + (n - gained - lost) * math.log(max(rest, 1e-300))
        )

    found = optimize.minimize_scalar(
        minus_log_likelihood,
        bounds=(max(0.0, -difference), (1.0 - difference) / 2.0),
        method="bounded",
        options={"xatol": 1e-12},
    )
    variance = n * (2.0 * float(found.x) + difference * (1.0 - difference))
    return (gained - lost - n * difference) / math.sqrt(variance)


@pytest.mark.parametrize(
    ("gained", "lost", "n", "confidence", "low", "high"),
    [
        (1, 7, 21, 0.95, -0.517, -0.026),  # Fagerland et al. 2014; R package ratesci
        (6, 16, 161, 0.95, -0.1240, -0.0054),  # R package contingencytables
        (28, 25, 618, 0.90, -0.0148, 0.0247),  # R package PropCIs, scoreci.mp(25, 28, 618)
    ],
)
def test_published_intervals_come_out(
    gained: int, lost: int, n: int, confidence: float, low: float, high: float
) -> None:
    interval = tango_interval(gained, lost, n, confidence)
    tolerance = 5e-4 if n == 21 else 5e-5
    assert interval.low == pytest.approx(low, abs=tolerance)
    assert interval.high == pytest.approx(high, abs=tolerance)
    assert interval.covers == "questions"


def test_a_real_null_lies_where_five_packages_put_it() -> None:
    interval = tango_interval(28, 34, 1319)
    assert -0.0167 <= interval.low <= -0.0159
    assert 0.0068 <= interval.high <= 0.0076


@pytest.mark.parametrize("n", [1, 20, 500])
def test_no_discordant_pair_gives_a_width_that_shrinks_with_n(n: int) -> None:
    # at p_gained = difference > 0, p_lost = 0 the statistic is n d / sqrt(n d (1 - d)) = z
    bound = Z2 / (n + Z2)
    interval = tango_interval(0, 0, n)
    assert interval.high == pytest.approx(bound, abs=1e-10)
    assert interval.low == pytest.approx(-bound, abs=1e-10)


@pytest.mark.parametrize("n", [1, 20, 500])
def test_all_pairs_gained_reaches_exactly_one(n: int) -> None:
    # below the estimate p_lost = (1 - d) / 2, so the statistic squared is n (1 - d) / (1 + d) = z^2
    interval = tango_interval(n, 0, n)
    assert interval.high == 1.0
    assert interval.low == pytest.approx((n - Z2) / (n + Z2), abs=1e-10)
    assert tango_interval(0, n, n).low == -1.0


@settings(max_examples=60)
@given(tables(60))
def test_bounds_are_where_the_numerically_found_score_reaches_z(
    table: tuple[int, int, int],
) -> None:
    gained, lost, n = table
    interval = tango_interval(gained, lost, n)
    for bound in (interval.low, interval.high):
        if abs(bound) < 1.0:
            score = score_by_maximum_likelihood(gained, lost, n, bound)
            assert score**2 == pytest.approx(Z2, rel=1e-3)


@given(tables())
def test_swapping_the_sides_mirrors_the_interval(table: tuple[int, int, int]) -> None:
    gained, lost, n = table
    one, other = tango_interval(gained, lost, n), tango_interval(lost, gained, n)
    assert (one.low, one.high) == (-other.high, -other.low)


@given(tables())
def test_the_estimate_lies_inside_and_the_bounds_within_one(table: tuple[int, int, int]) -> None:
    gained, lost, n = table
    interval = tango_interval(gained, lost, n)
    assert -1.0 <= interval.low <= (gained - lost) / n <= interval.high <= 1.0
    assert interval.low < interval.high


@given(tables())
def test_more_confidence_is_a_wider_interval(table: tuple[int, int, int]) -> None:
    narrow, wide = tango_interval(*table, confidence=0.8), tango_interval(*table, confidence=0.99)
    assert wide.low <= narrow.low
    assert narrow.high <= wide.high


def test_huge_counts_keep_their_digits() -> None:
    interval = tango_interval(100_000, 0, 10**6)
    # lost = 0: like a single proportion, 0.1 -/+ 1.96 sqrt(0.1 * 0.9 / 10^6) to first order
    assert interval.low == pytest.approx(0.1 - 0.000588, abs=2e-6)
    assert interval.high == pytest.approx(0.1 + 0.000588, abs=2e-6)


def test_p_and_interval_disagree_for_six_count_pairs_only() -> None:
    def disagreeing(test: Callable[[int, int], float | None]) -> int:
        return sum(
            tango_interval(gained, lost, 500).excludes_zero != (test(gained, lost) <= 0.05)
            for lost in range(61)
            for gained in range(lost + 1, 61)
        )

    assert disagreeing(mcnemar_midp) == 6
    assert disagreeing(mcnemar_exact) > 40  # why the mid-p is the primary one


@pytest.mark.parametrize(
    ("gained", "lost", "n", "confidence"),
    [
        (3, 3, 5, 0.95),
        (0, 0, 0, 0.95),
        (-1, 0, 5, 0.95),
        (1.5, 0, 5, 0.95),
        (1, 0, 5, 1.0),
        (1, 0, 5, 95),
        (1, 0, 5, float("nan")),
    ],
)
def test_counts_that_do_not_fit_are_refused(
    gained: int, lost: int, n: int, confidence: float
) -> None:
    with pytest.raises(ValueError, match="expected"):
        tango_interval(gained, lost, n, confidence)
