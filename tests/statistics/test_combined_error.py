"""Intervals from several parts of variance: the t interval as a limit, and coverage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ahalab.statistics.combined_error import Part, half_width, two_sided_p


@pytest.mark.parametrize("degrees", [1, 2, 4, 499])
def test_one_part_is_the_t_interval_and_test(degrees: int) -> None:
    parts = [Part(0.0004, degrees)]
    assert half_width(parts, 0.05) == pytest.approx(0.02 * stats.t.ppf(0.975, degrees))
    assert two_sided_p(parts, 0.05) == pytest.approx(2 * stats.t.sf(2.5, degrees), rel=1e-9)
    assert two_sided_p(parts, -0.05) == two_sided_p(parts, 0.05)


def test_two_parts_worked_by_hand() -> None:
    # 4.302653^2 * 4 + 2.776445^2 * 1 = 81.7599...
    width = half_width([Part(4.0, 2), Part(1.0, 4)], 0.05)
    assert width == pytest.approx((4.302653**2 * 4 + 2.776445**2) ** 0.5, rel=1e-6)


def test_an_estimate_of_zero_has_p_one_and_a_hopeless_one_a_floor() -> None:
    assert two_sided_p([Part(0.01, 2)], 0.0) == 1.0
    assert two_sided_p([Part(1e-12, 10_000)], 1.0) == 1e-100


def test_p_is_the_level_at_which_the_interval_reaches_zero() -> None:
    parts = [Part(0.0002, 2), Part(0.0001, 4), Part(0.0003, 900)]
    for estimate in (0.01, 0.06, 0.3):
        assert half_width(parts, two_sided_p(parts, estimate)) == pytest.approx(estimate)


@pytest.mark.parametrize("first", [0.0, 0.1, 1.0, 10.0, 1000.0])
def test_it_never_covers_less_than_promised(first: float) -> None:
    # two normal parts, true variances `first` and 1, estimated with 2 and 4 degrees of freedom
    rng, studies = np.random.default_rng(12), 4000
    estimates = rng.normal(0, (first + 1) ** 0.5, studies)
    squares = first * rng.chisquare(2, studies) / 2, rng.chisquare(4, studies) / 4
    missed = sum(
        abs(estimate) > half_width([Part(float(one), 2), Part(float(other), 4)], 0.05)
        for estimate, one, other in zip(estimates, *squares, strict=True)
    )
    assert missed / studies <= 0.05 + 2 * (0.05 * 0.95 / studies) ** 0.5
