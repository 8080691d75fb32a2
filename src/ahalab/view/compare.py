"""Two sets of answers to the same questions: the pairs, sorted into kinds, and one in detail."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Literal

from ahalab.errors import InputError
from ahalab.records.terms import Metric
from ahalab.view.answers import STILL, Told, told
from ahalab.view.comparable import comparability
from ahalab.view.filters import FINISHES, OUTCOMES, Field, Searched, clause
from ahalab.view.query import parse
from ahalab.view.scored import Question
from ahalab.view.sets import AnswerSet
from ahalab.view.shown import Shown, line, shown
from ahalab.view.sources import Study
from ahalab.visible import plain

PAGE = 50
MAX_PAGE = 1_000_000
Show = Literal[
    "all", "gained", "lost", "changed", "both wrong", "both right", "format only",
    "extraction differs", "truncated", "same", "not the same",
]  # fmt: skip

_WAS, _IS = "(b.{m} = 'correct')", "(a.{m} = 'correct')"
_GAINED = f"(NOT {_WAS} AND {_IS})"
_LOST = f"({_WAS} AND NOT {_IS})"
SHOWS: dict[str, str] = {
    "all": "1",
    "gained": _GAINED,
    "lost": _LOST,
    "changed": f"({_WAS} <> {_IS})",
    "both wrong": f"(NOT {_WAS} AND NOT {_IS})",
    "both right": f"({_WAS} AND {_IS})",
    # The strict outcome changed and the lenient did not: the value, not the format, is the same.
    "format only": "((b.strict = 'correct') <> (a.strict = 'correct') "
    "AND (b.lenient = 'correct') = (a.lenient = 'correct'))",
    "extraction differs": "(bt.extracted IS NOT at.extracted)",
    "truncated": "(a.finish = 'length' OR b.finish = 'length')",
    # To the byte: text, token ids, what was taken and both verdicts.
    "same": "(bt.content = at.content)",
    "not the same": "(bt.content <> at.content)",
}
FIELDS = {
    "tokens": Field("a.tokens", "number", says="the compared answer's"),
    "base.tokens": Field("b.tokens", "number", says="of the answer beside it, as all with `base.`"),
    "outcome": Field("a.strict", "name", OUTCOMES, "the compared answer's, strict"),
    "strict": Field("a.strict", "name", OUTCOMES, "the compared answer's"),
    "lenient": Field("a.lenient", "name", OUTCOMES, "the compared answer's"),
    "base.strict": Field("b.strict", "name", OUTCOMES),
    "base.lenient": Field("b.lenient", "name", OUTCOMES),
    "finish": Field("a.finish", "name", FINISHES),
    "base.finish": Field("b.finish", "name", FINISHES),
    "rule": Field("a.rule", "name"),
    "base.rule": Field("b.rule", "name"),
    "sample": Field("a.sample", "number"),
    "text": Field("at.completion", "text"),
    "base.text": Field("bt.completion", "text"),
    "extracted": Field("at.extracted", "text"),
    "base.extracted": Field("bt.extracted", "text"),
    "still": Field(STILL.format("at."), "flag", says="finished without its marker, reflects still"),
    "question": Field("p.question", "text"),
    "gold": Field("p.gold", "text"),
}
SEARCHED = Searched(
    "a.id IN (SELECT rowid FROM answer_words WHERE answer_words MATCH ?) OR "
    "b.id IN (SELECT rowid FROM answer_words WHERE answer_words MATCH ?)",
    "instr(at.completion, ?) > 0 OR instr(bt.completion, ?) > 0",
    2,
)
_PAIRS = (
    "FROM answer a JOIN answer b ON b.answer_set = ? AND b.prompt = a.prompt "
    "AND b.sample = a.sample JOIN answer_text at ON at.id = a.id "
    "JOIN answer_text bt ON bt.id = b.id JOIN prompt p ON p.id = a.prompt"
)
_NARROW = ("tokens", "finish", "strict", "lenient", "rule")
_WIDE = ("completion", "extracted", "status", "cuts")


@dataclass(frozen=True, slots=True)
class PairLine:
    """A pair in the list."""

    id: int  # of the compared answer
    question: str
    gold: str
    sample: int
    before: str  # outcome by the metric, of the set that is compared with
    after: str
    change: str  # gained, lost, both right, both wrong
    same: bool  # to the byte


@dataclass(frozen=True, slots=True)
class Pairs:
    """One page of pairs."""

    before: str  # the set that is compared with
    after: str
    metric: Metric
    counts: dict[str, int]  # of every kind, before the filter
    total: int
    page: int
    pages: int
    pairs: tuple[PairLine, ...]
    note: str  # what a reader must know of the comparison; often empty


@dataclass(frozen=True, slots=True)
class Pair:
    """One question with both answers."""

    id: int
    prompt: str
    sample: int
    question: Shown | None
    gold: Shown | None
    before: Told
    after: Told
    same: bool
    note: str


@dataclass(frozen=True, slots=True)
class Beside:
    """Two sets, and the one that is compared with first."""

    before: AnswerSet
    after: AnswerSet


@dataclass(frozen=True, slots=True)
class PairQuery:
    """What is asked of a list of pairs."""

    metric: Metric
    show: str  # one of SHOWS
    query: str
    page: int  # from 1 on


def pairs(study: Study, database: sqlite3.Connection, sets: Beside, asked: PairQuery) -> Pairs:
    """Return a page of the pairs of two sets.

    Raises:
        InputError: The filter can't be read, or there is no such kind or page.
        ProtocolError: The two were not made under one protocol.
    """
    if asked.show not in SHOWS:
        raise InputError(f"show: expected one of {', '.join(SHOWS)}, found {asked.show[:40]!r}.")
    if not 1 <= asked.page <= MAX_PAGE:
        raise InputError(f"page: expected a number from 1 on, found {asked.page}.")
    note = comparability(study, sets.before, sets.after)
    where = clause(parse(asked.query), FIELDS, SEARCHED)
    both = _numbers(database, sets)
    kinds = {name: sql.format(m=asked.metric) for name, sql in SHOWS.items()}
    sums = ", ".join(f"coalesce(sum({sql}), 0)" for sql in kinds.values())
    counts = database.execute(f"SELECT {sums} {_PAIRS} WHERE a.answer_set = ?", both).fetchone()
    matching = f"{_PAIRS} WHERE a.answer_set = ? AND {kinds[asked.show]} AND {where.sql}"
    parameters = (*both, *where.parameters)
    (total,) = database.execute(f"SELECT count(*) {matching}", parameters).fetchone()
    rows = database.execute(
        f"SELECT a.id, p.question, p.gold, a.sample, {SHOWS['same']} AS same, "
        f"b.{asked.metric} AS before, a.{asked.metric} AS after {matching} "
        "ORDER BY a.prompt, a.sample LIMIT ? OFFSET ?",
        (*parameters, PAGE, (asked.page - 1) * PAGE),
    ).fetchall()
    return Pairs(
        sets.before.name, sets.after.name, asked.metric, dict(zip(kinds, counts, strict=True)),
        total, asked.page, max(1, -(-total // PAGE)), tuple(_line(row) for row in rows), note,
    )  # fmt: skip


def pair(study: Study, database: sqlite3.Connection, sets: Beside, number: int) -> Pair:
    """Return one pair, by the id of the compared answer.

    Raises:
        InputError: There is no such pair.
        ProtocolError: The two were not made under one protocol.
    """
    note = comparability(study, sets.before, sets.after)
    row = database.execute(
        f"SELECT a.id, p.name, a.sample, p.question, p.gold, {SHOWS['same']} AS same, "
        + ", ".join(
            f"{table}.{field} AS {side}_{field}"
            for side in "ab"
            for table, fields in ((side, _NARROW), (f"{side}t", _WIDE))
            for field in fields
        )
        + f" {_PAIRS} WHERE a.answer_set = ? AND a.id = ?",
        (*_numbers(database, sets), number),
    ).fetchone()
    if row is None:
        raise InputError(
            f"{sets.after.name}: expected a pair of answers, found none of number {number}."
        )
    asked = Question(row["question"], row["gold"])
    return Pair(
        id=row["id"],
        prompt=plain(row["name"]),
        sample=row["sample"],
        question=None if asked.question is None else shown(asked.question),
        gold=None if asked.gold is None else shown(asked.gold),
        before=told(study, asked, row, "b_"),
        after=told(study, asked, row, "a_"),
        same=bool(row["same"]),
        note=note,
    )


def _numbers(database: sqlite3.Connection, sets: Beside) -> tuple[int, int]:
    """Return the numbers of both sets in the index, as `_PAIRS` takes them; 0 for no rows yet."""
    known = dict(
        database.execute(
            "SELECT name, id FROM answer_set WHERE name IN (?, ?)",
            (sets.before.name, sets.after.name),
        ).fetchall()
    )
    return known.get(sets.before.name, 0), known.get(sets.after.name, 0)


def other_checkpoint(database: sqlite3.Connection, after: AnswerSet) -> str:
    """Return the set that a checkpoint's validation is compared with: the run's first other one."""
    found = database.execute(
        "SELECT min(step) FROM answer_set s WHERE file = ? AND step <> ? AND EXISTS "
        "(SELECT 1 FROM tally WHERE answer_set = s.id)",
        (after.file.name, after.step),
    ).fetchone()[0]
    return AnswerSet(after.file, after.step if found is None else found).name


def _line(row: sqlite3.Row) -> PairLine:
    before, after = row["before"] == "correct", row["after"] == "correct"
    if before == after:
        change = "both right" if after else "both wrong"
    else:
        change = "gained" if after else "lost"
    return PairLine(
        row["id"], line(row["question"], 140), line(row["gold"], 40), row["sample"], row["before"],
        row["after"], change, bool(row["same"]),
    )  # fmt: skip
