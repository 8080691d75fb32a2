"""The bootstrap against plain resampling, the binomial law and the score interval."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ahalab.statistics.bootstrap import bootstrap_pairs, bootstrap_questions
from ahalab.statistics.tango import tango_interval


def plain_percentiles(values: np.ndarray, draws: int = 20_000) -> tuple[float, float]:
    drawn = np.random.default_rng(99).integers(0, len(values), size=(draws, len(values)))
    low, high = np.quantile(values[drawn].mean(axis=1), [0.025, 0.975])
    return float(low), float(high)


def test_pairs_gained_only_follow_the_binomial_law() -> None:
    interval = bootstrap_pairs(12, 0, 100, seed=1, draws=40_000)
    low, high = stats.binom.ppf([0.025, 0.975], 100, 0.12) / 100
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=1e-12)
    assert interval.covers == "questions"


def test_pairs_agree_with_drawing_the_pairs_themselves() -> None:
    values = np.array([1.0] * 28 + [-1.0] * 34 + [0.0] * 238)
    interval = bootstrap_pairs(28, 34, 300, seed=4, draws=20_000)
    assert (interval.low, interval.high) == pytest.approx(plain_percentiles(values), abs=0.0034)


def test_pairs_lie_near_the_score_interval_for_many_questions() -> None:
    drawn, score = bootstrap_pairs(28, 34, 1319, seed=0), tango_interval(28, 34, 1319)
    assert drawn.low == pytest.approx(score.low, abs=0.0015)
    assert drawn.high == pytest.approx(score.high, abs=0.0015)


def test_questions_agree_with_drawing_the_questions_themselves() -> None:
    values = np.random.default_rng(5).integers(-8, 9, size=150) / 8
    interval = bootstrap_questions(values, seed=6, draws=20_000)
    assert (interval.low, interval.high) == pytest.approx(plain_percentiles(values), abs=0.006)


def test_pairs_and_questions_are_one_law_when_each_has_one_answer() -> None:
    values = [1.0] * 30 + [-1.0] * 10 + [0.0] * 160
    by_pairs = bootstrap_pairs(30, 10, 200, seed=2, draws=20_000)
    by_questions = bootstrap_questions(values, seed=3, draws=20_000)
    assert by_questions.low == pytest.approx(by_pairs.low, abs=0.0051)
    assert by_questions.high == pytest.approx(by_pairs.high, abs=0.0051)


def test_clusters_are_drawn_whole() -> None:
    # every cluster holds equal questions, so its size adds nothing: the law of 40 questions
    rng = np.random.default_rng(7)
    values, sizes = rng.integers(-1, 2, size=40).astype(float), np.full(40, 5)
    labels = np.repeat(np.arange(40), sizes).tolist()
    clustered = bootstrap_questions(np.repeat(values, sizes), 8, 20_000, labels)
    low, high = plain_percentiles(values)
    assert (clustered.low, clustered.high) == pytest.approx((low, high), abs=0.026)
    pooled = bootstrap_questions(np.repeat(values, sizes), 8, 20_000)
    assert pooled.high - pooled.low < 0.6 * (clustered.high - clustered.low)


def test_unequal_clusters_keep_the_mean_over_questions() -> None:
    # two clusters, {1, 1, 1} and {0}: draws aa, 1/4: 1; ab, 1/2: 3/4; bb, 1/4: 0. Both the 30 %
    # and the 70 % quantile fall on ab; the mean of the cluster means would be 1/2.
    interval = bootstrap_questions([1.0, 1.0, 1.0, 0.0], 1, 4000, ["a", "a", "a", "b"], 0.4)
    assert (interval.low, interval.high) == (0.75, 0.75)
    wide = bootstrap_questions([1.0, 1.0, 1.0, 0.0], 1, 4000, ["a", "a", "a", "b"], 0.8)
    assert (wide.low, wide.high) == (0.0, 1.0)


def test_draws_in_several_portions_cover_all_of_them() -> None:
    values = np.random.default_rng(1).uniform(-1, 1, 3000)  # all distinct: 699 draws at a time
    interval = bootstrap_questions(values, seed=1, draws=1500)
    spread = float(values.std()) / np.sqrt(3000)
    assert interval.low == pytest.approx(values.mean() - 1.96 * spread, abs=0.3 * spread)
    assert interval.high == pytest.approx(values.mean() + 1.96 * spread, abs=0.3 * spread)


def test_a_seed_repeats_and_another_seed_differs() -> None:
    once = bootstrap_questions([0.25, 0.5, -0.125, 0.75, 0.1], seed=1, draws=200)
    assert once == bootstrap_questions([0.25, 0.5, -0.125, 0.75, 0.1], seed=1, draws=200)
    assert once != bootstrap_questions([0.25, 0.5, -0.125, 0.75, 0.1], seed=2, draws=200)
    generator = np.random.default_rng(1)
    assert bootstrap_pairs(9, 4, 50, generator) == bootstrap_pairs(9, 4, 50, 1)


def test_a_missing_seed_and_impossible_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="seed"):
        bootstrap_pairs(1, 2, 10, seed=None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at most n=10"):
        bootstrap_pairs(9, 2, 10, seed=1)
    with pytest.raises(ValueError, match="draws"):
        bootstrap_questions([0.1, 0.2], seed=1, draws=0)
    with pytest.raises(ValueError, match="NaN"):
        bootstrap_questions([0.1, float("nan")], seed=1)
