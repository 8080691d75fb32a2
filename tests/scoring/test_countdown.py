from __future__ import annotations

import json
from fractions import Fraction

import pytest

from ahalab.scoring.answers import Asked, score_answer
from ahalab.scoring.countdown import (
    CountdownGold,
    ExpressionError,
    evaluate,
    read_countdown_gold,
    solves,
)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("4 * 6 * 2", Fraction(48)), ("8/(3-8/3)", Fraction(24)), ("1-1/3", Fraction(2, 3)),
        ("-3+10+5", Fraction(12)), ("2*(-3+5)", Fraction(4)), ("10-2-3", Fraction(5)),
        ("16/4/2", Fraction(2)), ("2+3*4", Fraction(14)), (r"4 \times 6", Fraction(24)),
        ("4×6÷2", Fraction(12)), ("05*4", Fraction(20)), ("8/(3-3)", None), ("1/0+1", None),
    ],
)  # fmt: skip
def test_an_expression_is_worked_out_in_exact_rationals(
    expression: str, value: Fraction | None
) -> None:
    assert evaluate(expression)[0] == value


@pytest.mark.parametrize(
    "expression",
    [
        "", "7//2", "2**5", "99**98**4", "3.5*2", "2*", "(1", "1)", "1 2", "a+1", "+3", "2*-3",
        "__import__('os')", "1=2=3", "()", "1" * 19, "(" * 51 + "1" + ")" * 51, "1+" * 600 + "1",
    ],
)  # fmt: skip
def test_what_is_no_expression_of_the_grammar_is_refused(expression: str) -> None:
    with pytest.raises(ExpressionError):
        evaluate(expression)


@pytest.mark.parametrize(
    ("expression", "numbers", "target", "solved"),
    [
        ("(4+6)*2", (4, 6, 2), 20, True),
        ("(4+6)*2 = 20", (2, 4, 6), 20, True),
        ("(4+6)*2 = 21", (4, 6, 2), 20, False),
        ("4*6", (4, 6, 2), 24, False),  # 2 is unused
        ("5*5*(3-2)", (5, 2, 3), 25, False),  # 5 is used twice
        ("12*3", (1, 2, 3), 36, False),  # glued digits
        ("81*1", (1, 81, 1, 1), 81, False),
        ("81*1*1*1", (1, 81, 1, 1), 81, True),
        ("1-1/1000000", (1, 1, 1000000), 1, False),
        ("8/(3-3)", (8, 3, 3), 8, False),
    ],
)
def test_each_number_is_used_exactly_once(
    expression: str, numbers: tuple[int, ...], target: int, solved: bool
) -> None:
    assert solves(expression, CountdownGold(numbers, target)) is solved


@pytest.mark.parametrize(
    ("response", "outcome"),
    [
        ("<answer>(4+6)*2</answer>", "correct"),
        ("<think>4*6</think>\n<answer>(4+6)*2</answer>\nHope this helps!", "correct"),
        ("<answer>$(4+6) \\times 2 = 20$</answer>", "correct"),
        ("<answer>4*6</answer>", "wrong"),
        ("<answer>I found it</answer>", "unparsed"),
        ("<answer>9**9**9</answer>", "unparsed"),
        ("I tried and found\n(4+6)*2 = 20", "correct"),
        ("I tried.", "unparsed"),
    ],
)
def test_a_response_is_scored_by_its_expression(response: str, outcome: str) -> None:
    gold = json.dumps({"numbers": [4, 6, 2], "target": 20})
    assert score_answer(response, gold, asked=Asked("answer_tag", "countdown")).lenient.outcome == (
        outcome
    )


@pytest.mark.parametrize(
    "gold",
    [
        '{"numbers": [1], "target": 1.0}', '{"numbers": [1]}', '{"numbers": [-1], "target": 1}',
        '{"numbers": 1, "target": [1]}', '{"numbers": ["1"], "target": 1}', "{[", "{[}]",
        '{"numbers": [1' + "0" * 1_000 + '], "target": 1}', '{"numbers": [1], "target": NaN}',
    ],
)  # fmt: skip
def test_a_gold_that_is_not_exactly_numbers_and_target_is_refused(gold: str) -> None:
    assert read_countdown_gold(gold) is None
