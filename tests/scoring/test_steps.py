"""Steps to an answer: which calculations count, worked out by hand."""

from __future__ import annotations

from fractions import Fraction

import pytest

from ahalab.scoring.steps import CONSTANTS, Steps, steps_to_answer

QUESTION = "Tom has 14 apples and buys 8 more. He sells each for $3. What does he earn?"


@pytest.mark.parametrize(
    ("text", "answer", "right", "count"),
    [
        ("14 + 8 = 22. 22 * 3 = 66.", 66, 2, 2),
        ("14 + 8 = 22. 22 * 3 = 67.", 67, 1, 2),
        ("14 + 8 = 23. 23 * 3 = 69.", 69, 1, 2),  # a slip is followed through
        ("14 + 8 = 23. 23 * 3 = 70.", 70, 0, 2),
        ("(14 + 8) * 3 = 66", 66, 1, 1),
        ("It is 66.", 66, 0, 0),
        ("14 + 8 = 22. It is 66.", 66, 0, 0),  # leads elsewhere
        ("1 + 1 = 2. " * 100 + "It is 66.", 66, 0, 0),
        ("14 + 8 = 22. " * 100, 22, 1, 1),  # said once
        ("14 + 8 = 22. 22 * 3 = 66. 66 / 3 = 22.", 66, 2, 2),  # a check is no step
        ("14 + 8 = 23. Wait, 14 + 8 = 22. 22 * 3 = 66.", 66, 2, 2),  # put right
        ("14 + 8 = 23. 23 + 14 = 37. 37 - 14 = 23.", 23, 0, 1),  # no way round and back
        ("14 + 8 = 23. 23 + 0 = 23. 23 * 1 = 23. 23 * 2 / 2 = 23", 23, 0, 1),
        ("11 + 11 = 22", 22, 0, 0),  # no number of the question
        ("14 + 9 = 23", 23, 0, 0),
        ("14 * 12 = 168", 168, 1, 1),  # a dozen need not be said
        ("14 * 0.5 = 7", 7, 1, 1),
        ("14 + 12 = 26", 26, 0, 0),  # and is not added
        ("14 + 14 / 2 = 21", 21, 1, 1),
        ("14 - 8 = 6", 6, 1, 1),  # true, and not what was asked
        ("8 - 14 = -6", -6, 1, 1),
        ("14 + 8 = 22. 22 * 3 = 66.", None, 0, 0),
    ],
)
def test_the_steps_to_an_answer_are_counted(
    text: str, answer: int | None, right: int, count: int
) -> None:
    stated = None if answer is None else Fraction(answer)
    assert steps_to_answer(text, QUESTION, stated) == Steps(right, count)


def test_a_percentage_of_the_question_may_be_written_as_a_factor() -> None:
    question = "A coat of $40 is sold at 30% less. A scarf costs twenty dollars."
    for text, answer in [("40 * 0.7 = 28", 28), ("40 * 0.30 = 12", 12), ("40 * 1.3 = 52", 52),
                         ("40 + 20 = 60", 60)]:  # fmt: skip
        assert steps_to_answer(text, question, Fraction(answer)) == Steps(1, 1)


def test_no_step_leads_from_a_question_without_numbers_but_by_constants() -> None:
    assert steps_to_answer("17 + 5 = 22", "", Fraction(22)) == Steps(0, 0)
    assert Fraction(1) not in CONSTANTS  # one more than the right answer is an easy wrong one


def test_the_share_is_of_all_steps_and_0_without_any() -> None:
    assert Steps(1, 4).share == 0.25
    assert Steps(0, 0).share == 0.0
