"""What a page may ask of a study: each address below it, its parameters, and what answers."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass

from starlette.requests import Request

from ahalab.errors import InputError
from ahalab.plan.cells import Cell, training_cells
from ahalab.records.terms import METRICS, Metric
from ahalab.view import compare, curves, groups, runs, search
from ahalab.view.filters import Field
from ahalab.view.sources import Study
from ahalab.visible import plain

Answer = Callable[[Study, sqlite3.Connection, Request], object]


@dataclass(frozen=True, slots=True)
class FieldHelp:
    """A field of the filters, for the help."""

    name: str
    kind: str
    choices: tuple[str, ...]
    says: str


@dataclass(frozen=True, slots=True)
class FilterHelp:
    """What filters may name."""

    rollouts: tuple[FieldHelp, ...]
    pairs: tuple[FieldHelp, ...]
    sorts: tuple[str, ...]
    shows: tuple[str, ...]


def _number(request: Request, name: str, default: int | None = None) -> int:
    """Read a whole number from the address.

    Raises:
        InputError: It is none, or absent without a default.
    """
    text = request.query_params.get(name)
    if text is None and default is not None:
        return default
    if text is None or not text.isascii() or not text.isdecimal() or len(text) > 15:
        raise InputError(f"{name}: expected a whole number, found {(text or 'none')[:40]!r}.")
    return int(text)


def _text(request: Request, name: str, default: str) -> str:
    return request.query_params.get(name, default)


def _cell(study: Study, request: Request, name: str) -> Cell:
    """Return the run that an address names, from the plan's list.

    Raises:
        InputError: The plan has no such run.
    """
    cells = {cell.name: cell for cell in training_cells(study.plan)}
    wanted = _text(request, name, next(iter(cells)))
    if wanted not in cells:
        raise InputError(f"{name}: expected a run of the plan, found {wanted[:80]!r}.")
    return cells[wanted]


def _metric(request: Request) -> Metric:
    wanted = _text(request, "metric", "strict")
    for metric in METRICS:
        if metric == wanted:
            return metric
    raise InputError(f"metric: expected strict or lenient, found {wanted[:40]!r}.")


def _one(study: Study, database: sqlite3.Connection, request: Request) -> object:
    return runs.study_state(study, database)


def _curves(study: Study, database: sqlite3.Connection, request: Request) -> object:
    return curves.curves(study, database, _text(request, "since", ""))


def _filters(study: Study, database: sqlite3.Connection, request: Request) -> object:
    return FilterHelp(
        _help(search.fields_of(database)),
        _help(compare.FIELDS),
        tuple(search.SORTS),
        tuple(compare.SHOWS),
    )


def _help(fields: dict[str, Field]) -> tuple[FieldHelp, ...]:
    return tuple(
        FieldHelp(plain(name), field.kind, field.choices, field.says)
        for name, field in fields.items()
    )


def _step(study: Study, database: sqlite3.Connection, request: Request) -> object:
    step = _number(request, "step") if "step" in request.query_params else None
    return groups.step_groups(database, _cell(study, request, "run"), step)


def _group(study: Study, database: sqlite3.Connection, request: Request) -> object:
    run = _cell(study, request, "run")
    return groups.group(study, database, run, _number(request, "step"), _number(request, "group"))


def _rollouts(study: Study, database: sqlite3.Connection, request: Request) -> object:
    query, sort = _text(request, "q", ""), _text(request, "sort", "place")
    return search.search(database, query, sort, _number(request, "page", 1))


def _rollout(study: Study, database: sqlite3.Connection, request: Request) -> object:
    return groups.rollout(study, database, _number(request, "id"))


def _pairs(study: Study, database: sqlite3.Connection, request: Request) -> object:
    wanted = compare.PairQuery(
        _metric(request),
        _text(request, "show", "all"),
        _text(request, "q", ""),
        _number(request, "page", 1),
    )
    return compare.pairs(study, database, _cell(study, request, "cell"), wanted)


def _pair(study: Study, database: sqlite3.Connection, request: Request) -> object:
    return compare.pair(study, database, _cell(study, request, "cell"), _number(request, "id"))


ANSWERS: dict[str, Answer] = {
    "": _one,
    "/curves": _curves,
    "/filters": _filters,
    "/step": _step,
    "/group": _group,
    "/rollouts": _rollouts,
    "/rollout": _rollout,
    "/pairs": _pairs,
    "/pair": _pair,
}
