import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahalab.visible import UNSEEN, plain, written_out


@pytest.mark.parametrize(
    ("character", "seen"),
    [("a", "a"), ("é", "é"), ("漢", "漢"), (" ", " "), ("\x1b", "^["), ("\x00", "^@"),
     ("\x7f", "^?"),
     ("\x9b", "\\x9b"), ("\u202e", "\\u202e"), ("\u200b", "\\u200b"), ("\ufe0f", "\\ufe0f"),
     ("\u3164", "\\u3164"), ("\u2800", "\\u2800"), ("\U000e0041", "\\U000e0041")],
)  # fmt: skip
def test_what_is_not_seen_has_its_name(character: str, seen: str) -> None:
    assert written_out(character) == seen


def test_what_a_door_shows_itself_is_kept() -> None:
    assert plain("a\n\tb\x1b", keep="\n\t") == "a\n\tb^["
    assert plain("a\nb") == "a^Jb"


@given(st.text())
def test_nothing_unseen_is_left_and_nothing_seen_is_changed(text: str) -> None:
    shown = plain(text)
    assert not [c for c in shown if unicodedata.category(c) in UNSEEN]
    assert shown == text or len(shown) > len(text)
