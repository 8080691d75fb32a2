"""A search over a table of rows with texts, by filter and order, a page at a time."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass

from ahalab.errors import InputError
from ahalab.view.filters import Clause, Field, Searched, clause
from ahalab.view.query import parse

PAGE = 50
MAX_COUNT = 100_000  # matches counted; beyond, "more than"
MAX_PAGE = 1_000_000


@dataclass(frozen=True, slots=True)
class Listing:
    """What is searched: `r` is its table in every expression."""

    table: str
    searched: Searched
    sorts: Mapping[str, str]
    count: str  # SQL of how many rows there are, without a look at them


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of it."""

    query: str
    sort: str
    page: int  # from 1 on


@dataclass(frozen=True, slots=True)
class Listed:
    """One page of what was found."""

    total: int
    more: bool  # there are more than `total`
    page: int
    pages: int
    ids: tuple[int, ...]


def listed(
    database: sqlite3.Connection,
    listing: Listing,
    fields: Mapping[str, Field],
    asked: Asked,
    within: Clause | None = None,
) -> Listed:
    """Return a page of the rows that a filter finds.

    Args:
        database: The index.
        listing: What is searched.
        fields: What the filter may name.
        asked: The filter, order and page.
        within: What must hold besides.

    Raises:
        InputError: The filter can't be read, or there is no such order or page.
    """
    if asked.sort not in listing.sorts:
        raise InputError(
            f"sort: expected one of {', '.join(listing.sorts)}, found {asked.sort[:40]!r}."
        )
    if not 1 <= asked.page <= MAX_PAGE:
        raise InputError(f"page: expected a number from 1 on, found {asked.page}.")
    where = clause(parse(asked.query), fields, listing.searched)
    if within is not None:
        where = Clause(f"{within.sql} AND {where.sql}", (*within.parameters, *where.parameters))
    total, more, ids = _ids(database, listing, where, asked)
    return Listed(total, more, asked.page, max(1, -(-total // PAGE)), tuple(ids))


def _ids(
    database: sqlite3.Connection, listing: Listing, where: Clause, asked: Asked
) -> tuple[int, bool, list[int]]:
    """Return how many rows a filter finds, whether there are more, and those of one page."""
    offset = (asked.page - 1) * PAGE
    select = f"SELECT r.id FROM {listing.table} r WHERE {where.sql}"  # noqa: S608
    if where.sql == "1":
        (total,) = database.execute(listing.count).fetchone()
    else:  # one look finds both the count and, in the order of generation, most pages
        order = "ORDER BY r.id" if asked.sort == "place" else ""
        limited = database.execute(f"{select} {order} LIMIT ?", (*where.parameters, MAX_COUNT + 1))
        found = [number for (number,) in limited]
        total = len(found)
        if asked.sort == "place" and offset + PAGE <= MAX_COUNT:
            return min(total, MAX_COUNT), total > MAX_COUNT, found[offset : offset + PAGE]
    chosen = database.execute(
        f"{select} ORDER BY {listing.sorts[asked.sort]} LIMIT ? OFFSET ?",
        (*where.parameters, PAGE, offset),
    )
    more = where.sql != "1" and total > MAX_COUNT
    return MAX_COUNT if more else total, more, [number for (number,) in chosen]
