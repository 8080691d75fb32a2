"""Which test fits a set of differences, and that it counts questions, not rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ahalab.statistics.difference import detectable, difference_over_questions
from ahalab.statistics.power import detectable_difference

NULL = [1.0] * 28 + [-1.0] * 34 + [0.0] * 1257  # the real null of STATISTICS.md


def test_pairs_get_mcnemars_tests() -> None:
    found = difference_over_questions(NULL)
    assert (found.units, found.gained, found.lost) == (1319, 28, 34)
    assert found.p_exact == pytest.approx(stats.binomtest(28, 62, 0.5).pvalue)
    mid = stats.binom.cdf(27, 62, 0.5) + stats.binom.cdf(28, 62, 0.5)
    assert found.p_value == pytest.approx(mid)
    assert found.difference == pytest.approx(-6 / 1319)


@pytest.mark.parametrize("times", [2, 4])
def test_no_figure_moves_when_every_question_stands_there_several_times(times: int) -> None:
    labels = [str(n) for n in range(len(NULL))] * times
    once, often = difference_over_questions(NULL), difference_over_questions(NULL * times, labels)
    assert (often.gained, often.lost, often.p_value) == (once.gained, once.lost, once.p_value)
    assert often.interval == once.interval


def test_several_answers_are_tested_by_question() -> None:
    rng = np.random.default_rng(4)
    values = rng.integers(-4, 6, 300) / 8
    found = difference_over_questions(values)
    oracle = stats.ttest_1samp(values, 0.0)
    bounds = oracle.confidence_interval(0.95)
    assert found.gained is None
    assert found.p_exact is None
    assert found.p_value == pytest.approx(oracle.pvalue)
    assert (found.interval.low, found.interval.high) == pytest.approx((bounds.low, bounds.high))


def test_equal_differences_leave_nothing_to_judge_by() -> None:
    found = difference_over_questions([0.5] * 20)
    assert (found.p_value, found.interval.low, found.interval.high) == (None, -1.0, 1.0)
    assert detectable(found) is None


def test_what_could_have_gone_unseen_is_that_of_the_test_that_decided() -> None:
    pairs = difference_over_questions(NULL)
    assert detectable(pairs) == detectable_difference(62 / 1319, 1319, test="midp")
    assert detectable(difference_over_questions([0.0] * 100)) is None  # nothing changed
    rng = np.random.default_rng(5)
    values = rng.integers(-4, 5, 400) / 8
    several = difference_over_questions(values)
    planned = detectable(several)
    assert planned is not None
    error = values.std(ddof=1) / 20
    # the power of the t test at that difference, by the noncentral t
    critical = stats.t.ppf(0.975, 399)
    assert stats.nct.sf(critical, 399, planned / error) == pytest.approx(0.8, abs=0.002)


def test_values_that_are_no_differences_are_refused() -> None:
    with pytest.raises(ValueError, match="NaN"):
        difference_over_questions([0.0, float("nan")])
    with pytest.raises(ValueError, match="alpha"):
        detectable(difference_over_questions([1.0, 0.0]), alpha=0.0)
