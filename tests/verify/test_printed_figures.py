"""Numbers as a reader sees them in a page or a card: what they say, how far they are rounded."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahalab.verify.report_printed import figures_in, rounds_to


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("31.0 %", 30.96),
        ("+5.4 points", 5.43),
        ("\N{MINUS SIGN}1.6", -1.61),
        ("1,319", 1319),
        ("p = .298", 0.2981),
        ("2e-05", 2.04e-5),
        ("3.1 × 10⁻¹²", 3.14e-12),
    ],
)
def test_a_number_is_printed_rounded_and_no_other_is(text: str, number: float) -> None:
    (figure,) = figures_in(text)
    assert rounds_to(number, figure)
    for other in (number * 1.5, -number, 0.0, number + 1):
        assert not rounds_to(other, figure)


HUGE = [
    "1e999",
    "1e999999",
    "1e" + "9" * 5_000,
    "-1e999",
    "1 × 10⁹⁹⁹",
    "1 × 10" + "⁹" * 5_000,
    "9" * 5_000,
    "9" * 5_000 + ".5",
]


@pytest.mark.parametrize("text", HUGE, ids=lambda text: text[:9])
def test_what_no_float_holds_is_the_rounding_of_nothing(text: str) -> None:
    (figure,) = figures_in(text)
    for number in (0.0, 3, 1e308, -1e308, 10**400, math.inf, -math.inf, math.nan):
        assert not rounds_to(number, figure)


@pytest.mark.parametrize(
    "text", ["1 × 10⁻", "1 × 10⁻⁻5", "1 × 10⁵⁻", "e5", "1e", "1e+", "+-.,", "\u0663"]
)
def test_half_a_number_ends_nothing(text: str) -> None:
    figures_in(text)


@given(st.text(alphabet="0123456789.,e+-\N{MINUS SIGN}⁻⁹ ×%", max_size=60))
def test_no_text_ends_the_reading(text: str) -> None:
    for figure in figures_in(text):
        assert not math.isnan(figure[0])
        rounds_to(10**400, figure)


@given(st.integers(-(10**9), 10**9), st.integers(0, 6))
def test_every_number_is_the_rounding_of_itself(whole: int, decimals: int) -> None:
    number = whole / 10**decimals
    (figure,) = figures_in(f"{number:.{decimals}f}")
    assert rounds_to(number, figure)
