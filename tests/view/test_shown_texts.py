from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from small_study import make_plan

from ahalab.view.scored import Question, taken
from ahalab.view.shown import MAX_TEXT, Shown, line, shown
from ahalab.visible import plain

PLAN = make_plan([("correctness", 1)], 1)
ASKED = Question("What is 3 + 4?", "7")


def units(found: Shown, start: int, end: int) -> str:
    """Return a stretch of a text as JavaScript's `slice` does."""
    return found.text.encode("utf-16-le", "surrogatepass")[2 * start : 2 * end].decode("utf-16-le")


@st.composite
def texts_with_spans(draw: st.DrawFn) -> tuple[str, tuple[int, int]]:
    text = draw(st.text(st.characters(blacklist_categories=("Cs",)), min_size=1, max_size=60))
    start = draw(st.integers(0, len(text) - 1))
    return text, (start, draw(st.integers(start, len(text))))


@given(texts_with_spans())
def test_places_are_those_that_javascript_counts(drawn: tuple[str, tuple[int, int]]) -> None:
    text, (start, end) = drawn
    found = shown(text, (start, end))
    assert found.text == plain(text, keep="\n\t")
    assert found.mark is not None
    assert units(found, *found.mark) == plain(text[start:end], keep="\n\t")
    escaped = "".join(units(found, *place) for place in found.escapes)
    assert escaped == "".join(plain(c) for c in text if plain(c) != c and c not in "\n\t")


def test_a_long_text_is_cut_and_says_so() -> None:
    found = shown("x" * (MAX_TEXT + 7), (MAX_TEXT + 1, MAX_TEXT + 2))
    assert (len(found.text), found.cut, found.mark) == (MAX_TEXT, 7, None)


def test_a_line_is_one_line_made_visible() -> None:
    assert line("a\n\nb \x1b c") == "a b ^[ c"
    assert line(None) == ""
    assert line("word " * 100, 20) == "word word word word…"


def test_what_the_scorer_took_is_marked_with_its_rule() -> None:
    found = taken(PLAN, ASKED, "3 + 4 = 7\n#### 7", "eos", "7")
    assert found.completion.mark == (15, 16)
    assert (found.rule, found.note) == ("hashes", "")


def test_a_record_that_the_installed_scorer_does_not_take_is_not_marked_and_told() -> None:
    found = taken(PLAN, ASKED, "#### 7", "eos", "9")
    assert (found.completion.mark, found.extracted) == (None, "9")
    assert found.note.startswith("not marked: the installed scorer (")


def test_nothing_is_marked_where_nothing_was_taken_or_no_gold_is_known() -> None:
    assert taken(PLAN, ASKED, "#### 7", "eos", None).completion.mark is None
    assert taken(PLAN, Question(None, None), "#### 7", "eos", "7").completion.mark is None
