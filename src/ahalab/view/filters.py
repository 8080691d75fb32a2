"""From a filter's terms to SQL: every name from a table here, every value a parameter."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from ahalab.records.terms import Finish, Outcome
from ahalab.view.query import Condition, QueryError, Term, Words

Kind = Literal["number", "name", "flag", "text"]
Parameter = str | float | int

OUTCOMES: tuple[str, ...] = get_args(Outcome)
FINISHES: tuple[str, ...] = get_args(Finish)
FLAGS = {"yes": 1, "no": 0, "true": 1, "false": 0}


@dataclass(frozen=True, slots=True)
class Field:
    """A field that a filter may name."""

    sql: str  # an expression of ours, never of the reader's
    kind: Kind
    choices: tuple[str, ...] = ()  # of a name; empty: anything
    says: str = ""  # for the help
    within: str = "{}"  # the condition that holds the comparison, where another table has the field


@dataclass(frozen=True, slots=True)
class Searched:
    """What bare words are looked for in."""

    words: str  # SQL that says whether one of the texts has an FTS5 match; holds one `?` each
    holds: str  # SQL that says whether one of the texts holds a string; the same
    times: int  # how often the parameter is given


@dataclass(frozen=True, slots=True)
class Clause:
    """A condition for `WHERE`, with its parameters; always true where there is none."""

    sql: str
    parameters: tuple[Parameter, ...]


def clause(terms: Iterable[Term], fields: Mapping[str, Field], searched: Searched) -> Clause:
    """Return the SQL of a filter.

    Args:
        terms: The filter's terms; all must hold.
        fields: What it may name.
        searched: Where its words are looked for.

    Raises:
        QueryError: A field is unknown, or a value or an operator does not go with it.
    """
    parts: list[Clause] = []
    for term in terms:
        part = _words(term, searched) if isinstance(term, Words) else _condition(term, fields)
        parts.append(Clause(f"NOT {part.sql}", part.parameters) if term.negated else part)
    return Clause(
        " AND ".join(part.sql for part in parts) or "1",
        tuple(value for part in parts for value in part.parameters),
    )


def match_of(words: Words) -> str | None:
    """Return a term as an FTS5 query: one string, quoted; None where it holds no word."""
    if not any(character.isalnum() for character in words.text):
        return None  # `####` is no word to the index
    quoted = words.text.replace('"', '""').replace("\0", " ")
    return f'"{quoted}"*' if words.starts else f'"{quoted}"'


def _words(term: Words, searched: Searched) -> Clause:
    match = match_of(term)
    if match is None:
        return Clause(f"({searched.holds})", (term.text,) * searched.times)
    return Clause(f"({searched.words})", (match,) * searched.times)


def _condition(term: Condition, fields: Mapping[str, Field]) -> Clause:
    field = fields.get(term.field)
    if field is None:
        near = difflib.get_close_matches(term.field, fields, 1)
        told = f"Did you mean {near[0]}?" if near else f"Fields: {', '.join(fields)}."
        raise QueryError(
            term.place, f'expected a field, found {term.field!r}. {told} Quote a "word" with signs.'
        )
    compared = _comparison(term, field)
    return Clause(f"({field.within.format(compared.sql)})", compared.parameters)


def _comparison(term: Condition, field: Field) -> Clause:
    if term.operator == "~":
        if field.kind != "text":
            raise _refused(term, "~ looks into texts", field)
        return Clause(f"instr({field.sql}, ?) > 0", (term.values[0],))
    if field.kind == "number":
        numbers = [_number(term, value) for value in term.values]
        return _compared(field.sql, term.operator, numbers)
    if term.operator not in ("=", "!="):
        raise _refused(term, "only numbers are compared by size", field)
    if field.kind == "flag":
        return _compared(field.sql, term.operator, [_flag(term, value) for value in term.values])
    for value in term.values:
        if field.choices and value not in field.choices:
            raise QueryError(
                term.place,
                f"expected {term.field} to be one of {', '.join(field.choices)}, found {value!r}.",
            )
    return _compared(field.sql, term.operator, term.values)


def _refused(term: Condition, why: str, field: Field) -> QueryError:
    allowed = {"number": "= != > >= < <=", "text": "= != ~"}.get(field.kind, "= !=")
    return QueryError(
        term.place, f"expected one of {allowed} after {term.field}, found {term.operator}: {why}."
    )


def _compared(sql: str, operator: str, values: Iterable[Parameter]) -> Clause:
    """Compare with one value or several; a row whose field is unknown is never found."""
    found = tuple(values)
    joint = " AND " if operator == "!=" else " OR "
    either = joint.join(f"{sql} {operator} ?" for _ in found)
    return Clause(f"coalesce({either}, 0)", found)


def _number(term: Condition, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise QueryError(
            term.place,
            f"expected a number after {term.field}{term.operator}, found {value!r}.",
        )
    return number


def _flag(term: Condition, value: str) -> int:
    if value not in FLAGS:
        raise QueryError(term.place, f"expected {term.field} to be yes or no, found {value!r}.")
    return FLAGS[value]
