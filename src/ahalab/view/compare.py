"""Base and adapter on the same questions: the pairs, sorted into kinds, and one pair in detail."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Literal

from ahalab.errors import InputError
from ahalab.plan.cells import BASE, Cell
from ahalab.records.terms import Metric
from ahalab.view.comparable import comparability
from ahalab.view.database import run_number
from ahalab.view.filters import FINISHES, OUTCOMES, Field, Searched, clause
from ahalab.view.query import parse
from ahalab.view.scored import Question, Taken, taken
from ahalab.view.shown import Shown, line, shown
from ahalab.view.sources import Study
from ahalab.visible import plain

PAGE = 50
MAX_PAGE = 1_000_000
Show = Literal[
    "all", "gained", "lost", "changed", "both wrong", "both right", "format only",
    "extraction differs", "truncated",
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
}
FIELDS = {
    "tokens": Field("a.tokens", "number", says="the adapter's"),
    "base.tokens": Field("b.tokens", "number"),
    "outcome": Field("a.strict", "name", OUTCOMES, "the adapter's, strict"),
    "strict": Field("a.strict", "name", OUTCOMES, "the adapter's"),
    "lenient": Field("a.lenient", "name", OUTCOMES, "the adapter's"),
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
    "FROM answer a JOIN answer b ON b.run = ? AND b.prompt = a.prompt AND b.sample = a.sample "
    "JOIN answer_text at ON at.id = a.id JOIN answer_text bt ON bt.id = b.id "
    "JOIN prompt p ON p.id = a.prompt"
)


@dataclass(frozen=True, slots=True)
class PairLine:
    """A pair in the list."""

    id: int  # of the adapter's answer
    question: str
    gold: str
    sample: int
    base: str  # outcome by the metric
    adapter: str
    change: str  # gained, lost, both right, both wrong


@dataclass(frozen=True, slots=True)
class Pairs:
    """One page of pairs."""

    cell: str
    metric: Metric
    counts: dict[str, int]  # of every kind, before the filter
    total: int
    page: int
    pages: int
    pairs: tuple[PairLine, ...]
    note: str  # what a reader must know of the comparison; often empty


@dataclass(frozen=True, slots=True)
class SideAnswer:
    """One side's answer."""

    tokens: int | None
    finish: str
    strict: str
    lenient: str
    rule: str
    status: str
    taken: Taken


@dataclass(frozen=True, slots=True)
class Pair:
    """One question with both answers."""

    id: int
    cell: str
    prompt: str
    sample: int
    question: Shown | None
    gold: Shown | None
    base: SideAnswer
    adapter: SideAnswer
    note: str


@dataclass(frozen=True, slots=True)
class PairQuery:
    """What is asked of a list of pairs."""

    metric: Metric
    show: str  # one of SHOWS
    query: str
    page: int  # from 1 on


def pairs(
    study: Study,
    database: sqlite3.Connection,
    cell: Cell,
    asked: PairQuery,
) -> Pairs:
    """Return a page of the pairs of base and one adapter.

    Raises:
        InputError: The filter can't be read, or there is no such kind or page.
        ProtocolError: The two were not made under one protocol.
    """
    if asked.show not in SHOWS:
        raise InputError(f"show: expected one of {', '.join(SHOWS)}, found {asked.show[:40]!r}.")
    if not 1 <= asked.page <= MAX_PAGE:
        raise InputError(f"page: expected a number from 1 on, found {asked.page}.")
    note = comparability(study, cell)
    where = clause(parse(asked.query), FIELDS, SEARCHED)
    run, base = run_number(database, cell), run_number(database, BASE)
    kinds = {name: sql.format(m=asked.metric) for name, sql in SHOWS.items()}
    sums = ", ".join(f"coalesce(sum({sql}), 0)" for sql in kinds.values())
    counts = database.execute(f"SELECT {sums} {_PAIRS} WHERE a.run = ?", (base, run)).fetchone()
    matching = f"{_PAIRS} WHERE a.run = ? AND {kinds[asked.show]} AND {where.sql}"
    parameters = (base, run, *where.parameters)
    (total,) = database.execute(f"SELECT count(*) {matching}", parameters).fetchone()
    rows = database.execute(
        "SELECT a.id, p.question, p.gold, a.sample, "
        f"b.{asked.metric} AS base, a.{asked.metric} AS adapter {matching} "
        "ORDER BY a.prompt, a.sample LIMIT ? OFFSET ?",
        (*parameters, PAGE, (asked.page - 1) * PAGE),
    ).fetchall()
    return Pairs(
        cell.name, asked.metric, dict(zip(kinds, counts, strict=True)), total, asked.page,
        max(1, -(-total // PAGE)), tuple(_line(row) for row in rows), note,
    )  # fmt: skip


def pair(study: Study, database: sqlite3.Connection, cell: Cell, number: int) -> Pair:
    """Return one pair, by the id of the adapter's answer.

    Raises:
        InputError: There is no such pair.
        ProtocolError: The two were not made under one protocol.
    """
    note = comparability(study, cell)
    row = database.execute(
        "SELECT a.id, p.name, a.sample, p.question, p.gold, "
        + ", ".join(
            f"{side}.{field} AS {side}_{field}"
            for side in "ab"
            for field in ("tokens", "finish", "strict", "lenient", "rule")
        )
        + ", "
        + ", ".join(
            f"{side}t.{field} AS {side}_{field}"
            for side in "ab"
            for field in ("completion", "extracted", "status")
        )
        + f" {_PAIRS} WHERE a.run = ? AND a.id = ?",
        (run_number(database, BASE), run_number(database, cell), number),
    ).fetchone()
    if row is None:
        raise InputError(f"{cell.name}: expected a pair of answers, found none of number {number}.")
    asked = Question(row["question"], row["gold"])
    return Pair(
        id=row["id"],
        cell=cell.name,
        prompt=plain(row["name"]),
        sample=row["sample"],
        question=None if asked.question is None else shown(asked.question),
        gold=None if asked.gold is None else shown(asked.gold),
        base=_side(study, asked, row, "b"),
        adapter=_side(study, asked, row, "a"),
        note=note,
    )


def _line(row: sqlite3.Row) -> PairLine:
    before, after = row["base"] == "correct", row["adapter"] == "correct"
    if before == after:
        change = "both right" if after else "both wrong"
    else:
        change = "gained" if after else "lost"
    return PairLine(
        row["id"], line(row["question"], 140), line(row["gold"], 40), row["sample"], row["base"],
        row["adapter"], change,
    )  # fmt: skip


def _side(study: Study, asked: Question, row: sqlite3.Row, side: str) -> SideAnswer:
    completion, extracted = row[f"{side}_completion"], row[f"{side}_extracted"]
    finish = row[f"{side}_finish"]
    return SideAnswer(
        tokens=row[f"{side}_tokens"],
        finish=finish,
        strict=row[f"{side}_strict"],
        lenient=row[f"{side}_lenient"],
        rule=plain(row[f"{side}_rule"]),
        status=plain(row[f"{side}_status"]),
        taken=taken(study.plan, asked, completion, finish, extracted),
    )
