"""The question as the unit: hand-worked errors, scipy and statsmodels, and a simulated null."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ahalab.statistics.by_question import (
    by_question,
    cluster_means,
    sign_flip_p,
)
from ahalab.statistics.paired import discordant, mcnemar_midp

quarters = st.lists(st.integers(-4, 4).map(lambda i: i / 4), min_size=2, max_size=60)


def test_error_worked_by_hand() -> None:
    # mean .25; deviations .25 .25 -.75 .25; squares .0625 * 3 + .5625 = .75; 4/3 * .75 / 16 = 1/16
    estimate = by_question([0.5, 0.5, -0.5, 0.5])
    assert estimate.difference == 0.25
    assert estimate.standard_error == pytest.approx(0.25)
    assert estimate.degrees_of_freedom == 3
    assert estimate.interval is not None
    assert estimate.interval.low == pytest.approx(0.25 - 3.182446 * 0.25, abs=1e-6)
    assert estimate.interval.high == 1.0  # 1.0456, cut where a difference of accuracies ends
    assert estimate.p_value == pytest.approx(0.391, abs=5e-4)  # t = 1 on 3 degrees: 1/2 + ...
    assert estimate.interval.covers == "questions"


def test_clustered_error_worked_by_hand() -> None:
    # mean 1/4; cluster sums of deviations: a 1/4 + 1/4 = 1/2, b 1/4 - 3/4 = -1/2
    # 2/1 * (1/4 + 1/4) / 16 = 1/16, one degree of freedom
    estimate = by_question([0.5, 0.5, 0.5, -0.5], clusters=["a", "a", "b", "b"])
    assert estimate.standard_error == pytest.approx(0.25)
    assert (estimate.questions, estimate.clusters, estimate.degrees_of_freedom) == (4, 2, 1)
    assert estimate.p_value == pytest.approx(0.5)  # t = 1, Cauchy


@given(quarters)
def test_every_question_alone_is_the_one_sample_t_test(differences: list[float]) -> None:
    estimate = by_question(differences)
    if len(set(differences)) == 1:
        assert (estimate.standard_error, estimate.interval, estimate.p_value) == (None, None, None)
        return
    oracle = stats.ttest_1samp(differences, 0.0)
    low, high = oracle.confidence_interval(0.95)
    assert estimate.p_value == pytest.approx(float(oracle.pvalue), rel=1e-9, abs=1e-14)
    assert estimate.interval is not None
    assert estimate.interval.low == pytest.approx(max(-1.0, float(low)), abs=1e-12)
    assert estimate.interval.high == pytest.approx(min(1.0, float(high)), abs=1e-12)


def test_clusters_agree_with_statsmodels() -> None:
    rng = np.random.default_rng(4)
    clusters = rng.integers(0, 17, size=90)
    values = np.clip(rng.normal(0.05, 0.2, 90) + rng.normal(0, 0.2, 17)[clusters], -1, 1)
    groups = len(np.unique(clusters))
    fit = sm.OLS(values, np.ones(90)).fit(
        cov_type="cluster", cov_kwds={"groups": clusters}, use_t=True
    )
    estimate = by_question(values, clusters=clusters.tolist())
    assert estimate.clusters == groups
    assert estimate.standard_error == pytest.approx(float(fit.bse[0]), rel=1e-9)
    assert estimate.p_value == pytest.approx(float(fit.pvalues[0]), rel=1e-9)


@given(quarters, st.integers(2, 4))
def test_repeated_rows_in_one_cluster_change_nothing(differences: list[float], times: int) -> None:
    once = by_question(differences)
    labels = [label for label in range(len(differences)) for _ in range(times)]
    repeated = by_question(np.repeat(differences, times), clusters=labels)
    assert repeated.clusters == once.clusters
    assert repeated.difference == pytest.approx(once.difference, abs=1e-12)
    if once.standard_error is None:
        assert (repeated.standard_error, repeated.p_value) == (None, None)
    else:
        assert repeated.standard_error == pytest.approx(once.standard_error, rel=1e-6)
        assert repeated.p_value == pytest.approx(once.p_value, rel=1e-6, abs=1e-12)


def test_rows_given_four_times_leave_mcnemars_p_where_it_was() -> None:
    base, adapter = [1, 1, 1, 0, 0, 0, 0, 0, 0, 1], [1, 1, 0, 1, 1, 1, 1, 0, 0, 1]
    pairs = discordant(base, adapter)
    differences = np.array(adapter) - np.array(base)
    means = cluster_means(np.tile(differences, 4), list(range(10)) * 4)
    again = mcnemar_midp(int((means == 1).sum()), int((means == -1).sum()))
    assert again == mcnemar_midp(pairs.gained, pairs.lost)
    assert mcnemar_midp(4 * pairs.gained, 4 * pairs.lost) < again  # what pooling would have said


def test_one_question_has_no_error() -> None:
    estimate = by_question([0.5])
    assert (estimate.difference, estimate.standard_error, estimate.p_value) == (0.5, None, None)


def test_rounding_dust_is_not_taken_for_variation() -> None:
    assert by_question([0.1 + 0.2 - 0.3 + 0.1] * 3 + [0.1] * 4).standard_error is None


def p_by_every_flip(sums: list[float]) -> float:
    flips = [abs(float(np.dot(signs, sums))) for signs in product([-1, 1], repeat=len(sums))]
    return float(np.mean(np.array(flips) >= abs(sum(sums)) - 1e-9))


@pytest.mark.parametrize(
    "differences",
    [
        [1.0, 1.0, 1.0, 1.0, 1.0, -1.0],
        [0.25, 0.5, 0.5, -0.25, 0.75, 0.0, 1.0, 0.125],
        [0.5, -0.5, 0.25, -0.25],
    ],
)
def test_sign_flips_agree_with_every_flip_there_is(differences: list[float]) -> None:
    found = sign_flip_p(differences, seed=11, draws=40_000)
    assert found == pytest.approx(p_by_every_flip(differences), abs=0.01)  # 4 standard errors


def test_sign_flips_turn_a_cluster_as_one() -> None:
    differences, clusters = [0.5, 0.25, 0.5, 0.5, -0.25], ["a", "a", "b", "c", "c"]
    found = sign_flip_p(differences, seed=2, draws=40_000, clusters=clusters)
    assert found == pytest.approx(p_by_every_flip([0.75, 0.5, 0.25]), abs=0.01)


def test_sign_flips_never_give_zero_and_repeat_with_their_seed() -> None:
    assert sign_flip_p([1.0] * 60, seed=0, draws=99) == 1 / 100
    mixed = [0.5, 0.25, -0.25, 0.5, 0.125]
    assert sign_flip_p(mixed, seed=3) == sign_flip_p(mixed, seed=3)
    assert sign_flip_p(mixed, seed=np.random.default_rng(3)) == sign_flip_p(mixed, seed=3)
    assert sign_flip_p([0.0, 0.0], seed=3) is None


def test_by_question_holds_its_level_where_pooling_the_answers_does_not() -> None:
    # STATISTICS.md: k = 8, N = 200, log-odds moved by N(0, 1) a question, sides swapped at random
    rng = np.random.default_rng(8)
    studies, n, k = 2000, 200, 8
    wrongly, naively = 0, 0
    for _ in range(studies):
        ability = rng.beta(0.6, 0.9, n)
        moved = 1 / (1 + (1 - ability) / ability * np.exp(-rng.normal(0, 1, n)))
        swap = rng.random(n) < 0.5
        sides = np.where(swap, moved, ability), np.where(swap, ability, moved)
        differences = (rng.binomial(k, sides[1]) - rng.binomial(k, sides[0])) / k
        estimate = by_question(differences)
        assert estimate.p_value is not None
        assert estimate.standard_error is not None
        wrongly += estimate.p_value <= 0.05
        spread = np.sqrt(sides[0] * (1 - sides[0]) + sides[1] * (1 - sides[1]))
        pooled_error = math.sqrt(float((spread**2).sum()) / k) / n
        naively += abs(estimate.difference) > 1.96 * pooled_error
    assert 0.035 <= wrongly / studies <= 0.065
    assert naively / studies > 0.09


@pytest.mark.parametrize(
    ("differences", "clusters", "message"),
    [
        ([], None, "none of them empty"),
        ([0.1, float("nan")], None, "NaN"),
        ([0.1, 1.5], None, r"\[-1, 1\]"),
        ([[0.1], [0.2]], None, "1 axes"),
        (["a"], None, "expected numbers"),
        ([0.1, 0.2], ["a"], "expected 2 labels"),
        ([0.1, 0.2], ["a", None], r"clusters\[1\]"),
        ([0.1, 0.2], [1.0, float("nan")], r"clusters\[1\]"),
    ],
)
def test_bad_differences_and_labels_are_refused(
    differences: list[float], clusters: list[object] | None, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        by_question(differences, clusters)


def test_a_missing_seed_is_refused() -> None:
    with pytest.raises(ValueError, match="seed"):
        sign_flip_p([0.5, 0.25], seed=None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="draws"):
        sign_flip_p([0.5, 0.25], seed=1, draws=0)
