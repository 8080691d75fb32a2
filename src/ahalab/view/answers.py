"""A search over every set of answers of a study, and one answer whole."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from typing import get_args

from ahalab.errors import InputError
from ahalab.scoring.reflection import first_marker
from ahalab.view.filters import FINISHES, OUTCOMES, Clause, Field, Searched
from ahalab.view.listing import Asked, Listing, listed
from ahalab.view.scored import Question, Taken, taken
from ahalab.view.sets import SetKind
from ahalab.view.shown import Shown, Span, line, shown
from ahalab.view.sources import Study
from ahalab.visible import plain

KINDS = get_args(SetKind)
SORTS = {
    "place": "r.id",
    "tokens": "r.tokens DESC, r.id",
    "-tokens": "r.tokens, r.id",
}
SET = "r.answer_set IN (SELECT id FROM answer_set WHERE {})"
PROMPT = "r.prompt IN (SELECT id FROM prompt WHERE {})"
STILL = "json_extract({}cuts, '$.still')"
TEXT = "r.id IN (SELECT id FROM answer_text WHERE {})"
FIELDS = {
    "tokens": Field("r.tokens", "number", says="tokens of the answer"),
    "kind": Field("kind", "name", KINDS, "what the answers are", SET),
    "arm": Field("arm", "name", within=SET),
    "seed": Field("seed", "number", within=SET),
    "step": Field("step", "number", says="steps done, of a validation", within=SET),
    "outcome": Field("r.strict", "name", OUTCOMES, "strict"),
    "strict": Field("r.strict", "name", OUTCOMES, "in the asked format"),
    "lenient": Field("r.lenient", "name", OUTCOMES, "wherever stated"),
    "finish": Field("r.finish", "name", FINISHES),
    "rule": Field("r.rule", "name"),
    "sample": Field("r.sample", "number"),
    "still": Field(
        STILL.format(""), "flag", says="finished without its marker, reflects still", within=TEXT
    ),
    "text": Field("completion", "text", within=TEXT),
    "extracted": Field("extracted", "text", within=TEXT),
    "question": Field("question", "text", within=PROMPT),
    "gold": Field("gold", "text", within=PROMPT),
}
ANSWERS = Listing(
    "answer",
    Searched(
        "r.id IN (SELECT rowid FROM answer_words WHERE answer_words MATCH ?)",
        TEXT.format("instr(completion, ?) > 0"),
        1,
    ),
    SORTS,
    "SELECT coalesce(sum(answers), 0) FROM tally",
)


@dataclass(frozen=True, slots=True)
class FoundAnswer:
    """One answer that a search found."""

    id: int
    set: str
    sample: int
    tokens: int | None
    strict: str
    lenient: str
    text: str


@dataclass(frozen=True, slots=True)
class AnswerSearch:
    """One page of a search."""

    total: int
    more: bool  # there are more than `total`
    page: int
    pages: int
    found: tuple[FoundAnswer, ...]


@dataclass(frozen=True, slots=True)
class Told:
    """An answer as it is shown."""

    tokens: int | None
    finish: str
    strict: str
    lenient: str
    rule: str
    status: str
    taken: Taken
    cuts: tuple[str, ...]  # markers that it was cut before, in order
    still: bool  # it reflects after as many cuts as there may be
    marker: Span | None  # its first marker, in the shown text


@dataclass(frozen=True, slots=True)
class WholeAnswer:
    """One answer to one question."""

    id: int
    set: str
    prompt: str
    sample: int
    question: Shown | None  # None: the prompts were not read yet
    gold: Shown | None
    answer: Told


def search_answers(
    database: sqlite3.Connection, query: str, sort: str, page: int, of: str = ""
) -> AnswerSearch:
    """Return a page of the answers that a filter finds.

    Args:
        database: The index.
        query: The filter.
        sort: One of `SORTS`.
        page: From 1 on.
        of: A set, or a file with several, which the answers must be of; empty: any.

    Raises:
        InputError: The filter can't be read, or there is no such order or page.
    """
    within = Clause(SET.format("name = ? OR file = ?"), (of, of)) if of else None
    found = listed(database, ANSWERS, FIELDS, Asked(query, sort, page), within)
    rows = tuple(_found(database, number) for number in found.ids)
    return AnswerSearch(found.total, found.more, found.page, found.pages, rows)


def _found(database: sqlite3.Connection, number: int) -> FoundAnswer:
    row = database.execute(
        "SELECT r.*, s.name AS set_name, substr(t.completion, 1, 400) AS start FROM answer r "
        "JOIN answer_text t ON t.id = r.id JOIN answer_set s ON s.id = r.answer_set "
        "WHERE r.id = ?",
        (number,),
    ).fetchone()
    return FoundAnswer(
        row["id"], row["set_name"], row["sample"], row["tokens"], row["strict"], row["lenient"],
        line(row["start"]),
    )  # fmt: skip


def whole_answer(study: Study, database: sqlite3.Connection, number: int) -> WholeAnswer:
    """Return one answer with its question.

    Raises:
        InputError: There is no such answer.
    """
    row = database.execute(
        "SELECT r.*, t.*, s.name AS set_name, p.name, p.question, p.gold FROM answer r "
        "JOIN answer_text t ON t.id = r.id JOIN answer_set s ON s.id = r.answer_set "
        "JOIN prompt p ON p.id = r.prompt WHERE r.id = ?",
        (number,),
    ).fetchone()
    if row is None:
        raise InputError(f"answer {number}: expected an answer of the study, found none.")
    asked = Question(row["question"], row["gold"])
    return WholeAnswer(
        id=row["id"],
        set=row["set_name"],
        prompt=plain(row["name"]),
        sample=row["sample"],
        question=None if asked.question is None else shown(asked.question),
        gold=None if asked.gold is None else shown(asked.gold),
        answer=told(study, asked, row),
    )


def told(study: Study, asked: Question, row: sqlite3.Row, prefix: str = "") -> Told:
    """Return an answer as it is shown, from a row that has its columns, each with a prefix."""
    completion, cuts = row[f"{prefix}completion"], json.loads(row[f"{prefix}cuts"] or "{}")
    finish, marker = row[f"{prefix}finish"], first_marker(completion)
    place = None if marker is None else shown(completion, (marker.start, marker.end)).mark
    return Told(
        tokens=row[f"{prefix}tokens"],
        finish=finish,
        strict=row[f"{prefix}strict"],
        lenient=row[f"{prefix}lenient"],
        rule=plain(row[f"{prefix}rule"]),
        status=plain(row[f"{prefix}status"]),
        taken=taken(study.plan, asked, completion, finish, row[f"{prefix}extracted"]),
        cuts=tuple(plain(marker) for marker in cuts.get("markers", ())),
        still=cuts.get("still", False),
        marker=place,
    )
