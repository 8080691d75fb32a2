from __future__ import annotations

import pytest

from ahalab.scoring.answers import Asked, score_answer
from ahalab.scoring.deciding import LatexVerdict, MathVerdict
from ahalab.scoring.equality import equal_math, read_math_gold


def _equal(stated: str, gold: str) -> MathVerdict:
    read = read_math_gold(gold)
    assert read is not None
    return equal_math(stated, read)


@pytest.mark.parametrize(
    ("stated", "gold"),
    [
        (r"\dfrac{9}{7}", r"\frac{9}{7}"), ("3/4", "0.75"),
        (r"-\frac{43}{60}", r"\frac{-43}{60}"),
        ("1,000", "1000"), ("50", r"50\%"), ("0, 1", "0,1"), ("1, 0", "0,1"),
        (r"(1,\frac{9}{2})", "(1,4.5)"),
        (r"\left( 3, \frac{\pi}{2} \right)", r"(3, \frac{\pi}{2})"),
        (r"\{2,1\}", r"\{1,2\}"), (r"\frac{\sqrt{3}}{2}", r"\frac{\sqrt{3}}{2}"), ("x = 5", "5"),
        (r"\text{Evelyn}", "Evelyn"), ("3:2", "3:2"), (r"\pm 2", "2, -2"), ("2x+1", "2x + 1"),
        (r"1728 \text{ and } 1331", "1331 and 1728"), ("016", "16"), (r"x=\frac12", r"\frac{1}{2}"),
    ],
)  # fmt: skip
def test_the_same_answer_in_another_notation_is_equal(stated: str, gold: str) -> None:
    assert _equal(stated, gold) == "equal"


@pytest.mark.parametrize(
    ("stated", "gold"),
    [
        (r"\frac{12}{3}", r"\frac{1}{23}"), ("(2,3)", "(3,2)"), ("[2,5]", "[2,5)"),
        ("1:00", "12:00"),
        ("(0, 1.5)", "(0, 1)"), ("2021", r"\pm 2021"), ("1728", "1331 and 1728"), ("2:3", "3:2"),
        (r"4\sqrt(2)", "4"), ("3x", "3"), ("x", "5"), ("01", "0,1"), ("(1,2)", r"\{1,2\}"),
        ("3x + 4y + 14 = 0", "3x - y + 13 = 0"), (r"\frac{1}{2^{98}}", r"\frac{1}{2^{99}}"),
    ],
)  # fmt: skip
def test_another_answer_is_not_equal(stated: str, gold: str) -> None:
    assert _equal(stated, gold) == "different"


@pytest.mark.parametrize("stated", ["9^{9^{9}}", "10^{10^8}", "5^{(5^{(5^{5})})}", "2^{100000000}"])
def test_a_power_beyond_the_bounds_is_decided_by_nothing_and_is_an_error(stated: str) -> None:
    assert _equal(stated, "5") == "bounds"
    reading = score_answer(f"\\boxed{{{stated}}}", "5", asked=Asked("boxed", "math")).strict
    assert (reading.outcome, reading.status) == ("error", "error: bounds")


def test_latex_beyond_text_is_handed_to_the_decider_where_one_is_given() -> None:
    asked_of: list[tuple[str, str]] = []

    def decider(stated: str, gold: str) -> LatexVerdict:
        asked_of.append((stated, gold))
        return "equal"

    asked = Asked("boxed", "math")
    response, gold = r"\boxed{\sqrt{8}}", r"2\sqrt{2}"
    assert score_answer(response, gold, asked=asked).strict.outcome == "wrong"
    decided = score_answer(response, gold, asked=asked, latex_equal=decider)
    assert decided.strict.outcome == "correct"
    assert asked_of == [(r"\sqrt{8}", r"2\sqrt{2}")]


def test_several_answers_where_the_gold_is_one_are_a_hedge() -> None:
    asked = Asked("boxed", "math")
    assert score_answer(r"\boxed{12 \text{ or } 15}", "12", asked=asked).strict.status == (
        "unparsed: hedged"
    )
    assert score_answer(r"\boxed{2 \text{ or } -2}", "2 or -2", asked=asked).strict.outcome == (
        "correct"
    )


@pytest.mark.parametrize(
    ("response", "gold"),
    [
        (r"The board is $2\frac{1}{2}$ feet long.", "2.5"),
        (r"We find \( \displaystyle \frac{5}{8} \).", "5/8"),
        ("The answer is (3, 4).", "(3, 4)"),
        (r"Final Answer: The final answer is $96$. I hope it is correct.", "96"),
        ("The share is 3/4.", "0.75"),
    ],
)
def test_mathematics_stated_in_prose_is_read_leniently(response: str, gold: str) -> None:
    assert score_answer(response, gold, asked=Asked("boxed", "math")).lenient.outcome == "correct"
