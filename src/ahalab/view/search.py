"""A search over every rollout of a study."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from ahalab.view.filters import FINISHES, OUTCOMES, Field, Searched
from ahalab.view.listing import Asked, Listing, listed
from ahalab.view.shown import line

SORTS = {
    "place": "r.id",
    "advantage": "r.advantage DESC, r.id",
    "-advantage": "r.advantage, r.id",
    "reward": "r.reward DESC, r.id",
    "-reward": "r.reward, r.id",
    "tokens": "r.tokens DESC, r.id",
    "-tokens": "r.tokens, r.id",
}
RUN = "r.run IN (SELECT id FROM run WHERE {})"
PROMPT = "r.prompt IN (SELECT id FROM prompt WHERE {})"
TEXT = "r.id IN (SELECT id FROM rollout_text WHERE {})"
FIELDS = {
    "tokens": Field("r.tokens", "number", says="tokens of the completion"),
    "reward": Field("r.reward", "number"),
    "advantage": Field("r.advantage", "number"),
    "step": Field("r.step", "number", says="steps done when it was generated"),
    "group": Field("r.grp", "number"),
    "sample": Field("r.sample", "number"),
    "seed": Field("seed", "number", within=RUN),
    "arm": Field("arm", "name", within=RUN),
    "outcome": Field("r.strict", "name", OUTCOMES, "strict, by the evaluation scorer"),
    "strict": Field("r.strict", "name", OUTCOMES, "in the asked format"),
    "lenient": Field("r.lenient", "name", OUTCOMES, "wherever stated"),
    "historical": Field("r.historical", "name", OUTCOMES, "by the training parser"),
    "finish": Field("r.finish", "name", FINISHES),
    "formatted": Field("r.formatted", "flag", says="the asked format is met"),
    "disagree": Field("(r.historical <> r.strict)", "flag", says="the two scorers differ"),
    "repetition": Field("r.repetition", "number"),
    "reflections": Field("r.reflections", "number", says="reflection markers"),
    "text": Field("completion", "text", within=TEXT),
    "extracted": Field("r.extracted", "text"),
    "question": Field("question", "text", within=PROMPT),
    "gold": Field("gold", "text", within=PROMPT),
}
SEARCHED = Searched(
    "r.id IN (SELECT rowid FROM rollout_words WHERE rollout_words MATCH ?)",
    TEXT.format("instr(completion, ?) > 0"),
    1,
)
ROLLOUTS = Listing(
    "rollout",
    SEARCHED,
    SORTS,
    "SELECT coalesce(sum(rows), 0) FROM source WHERE name LIKE '%/rollouts'",
)


@dataclass(frozen=True, slots=True)
class Found:
    """One rollout that a search found."""

    id: int
    run: str
    step: int
    group: int
    sample: int
    tokens: int
    reward: float | None
    advantage: float
    strict: str
    lenient: str
    historical: str
    text: str


@dataclass(frozen=True, slots=True)
class Search:
    """One page of a search."""

    total: int
    more: bool  # there are more than `total`
    page: int
    pages: int
    found: tuple[Found, ...]


def fields_of(database: sqlite3.Connection) -> dict[str, Field]:
    """Return the fields a filter may name: those of every rollout, and the study's components."""
    names = database.execute("SELECT position, name FROM component ORDER BY position")
    own = {name: Field(f"r.c{position}", "number") for position, name in names}
    return own | FIELDS


def search(database: sqlite3.Connection, query: str, sort: str, page: int) -> Search:
    """Return a page of the rollouts that a filter finds.

    Args:
        database: The index.
        query: The filter.
        sort: One of `SORTS`.
        page: From 1 on.

    Raises:
        InputError: The filter can't be read, or there is no such order or page.
    """
    found = listed(database, ROLLOUTS, fields_of(database), Asked(query, sort, page))
    rows = tuple(_found(database, number) for number in found.ids)
    return Search(found.total, found.more, found.page, found.pages, rows)


def _found(database: sqlite3.Connection, number: int) -> Found:
    row = database.execute(
        "SELECT r.*, run.name AS run_name, substr(t.completion, 1, 400) AS start FROM rollout r "
        "JOIN rollout_text t ON t.id = r.id JOIN run ON run.id = r.run WHERE r.id = ?",
        (number,),
    ).fetchone()
    return Found(
        row["id"], row["run_name"], row["step"], row["grp"], row["sample"], row["tokens"],
        row["reward"], row["advantage"], row["strict"], row["lenient"], row["historical"],
        line(row["start"]),
    )  # fmt: skip
