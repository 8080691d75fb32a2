from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahalab.report.wording import (
    count,
    number,
    percent,
    points,
    probability,
    span,
    trend,
    visible,
)
from ahalab.visible import plain


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "–"), (0.0, "0"), (3, "3"), (12345, "12,345"), (-4, "−4"), (2.0, "2.00"),
     (0.031234, "0.0312"), (1234.5, "1,234"), (-0.5, "−0.500"), (2.39e-7, "2.39 × 10⁻⁷")],
)  # fmt: skip
def test_numbers_are_rounded_for_reading(value: float | None, shown: str) -> None:
    assert number(value) == shown


def test_an_unknown_is_never_zero() -> None:
    shown = [f(None) for f in (number, count, points, span, percent, probability)]
    assert set(shown) == {"–"}
    assert trend(None, None) == "–"
    assert trend(None, 0.5, share=True) == "– → 50.0 %"


def test_differences_are_signed_and_a_rounded_zero_has_no_sign() -> None:
    assert [points(v) for v in (12.34, -0.449, 0.0, -0.04, 0.04)] == [
        "+12.3",
        "−0.4",
        "0.0",
        "0.0",
        "0.0",
    ]
    assert span((-1.5, 2.25)) == "−1.5 to +2.2"


def test_counts_keep_a_mean_of_counts() -> None:
    assert [count(v) for v in (21.0, 21.34, 1200)] == ["21", "21.3", "1,200"]


def test_control_characters_are_shown_in_caret_notation() -> None:
    assert plain("\x00\x1b[0m\x7f\r") == "^@^[[0m^?^M"
    assert plain("\x9b \u202e \U000e0041") == "\\x9b \\u202e \\U000e0041"


def test_what_was_written_out_is_told_from_the_same_letters_typed() -> None:
    assert visible("\\u202e") == "\\u202e"
    assert visible("\u202e") == '<b class="ctl">\\u202e</b>'


@given(st.text(max_size=300))
def test_no_text_brings_markup_or_an_unseen_character_onto_the_page(text: str) -> None:
    html = str(visible(text))
    rest = html.replace('<b class="ctl">', "").replace("</b>", "")
    assert "<" not in rest
    assert ">" not in rest
    assert '"' not in rest
    unseen = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert not [c for c in html if unicodedata.category(c) in unseen and c not in "\n\t"]
