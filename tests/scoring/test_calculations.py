"""Calculations that a text writes out, each judged by hand."""

from __future__ import annotations

import time
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ahalab.scoring.calculations import MAX_CALCULATIONS, Calculation, find_calculations


def told(text: str) -> list[tuple[str, bool]]:
    return [(c.written, c.holds) for c in find_calculations(text)]


@pytest.mark.parametrize(
    ("text", "written", "holds"),
    [
        ("Tom has 14 + 8 = 22 apples.", "14+8", True),
        ("Tom has 14 + 8 = 23 apples.", "14+8", False),
        ("2 + 3 * 4 = 14", "2+3*4", True),
        ("2 + 3 * 4 = 20", "2+3*4", False),  # a product comes first
        ("5 * (10 - 3) = 5 * 7 = 35", "5*(10-3)", True),
        ("14 + 8 = 22 + 3 = 25", "14+8", False),  # 22 is not 25
        ("22 = 14 + 8", "14+8", True),
        ("Total = 14 + 8 = 22", "14+8", True),
        ("(14 + 8 = 22)", "14+8", True),
        ("3 boxes (4 + 5 = 9 pens)", "4+5", True),
        ("3(4 + 5) = 27", "3*(4+5)", True),
        ("- 14 + 8 = 22", "14+8", True),  # a bullet
        ("1. 14 + 8 = 22", "14+8", True),
        ("8 - 14 = -6", "8-14", True),
        ("8 - 14 = 6", "8-14", False),
        ("3 * -2 = -6", "3*(-2)", True),
        ("$3 + $4 = $7", "3+4", True),
        ("3 apples + 4 apples = 7 apples", "3+4", True),
        ("5 miles/hour * 3 hours = 15 miles", "5*3", True),
        ("65-minute concert – 15-minute encore = 50 minutes", "65-15", True),
        ("1,200 + 300 = 1,500", "1200+300", True),
        ("0.1 + 0.2 = 0.3", "(1/10)+(2/10)", True),
        ("14 + 8 = **22**", "14+8", True),
        ("**14 + 8 = 22**", "14+8", True),
        ("14 + 8 = \\boxed{22}", "14+8", True),
        ("\\(3 \\times 4 = 12\\)", "3*4", True),
        ("$\\frac{12}{4} + 1 = 4$", "((12)/(4))+1", True),
        ("2 x 3 = 6", "2*3", True),
        ("3 times 4 = 12", "3*4", True),
        ("48/2 = <<48/2=24>>24 clips", "48/2", True),
        ("20% of 50 = 10", "(20/100)*50", True),
        ("20 / 50 = 40%", "20/50", True),
        ("20 / 50 * 100 = 40%", "20/50*100", True),
        ("10/3 = 3.33", "10/3", True),
        ("10/3 ≈ 3.34", "10/3", False),
        ("10/3 = 3.3", "10/3", False),  # one place is no rounding
        ("-10/3 = 3.33", "(-10)/3", False),  # nor is another sign
        ("1.111 * 3 = 3.33", "(1111/1000)*3", False),  # nor is a product
        ("1/0 = 5", "1/0", False),
        ("It costs 3 a day for 5 * 7 = 35", "5*7", True),
        ("She has 10 and makes 3 for a total of 10*3 = 30", "10*3", True),
    ],
)
def test_a_calculation_is_read_and_worked_out(text: str, written: str, holds: bool) -> None:
    assert told(text) == [(written, holds)]


@pytest.mark.parametrize(
    "text",
    [
        "", "1 = 1", "x = 5", "x + 3 * 2 = 10", "2x + 3 = 7", "cost + 3 = 7", "3 + 4 = y",
        "2**3 = 8", "2^3 + 1 = 9", "\\sqrt{16} + 3 = 7", "3 + 4 == 7", "3 + 4 != 8", "3 + 4 <= 9",
        "5 more than 3 * 4 = 17", "half of 48 + 2 = 26", "2 1/2 * 4 = 10",
        "2\\frac{1}{2} * 4 = 10", "3 + + 4 = 7", "(3 + 4 = ", "3 + 4 =", "9" * 40 + " + 1 = 2",
        "9 + 3:30 = 12", "1 + 1,1 = 2",
    ],
)  # fmt: skip
def test_what_is_no_arithmetic_on_plain_numbers_is_no_calculation(text: str) -> None:
    assert told(text) == []


def test_two_calculations_in_one_sentence_are_two() -> None:
    text = "3 + 4 = 7 apples and 2 + 5 = 8 pears; 4 + 4 = 8, 8 + 8 = 16."
    assert told(text) == [("3+4", True), ("2+5", False), ("4+4", True), ("8+8", True)]


def test_operands_and_result_are_told_without_signs_and_percent() -> None:
    [found] = find_calculations("50% of 8 - 14 = -10")
    operands = (Fraction(50), Fraction(8), Fraction(14))
    assert found == Calculation(
        "(50/100)*8-14", operands, (Fraction(14),), Fraction(-10), Fraction(10), True
    )


numbers = st.integers(0, 10**6)


@settings(deadline=None)
@given(numbers, st.sampled_from("+-*"), numbers, st.integers(-3, 3))
def test_a_sum_holds_exactly_when_it_is_true(a: int, sign: str, b: int, off: int) -> None:
    value = {"+": a + b, "-": a - b, "*": a * b}[sign]
    assert told(f"So {a:,} apples {sign} ${b} = {value + off}.") == [(f"{a}{sign}{b}", off == 0)]


def joined(
    parts: st.SearchStrategy[tuple[str, Fraction]],
) -> st.SearchStrategy[tuple[str, Fraction]]:
    """Join two expressions in parentheses: the oracle needs no rule of precedence."""
    work = {"+": Fraction.__add__, "-": Fraction.__sub__, "*": Fraction.__mul__}
    return st.tuples(parts, st.sampled_from(sorted(work)), parts).map(
        lambda drawn: (
            f"({drawn[0][0]}) {drawn[1]} ({drawn[2][0]})",
            work[drawn[1]](drawn[0][1], drawn[2][1]),
        )
    )


expressions = st.recursive(
    st.integers(0, 99).map(lambda n: (str(n), Fraction(n))), joined, max_leaves=6
)


@settings(deadline=None)
@given(joined(expressions), st.integers(-2, 2))
def test_nested_expressions_agree_with_exact_fractions(
    expression: tuple[str, Fraction], off: int
) -> None:
    written, value = expression
    [(_, holds)] = told(f"Then {written} = {value + off}.")
    assert holds is (off == 0)


@settings(deadline=None, max_examples=300)
@given(st.text(alphabet="12 +-*/=()x.,%$\\\n^aof{}", max_size=60))
def test_any_text_is_read_and_nothing_holds_that_is_not_true(text: str) -> None:
    for found in find_calculations(text):
        assert found.written
        assert found.operands
        assert not (found.holds and found.value is None)


@pytest.mark.parametrize(
    "text",
    ["1+1=2 " * 700_000, "1+1=" * 1_000_000, "1+" * 2_000_000, "(" * 4_000_000, "<<" * 2_000_000,
     "1,111" * 800_000, "\\frac{1}{2}" * 360_000, "=" * 4_000_000, "*" * 4_000_000,
     "é＝１" * 1_300_000, "-a" * 2_000_000],
    ids=lambda text: repr(text[:11]),
)  # fmt: skip
def test_four_megabytes_cost_bounded_time(text: str) -> None:
    started = time.perf_counter()
    assert len(find_calculations(text)) <= MAX_CALCULATIONS
    assert time.perf_counter() - started < 5
