from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahalab.view.filters import Field, Searched, clause, match_of
from ahalab.view.query import Condition, QueryError, Term, Words, parse
from ahalab.view.search import FIELDS, SEARCHED


def test_fields_words_and_phrases_are_told_apart() -> None:
    assert parse('tokens>200 outcome=wrong reward>0.8 words "two words" carr*') == (
        Condition("tokens", ">", ("200",), False, 1),
        Condition("outcome", "=", ("wrong",), False, 12),
        Condition("reward", ">", ("0.8",), False, 26),
        Words("words", False, False, 37),
        Words("two words", False, False, 43),
        Words("carr", True, False, 55),
    )


def test_a_minus_turns_a_term_round_and_a_number_may_have_one() -> None:
    assert parse("-wait advantage<-0.5 -outcome=correct") == (
        Words("wait", False, True, 1),
        Condition("advantage", "<", ("-0.5",), False, 7),
        Condition("outcome", "=", ("correct",), True, 22),
    )


def test_values_may_be_several_and_quoted() -> None:
    found = parse(r'outcome=wrong,unparsed text~"say \"#### 7\" \\" -')
    assert found == (
        Condition("outcome", "=", ("wrong", "unparsed"), False, 1),
        Condition("text", "~", ('say "#### 7" \\',), False, 24),
        Words("-", False, False, 49),
    )


def test_own_rewards_are_fields_by_their_own_names() -> None:
    (found,) = parse("my_rewards:brief>=0.5")
    assert found == Condition("my_rewards:brief", ">=", ("0.5",), False, 1)


@pytest.mark.parametrize(
    ("text", "place", "told"),
    [
        ("tokens>", 8, "expected a value after tokens>, found none."),
        ("ok tokens > 200", 4, "expected no blank before an operator"),
        ('say "half', 5, "expected a closing quote, found the end."),
        ('""', 1, "expected something between the quotes"),
        ("tokens>1,2", 8, "expected one value after tokens>, found 2."),
        ("outcome=wrong,", 15, "expected a value after outcome=, found none."),
        ("a " * 31, 61, "expected at most 30 terms, found more."),
        ("x" * 1001, 1001, "expected at most 1000 characters, found 1001."),
    ],
)
def test_what_cannot_be_read_is_one_line_with_its_place(text: str, place: int, told: str) -> None:
    with pytest.raises(QueryError) as raised:
        parse(text)
    assert raised.value.place == place
    assert str(raised.value).startswith(f"filter:{place}: {told}")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("tokes>5", "filter:1: expected a field, found 'tokes'. Did you mean tokens?"),
        ("zzz=5", "filter:1: expected a field, found 'zzz'. Fields: tokens, reward,"),
        ("a tokens>many", "filter:3: expected a number after tokens>, found 'many'."),
        ("tokens>nan", "filter:1: expected a number after tokens>, found 'nan'."),
        ("outcome=good", "filter:1: expected outcome to be one of correct, wrong, unparsed,"),
        ("outcome>wrong", "filter:1: expected one of = != after outcome, found >:"),
        ("formatted=maybe", "filter:1: expected formatted to be yes or no, found 'maybe'."),
        ("tokens~5", "filter:1: expected one of = != > >= < <= after tokens, found ~:"),
    ],
)
def test_a_field_refuses_what_does_not_go_with_it(text: str, told: str) -> None:
    with pytest.raises(QueryError) as raised:
        clause(parse(text), FIELDS, SEARCHED)
    assert str(raised.value).startswith(told)


def test_no_filter_is_always_true() -> None:
    assert clause(parse("  "), FIELDS, SEARCHED).sql == "1"


# An oracle for the SQL: the same rows filtered by Python.
ROWS = [(n, n * 10, word, n % 2) for n, word in enumerate(("wrong", "correct", None, "wrong"))]
TABLE = {
    "tokens": Field("r.tokens", "number"),
    "outcome": Field("r.outcome", "name", ("wrong", "correct")),
    "flag": Field("r.flag", "flag"),
    "text": Field("r.outcome", "text"),
}
NOTHING = Searched("r.outcome = ?", "instr(r.outcome, ?) > 0", 1)


def selected(text: str) -> list[int]:
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE r(id, tokens, outcome, flag)")
    database.executemany("INSERT INTO r VALUES (?, ?, ?, ?)", ROWS)
    where = clause(parse(text), TABLE, NOTHING)
    found = database.execute(f"SELECT id FROM r WHERE {where.sql}", where.parameters)  # noqa: S608
    return [number for (number,) in found]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("tokens>=10 outcome=wrong", [3]),
        ("outcome=wrong,correct", [0, 1, 3]),
        ("outcome!=wrong", [1]),  # what is unknown is not found, by either
        ("-outcome=wrong", [1, 2]),
        ("flag=yes", [1, 3]),
        ("text~orr", [1]),
        ("tokens=10,30", [1, 3]),
        ("tokens!=10,30", [0, 2]),
    ],
)
def test_rows_are_those_that_the_filter_means(text: str, found: list[int]) -> None:
    assert selected(text) == found


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_with_a_place_within_it(text: str) -> None:
    place, terms = 1, tuple[Term, ...]()
    try:
        terms = parse(text)
    except QueryError as error:
        place = error.place
    assert 1 <= place <= len(text) + 1
    assert all(1 <= term.place <= len(text) for term in terms)


WORD = st.text(st.characters(blacklist_characters='"\\', blacklist_categories=("Cs",)), min_size=1)


@given(st.lists(WORD, min_size=1, max_size=5))
def test_phrases_read_back_as_they_were_quoted(phrases: list[str]) -> None:
    terms = parse(" ".join(f'"{phrase}"' for phrase in phrases))
    assert [term.text for term in terms if isinstance(term, Words)] == phrases


@given(WORD)
def test_no_word_is_an_error_to_the_index(word: str) -> None:
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE t USING fts5(a)")
    match = match_of(Words(word, True, False, 1))
    if match is not None:
        database.execute("SELECT * FROM t WHERE t MATCH ?", (match,)).fetchall()


@given(st.text(max_size=40))
def test_no_value_reaches_the_sql_itself(value: str) -> None:
    quoted = '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if not value:
        return
    where = clause(parse(f"gold={quoted} {quoted}"), FIELDS, SEARCHED)
    word, signs = (clause(parse(f'gold="a" "{b}"'), FIELDS, SEARCHED).sql for b in "a#")
    assert where.sql in (word, signs)
    assert where.parameters[0] == value
