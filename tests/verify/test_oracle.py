"""The verifier's own statistics against published numbers, and against the analysis' other code."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahalab.statistics.by_question import by_question as analysed_by_question
from ahalab.statistics.multiplicity import holm
from ahalab.statistics.paired import mcnemar_exact, mcnemar_midp
from ahalab.statistics.tango import tango_interval
from ahalab.verify.oracle import (
    by_question,
    exact_p,
    mid_p,
    score_interval,
    step_down,
    verdict,
)


@pytest.mark.parametrize(
    ("gained", "lost", "p_value"),
    [(9, 6, 0.61), (8, 6, 0.79), (9, 10, 1.0), (10, 3, 0.09), (28, 34, 0.53), (6, 2, 0.29)],
)
def test_published_tables_come_out(gained: int, lost: int, p_value: float) -> None:
    assert exact_p(gained, lost) == pytest.approx(p_value, abs=0.005)


def test_the_exact_p_of_115_against_65_comes_out() -> None:
    assert exact_p(115, 65) == pytest.approx(2.39e-4, rel=0.005)


def test_mid_p_of_3_against_0_is_an_eighth() -> None:
    assert mid_p(3, 0) == pytest.approx(0.125)  # 2 * (1/8) / 2


def test_no_discordant_pair_has_no_p() -> None:
    assert exact_p(0, 0) is None
    assert mid_p(0, 0) is None


def test_the_score_interval_without_discordance_has_a_closed_form() -> None:
    z = 1.959963984540054
    low, high = score_interval(0, 0, 50, 0.95)
    assert high == pytest.approx(z * z / (50 + z * z), abs=1e-9)
    assert low == pytest.approx(-high, abs=1e-9)


@given(
    st.integers(0, 40), st.integers(0, 40), st.integers(0, 200), st.sampled_from([0.9, 0.95, 0.99])
)
def test_both_codes_of_the_paired_tests_agree(
    gained: int, lost: int, rest: int, level: float
) -> None:
    n = gained + lost + rest
    if n == 0:
        return
    interval = tango_interval(gained, lost, n, level)
    low, high = score_interval(gained, lost, n, level)
    assert (low, high) == pytest.approx((interval.low, interval.high), abs=1e-8)
    for ours, theirs in ((exact_p, mcnemar_exact), (mid_p, mcnemar_midp)):
        assert ours(gained, lost) == pytest.approx(theirs(gained, lost), abs=1e-12)


@given(
    st.lists(
        st.tuples(st.sampled_from([-1.0, -0.5, 0.0, 0.25, 1.0]), st.integers(0, 9)), min_size=2
    )
)
def test_both_codes_of_the_error_by_question_agree(drawn: list[tuple[float, int]]) -> None:
    values = np.array([value for value, _ in drawn])
    labels = [str(label) for _, label in drawn]
    bounds, p_value = by_question(values, labels, 0.95)
    other = analysed_by_question(values, labels, 0.95)
    if other.interval is None:
        assert bounds is None
        return
    assert bounds == pytest.approx((other.interval.low, other.interval.high), abs=1e-9)
    assert p_value == pytest.approx(other.p_value, abs=1e-9)


@given(st.lists(st.one_of(st.none(), st.floats(0, 1))))
def test_both_codes_of_holm_agree(p_values: list[float | None]) -> None:
    for ours, theirs in zip(step_down(p_values), holm(p_values), strict=True):
        assert (ours is None) == (theirs is None)
        assert ours is None or theirs is None or math.isclose(ours, theirs, abs_tol=1e-12)


def test_a_verdict_needs_p_adjusted_p_and_interval() -> None:
    assert verdict(0.01, 0.02, (0.01, 0.1), 0.02, 0.05) == "improved"
    assert verdict(0.01, 0.02, (-0.1, -0.01), 0.02, 0.05) == "worse"
    assert verdict(0.01, 0.2, (0.01, 0.1), 0.02, 0.05) == "no evidence"
    assert verdict(0.01, 0.02, (-0.01, 0.1), 0.02, 0.05) == "no evidence"
    assert verdict(0.5, 0.5, (-0.01, 0.01), 0.02, 0.05) == "equivalent"
    assert verdict(None, None, None, 0.02, 0.05) == "no evidence"
