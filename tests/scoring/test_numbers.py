from __future__ import annotations

from fractions import Fraction

import pytest

from ahalab.scoring.latex import plain
from ahalab.scoring.numbers import MAX_DIGITS, find_numbers, in_expression, read_number
from ahalab.scoring.text import clean


def _value(text: str) -> Fraction | None:
    number = read_number(plain(clean(text).text))
    assert number is not None, text
    return number.value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("18", "18"),
        ("-7", "-7"),
        ("- 7", "-7"),
        ("−7", "-7"),
        ("+3", "3"),
        ("007", "7"),
        ("18.50", "37/2"),
        (".5", "1/2"),
        ("1,234,567.50", "2469135/2"),
        ("1,23,456", "123456"),
        ("1\u00a0200", "1200"),
        ("1 234 567", "1234567"),
        ("4,2", "21/5"),
        ("1.234,50", "2469/2"),
        ("1.234.567", "1234567"),
        ("½", "1/2"),
        ("2½ cups", "5/2"),
        ("1.5 million dollars", "1500000"),
        ("negative 5", "-5"),
        ("3/4", "3/4"),
        ("-3/4", "-3/4"),
        ("2 2/3", "8/3"),
        ("$18", "18"),
        ("-$18", "-18"),
        ("$-18", "-18"),
        ("€45", "45"),
        ("45 euros", "45"),
        ("35 cm", "35"),
        ("3e5", "300000"),
        ("1.2 × 10^3", "1200"),
        ("2^10", "1024"),
        ("2**10", "1024"),
        ("1e-3", "1/1000"),
        ("１８", "18"),
        ("２５．５", "51/2"),
        ("٤٢", "42"),
        ("१५", "15"),
        ("1\u200b8", "18"),
        ("eighteen", "18"),
        ("twenty-four", "24"),
        ("one hundred and five", "105"),
        ("two thousand three hundred and one apples", "2301"),
        ("minus seven", "-7"),
        (r"\frac{9}{7}", "9/7"),
        (r"\dfrac{9}{7}", "9/7"),
        (r"\frac12", "1/2"),
        (r"-\frac{43}{60}", "-43/60"),
        (r"\frac{-43}{60}", "-43/60"),
        (r"\frac{43}{-60}", "-43/60"),
        (r"2\frac{1}{2}", "5/2"),
        (r"12{,}400", "12400"),
        (r"\$64", "64"),
        (r"60\text{ miles per hour}", "60"),
        (r"48 \text{ cm}^2", "48"),
        (r"\mathbf{56}", "56"),
        (r"1.2 \times 10^{3}", "1200"),
        (r"90^\circ", "90"),
    ],
)
def test_a_number_is_read_exactly_however_it_is_written(text: str, value: str) -> None:
    assert _value(text) == Fraction(value)


def test_a_percent_sign_is_kept_as_a_flag_and_decimal_places_are_counted() -> None:
    percent = read_number("12.50%")
    assert percent is not None
    assert (percent.value, percent.percent, percent.decimals) == (Fraction(25, 2), True, 2)


@pytest.mark.parametrize(
    "text",
    [
        "", "apples", "18 or 20", "18 and 20", "1,2,3", "0, 1", "3x", "2 x", "3i", "12:30", "5+3",
        "nan", "inf", "two three", "1.2.3", r"4\sqrt{2}", r"3\pi", "(0, 1)", "--5", "1/0.",
    ],
)  # fmt: skip
def test_a_text_that_is_not_one_number_is_not_read_as_one(text: str) -> None:
    number = read_number(plain(text))
    assert number is None or number.value is None


@pytest.mark.parametrize(
    "text", ["9" * (MAX_DIGITS + 1), "1e999999", "9^99999999", "1e" + "9" * 10_000, "2**14001"]
)
def test_a_number_beyond_the_bounds_has_no_value(text: str) -> None:
    number = read_number(text)
    assert number is not None
    assert number.value is None


def test_an_integer_within_the_bounds_is_exact_to_its_last_digit() -> None:
    digits = "7" * MAX_DIGITS
    assert _value(digits) == Fraction(int(digits))
    assert _value("0" * 10_000 + "5") == 5


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("18 apples on 3 trees", [18, 3]),
        ("from 5-3 to x2 and v1.2", [5, 3]),
        ("it is $-5 or -$6", [-5, -6]),
        ("two men and three women", [2, 3]),
        ("one hundred and five", [105]),
        ("10 men and three women", [10]),  # words count only where there is no digit
        ("1,1,1,1", []),
    ],
)
def test_the_numbers_of_a_sentence_are_found_in_order(text: str, values: list[int]) -> None:
    assert [found.number.value for found in find_numbers(text)] == values


@pytest.mark.parametrize(
    ("text", "operand"),
    [("5 + 3", True), ("5 * 3", True), ("2**30", True), ("5 times 3", True), ("5 apples", False),
     ("5, 3", False), ("**5** apples", False)],
)  # fmt: skip
def test_an_operand_of_an_unworked_expression_is_known(text: str, operand: bool) -> None:
    assert in_expression(text, find_numbers(text)[0]) is operand
