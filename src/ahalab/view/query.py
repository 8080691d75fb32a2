"""The filter language: `tokens>200 outcome=wrong reward>0.8 "carry the one" -hmm`.

A filter is terms, all of which must hold: a word or a quoted phrase that the text holds (`carr*`
by its start), or a field, an operator and a value. `-` before a term turns it round. This file
knows the grammar only; which fields there are, and how they reach SQL, is `filters.py`'s.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from ahalab.errors import InputError

MAX_QUERY = 1_000  # characters
MAX_TERMS = 30
Operator = Literal["=", "!=", ">", ">=", "<", "<=", "~"]

# A name may hold what names of components hold: letters, digits, `_`, `.` and `:`.
CONDITION = re.compile(r"(?P<field>[^\W\d][\w.:]*)(?P<operator>!=|>=|<=|=|>|<|~)", re.UNICODE)
BARE = re.compile(r'[^\s"]+')
BARE_VALUE = re.compile(r'[^\s",]+')
WORD_AND_OPERATOR = re.compile(r"[^\W\d][\w.:]*\s+(?:!=|>=|<=|=|>|<|~)")


class QueryError(InputError):
    """A filter can't be read; the message names the place, counted from 1."""

    def __init__(self, place: int, message: str) -> None:
        super().__init__(f"filter:{place}: {message}")
        self.place = place


@dataclass(frozen=True, slots=True)
class Condition:
    """A field compared with a value; several values of `=` and `!=` are alternatives."""

    field: str
    operator: Operator
    values: tuple[str, ...]
    negated: bool
    place: int  # of its first character, from 1


@dataclass(frozen=True, slots=True)
class Words:
    """A word or phrase that the text holds."""

    text: str
    starts: bool  # written as `carr*`
    negated: bool
    place: int


Term = Condition | Words


def parse(text: str) -> tuple[Term, ...]:
    """Read a filter.

    Args:
        text: What was typed; may be empty.

    Returns:
        Its terms, in order.

    Raises:
        QueryError: It is too long, a quote is open, a value is missing, or blanks stand around an
            operator.
    """
    if len(text) > MAX_QUERY:
        raise QueryError(
            MAX_QUERY + 1, f"expected at most {MAX_QUERY} characters, found {len(text)}."
        )
    terms: list[Term] = []
    at = _blank(text, 0)
    while at < len(text):
        if len(terms) == MAX_TERMS:
            raise QueryError(at + 1, f"expected at most {MAX_TERMS} terms, found more.")
        term, at = _term(text, at)
        terms.append(term)
        at = _blank(text, at)
    return tuple(terms)


def _blank(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _term(text: str, start: int) -> tuple[Term, int]:
    at = start
    negated = text[at] == "-" and at + 1 < len(text) and not text[at + 1].isspace()
    if negated:
        at += 1
    if found := CONDITION.match(text, at):
        values, end = _values(text, found.end(), found.group())
        operator: Operator = found["operator"]  # type: ignore[assignment]
        if len(values) > 1 and operator not in ("=", "!="):
            raise QueryError(
                found.end() + 1, f"expected one value after {found.group()}, found {len(values)}."
            )
        return Condition(found["field"], operator, values, negated, start + 1), end
    if WORD_AND_OPERATOR.match(text, at):
        raise QueryError(
            start + 1, 'expected no blank before an operator; write tokens>200, or quote a "word".'
        )
    if text[at] == '"':
        phrase, end = _quoted(text, at)
        return Words(phrase, False, negated, start + 1), end
    word = BARE.match(text, at)
    if word is None:  # a blank after `-` was not taken for a sign, so this is a quote inside
        raise QueryError(at + 1, "expected a word, a phrase in quotes, or field>value.")
    bare = word.group()
    starts = len(bare) > 1 and bare.endswith("*")
    return Words(bare[:-1] if starts else bare, starts, negated, start + 1), word.end()


def _values(text: str, at: int, before: str) -> tuple[tuple[str, ...], int]:
    values = []
    while True:
        if at < len(text) and text[at] == '"':
            value, at = _quoted(text, at)
        elif found := BARE_VALUE.match(text, at):
            value, at = found.group(), found.end()
        else:
            raise QueryError(at + 1, f"expected a value after {before}, found none.")
        values.append(value)
        if at == len(text) or text[at] != ",":
            return tuple(values), at
        at += 1


def _quoted(text: str, at: int) -> tuple[str, int]:
    r"""Read a quoted text from its quote on; `\"` and `\\` stand for themselves."""
    pieces, place = [], at
    at += 1
    while at < len(text) and text[at] != '"':
        if text[at] == "\\" and text[at + 1 : at + 2] in ('"', "\\"):
            at += 1
        pieces.append(text[at])
        at += 1
    if at == len(text):
        raise QueryError(place + 1, "expected a closing quote, found the end.")
    if not pieces:
        raise QueryError(place + 1, "expected something between the quotes, found nothing.")
    return "".join(pieces), at + 1
