"""pass@k against binomial coefficients and a count of all draws."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahalab.statistics.passk import mean_pass_at_k, pass_at_k


def test_all_draws_counted_one_by_one() -> None:
    answers = [True, True, False, False, False]
    draws = list(combinations(answers, 3))
    assert pass_at_k(2, 5, 3) == pytest.approx(sum(any(draw) for draw in draws) / len(draws))


@given(st.integers(1, 60), st.data())
def test_binomial_coefficients_agree(answers: int, more: st.DataObject) -> None:
    correct = more.draw(st.integers(0, answers))
    k = more.draw(st.integers(1, answers))
    exact = 1 - Fraction(comb(answers - correct, k), comb(answers, k))
    assert pass_at_k(correct, answers, k) == pytest.approx(float(exact), abs=1e-12)


def test_one_try_is_the_accuracy_and_thousands_do_not_overflow() -> None:
    assert pass_at_k(3, 8, 1) == pytest.approx(3 / 8)
    assert pass_at_k(0, 8, 4) == 0.0
    assert pass_at_k(1, 10_000, 100) == pytest.approx(0.01)  # one correct: k / n


def test_questions_weigh_the_same_whatever_their_number_of_answers() -> None:
    assert mean_pass_at_k([1, 0, 2], [2, 4, 4], 2) == pytest.approx((1 + 0 + 5 / 6) / 3)


def test_fewer_answers_than_k_are_refused() -> None:
    with pytest.raises(ValueError, match="expected at least k=5 a question, found 4"):
        pass_at_k(4, 4, 5)
    with pytest.raises(ValueError, match="expected at least k=3"):
        mean_pass_at_k([1, 1], [3, 2], 3)


@pytest.mark.parametrize(
    ("correct", "answers", "k"), [(5, 4, 2), (-1, 4, 2), (1, 4, 0), (1.0, 4, 2), (True, 4, 2)]
)
def test_impossible_counts_are_refused(correct: int, answers: int, k: int) -> None:
    with pytest.raises(ValueError, match="expected"):
        pass_at_k(correct, answers, k)


def test_no_question_and_unpaired_counts_are_refused() -> None:
    for correct, answers in (([], []), ([1], [2, 2])):
        with pytest.raises(ValueError, match="equal lengths above 0"):
            mean_pass_at_k(correct, answers, 1)
