"""Accuracy of marked and unmarked answers: published values, scipy, and what repeats may not do."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats

from ahalab.statistics.association import compare_groups, wilson


def answers(marked: tuple[int, int], unmarked: tuple[int, int]) -> tuple[list[int], list[int]]:
    """Return correct and marked of (right, all) answers on each side."""
    correct, marks = [], []
    for mark, (right, n) in ((1, marked), (0, unmarked)):
        correct += [1] * right + [0] * (n - right)
        marks += [mark] * n
    return correct, marks


def alone(count: int) -> list[int]:
    return list(range(count))


@pytest.mark.parametrize(
    ("marked", "unmarked", "low", "high"),
    [  # Newcombe 1998, Statistics in Medicine 17:873, table II, method 10
        ((56, 70), (48, 80), 0.0524, 0.3339),
        ((9, 10), (3, 10), 0.1705, 0.8090),
        ((6, 7), (2, 7), 0.0582, 0.8062),
        ((5, 56), (0, 29), -0.0381, 0.1926),
        ((0, 10), (0, 20), -0.1611, 0.2775),
        ((0, 10), (0, 10), -0.2775, 0.2775),
        ((10, 10), (0, 20), 0.6791, 1.0000),
        ((10, 10), (0, 10), 0.6075, 1.0000),
    ],
)
def test_newcombes_published_intervals_come_out(
    marked: tuple[int, int], unmarked: tuple[int, int], low: float, high: float
) -> None:
    correct, marks = answers(marked, unmarked)
    found = compare_groups(correct, marks, alone(len(correct)))
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == pytest.approx((low, high), abs=6e-5)
    assert found.difference == pytest.approx(marked[0] / marked[1] - unmarked[0] / unmarked[1])


@pytest.mark.parametrize(("right", "n"), list(product((0, 1, 7, 20), (20, 31))))
def test_wilsons_interval_is_scipys(right: int, n: int) -> None:
    expected = stats.binomtest(right, n).proportion_ci(0.9, method="wilson")
    z = float(stats.norm.isf(0.05))
    assert wilson(right / n, n, z) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_every_answer_written_four_times_leaves_the_intervals_where_they_were() -> None:
    correct, marks = answers((9, 10), (3, 10))
    once = compare_groups(correct, marks, alone(20))
    four = compare_groups(correct * 4, marks * 4, alone(20) * 4)
    assert four.interval is not None
    assert once.interval is not None
    assert four.marked.answers == 40
    assert four.marked.questions == once.marked.questions == 10
    assert four.interval.low == pytest.approx(once.interval.low)
    assert four.interval.high == pytest.approx(once.interval.high)


def test_where_all_answers_are_right_the_questions_are_the_size() -> None:
    found = compare_groups([1] * 12 + [0], [1] * 12 + [0], [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4])
    z = float(stats.norm.isf(0.025))
    assert (found.marked.low, found.marked.high) == pytest.approx(wilson(1.0, 4, z))


@pytest.mark.parametrize("mark", [0, 1])
def test_an_empty_group_leaves_no_difference(mark: int) -> None:
    found = compare_groups([1, 0, 1], [mark] * 3, alone(3))
    assert (found.difference, found.interval) == (None, None)
    empty, full = (found.unmarked, found.marked) if mark else (found.marked, found.unmarked)
    assert (empty.answers, empty.rate, empty.low, empty.high) == (0, None, None, None)
    assert (full.answers, full.correct) == (3, 2)


def test_the_interval_covers_where_questions_differ_and_have_eight_answers() -> None:
    rng = np.random.default_rng(4)
    truth, covered, pooled, rounds = 0.0, 0, 0, 400
    for _ in range(rounds):
        skill = rng.beta(0.7, 0.7, size=60)  # of a question; marked or not is its own doing
        shows = rng.beta(1.0, 1.0, size=60) < 0.5
        correct = (rng.random((60, 8)) < skill[:, None]).astype(int).ravel()
        marks = np.repeat(shows, 8).astype(int)
        found = compare_groups(correct, marks, np.repeat(np.arange(60), 8).tolist())
        naive = compare_groups(correct, marks, alone(480))
        assert found.interval is not None
        assert naive.interval is not None
        covered += found.interval.contains(truth)
        pooled += naive.interval.contains(truth)
    assert covered / rounds > 0.92  # 95 % less three Monte Carlo errors
    assert pooled / rounds < 0.75  # what the question as the unit is for


@pytest.mark.parametrize(
    ("correct", "marked", "labels", "told"),
    [
        ([1, 0], [1], [0, 1], "marked_N: expected 2 values"),
        ([1, 0.5], [1, 0], [0, 1], "correct_N"),
        ([1, 0], [1, 2], [0, 1], "marked_N"),
        ([1, 0], [1, 0], [0], "clusters"),
        ([1, 0], [1, 0], [0, None], "clusters"),
    ],
)
def test_what_is_no_such_table_is_refused(
    correct: list[float], marked: list[float], labels: list[object], told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        compare_groups(correct, marked, labels)
