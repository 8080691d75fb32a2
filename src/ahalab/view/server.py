"""The application: pages, fixed files, and what the pages ask for, as JSON."""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Literal

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ahalab.errors import InputError, ProtocolError
from ahalab.plan.cells import Cell, training_cells
from ahalab.records.terms import Metric
from ahalab.view import compare, curves, rollouts, runs
from ahalab.view.database import index_path, open_for_reading
from ahalab.view.filters import Field
from ahalab.view.follow import Catalogue
from ahalab.view.query import QueryError
from ahalab.view.sources import Study
from ahalab.visible import plain

QUERY_SECONDS = 10.0
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
PAGES = ("curves", "steps", "rollouts", "compare")


@dataclass(frozen=True, slots=True)
class Fault:
    """Why there is no answer."""

    error: str
    place: int | None = None  # in the filter, from 1


@dataclass(frozen=True, slots=True)
class Overview:
    """All studies."""

    studies: tuple[runs.StudyState, ...]
    broken: tuple[str, ...]
    faults: tuple[str, ...]


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


Answer = Callable[[Study, sqlite3.Connection, Request], object]


def static_files() -> dict[str, tuple[bytes, str]]:
    """Return every file of the page by its path, with its type: what is not here is not served."""
    found: dict[str, tuple[bytes, str]] = {}

    def take(folder: Traversable, prefix: str) -> None:
        for entry in folder.iterdir():
            ending = "." + entry.name.rpartition(".")[2]
            if entry.is_dir():
                take(entry, f"{prefix}{entry.name}/")
            elif ending in TYPES:
                found[prefix + entry.name] = (entry.read_bytes(), TYPES[ending])

    take(files("ahalab.view").joinpath("static"), "")
    return found


def application(catalogue: Callable[[], Catalogue]) -> Starlette:
    """Return the application, which stands behind a guard.

    Args:
        catalogue: Tells the studies as they are now.
    """
    fixed = static_files()

    def page(request: Request) -> Response:
        body, kind = fixed["index.html"]
        return Response(body, media_type=kind)

    def static(request: Request) -> Response:
        body, kind = fixed.get(request.path_params["name"], (b"", ""))
        return Response(body, media_type=kind) if kind else Response(status_code=404)

    def studies(request: Request) -> Response:
        now = catalogue()
        states = tuple(
            state for study in now.studies.values() if (state := _state(study)) is not None
        )
        broken = tuple(plain(f"{one.root}: {one.fault}") for one in now.broken)
        return _reply(request, Overview(states, broken, tuple(map(plain, now.faults))))

    def asked(answer: Answer) -> Callable[[Request], Response]:
        def handle(request: Request) -> Response:
            study = catalogue().studies.get(request.path_params["study"])
            if study is None:
                return _fault(request, 404, Fault("There is no such study here."))
            return _answer(study, answer, request)

        return handle

    routes = [
        Route("/", page),
        *(Route(f"/study/{{study}}/{name}", page) for name in PAGES),
        Route("/static/{name:path}", static),
        Route("/api/studies", studies),
        *(Route(f"/api/study/{{study}}{path}", asked(answer)) for path, answer in ANSWERS.items()),
    ]
    return Starlette(routes=routes)


def _state(study: Study) -> runs.StudyState | None:
    try:
        with _reading(study) as database:
            return runs.study_state(study, database)
    except sqlite3.Error:  # its index is being made
        return None


@contextmanager
def _reading(study: Study) -> Iterator[sqlite3.Connection]:
    """Open an index for one request: a snapshot, and a limit of time."""
    with closing(open_for_reading(index_path(study.paths.root))) as database:
        deadline = time.monotonic() + QUERY_SECONDS
        database.set_progress_handler(lambda: time.monotonic() > deadline, 50_000)
        database.execute("BEGIN")
        yield database


def _answer(study: Study, answer: Answer, request: Request) -> Response:
    try:
        with _reading(study) as database:
            return _reply(request, answer(study, database, request))
    except QueryError as error:
        return _fault(request, 400, Fault(plain(str(error)), error.place))
    except ProtocolError as error:
        return _fault(request, 409, Fault(plain(str(error))))
    except InputError as error:
        return _fault(request, 400, Fault(plain(str(error))))
    except sqlite3.OperationalError as error:
        if "interrupted" in str(error):
            told = f"This took longer than {QUERY_SECONDS:.0f} s. Narrow the filter."
            return _fault(request, 503, Fault(told))
        return _fault(request, 503, Fault("The index is being made. Try again in a moment."))


def _reply(request: Request, found: object, status: int = 200) -> Response:
    body = msgspec.json.encode(found)
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    if status == 200 and request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers={"etag": tag})
    return Response(body, status, {"etag": tag}, "application/json")


def _fault(request: Request, status: int, fault: Fault) -> Response:
    return _reply(request, fault, status)


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
    metrics: dict[str, Literal["strict", "lenient"]] = {"strict": "strict", "lenient": "lenient"}
    if wanted not in metrics:
        raise InputError(f"metric: expected strict or lenient, found {wanted[:40]!r}.")
    return metrics[wanted]


def _one(study: Study, database: sqlite3.Connection, request: Request) -> object:
    return runs.study_state(study, database)


def _curves(study: Study, database: sqlite3.Connection, request: Request) -> object:
    return curves.curves(study, database, _text(request, "since", ""))


def _filters(study: Study, database: sqlite3.Connection, request: Request) -> object:
    return FilterHelp(
        _help(rollouts.fields_of(database)),
        _help(compare.FIELDS),
        tuple(rollouts.SORTS),
        tuple(compare.SHOWS),
    )


def _help(fields: dict[str, Field]) -> tuple[FieldHelp, ...]:
    return tuple(
        FieldHelp(plain(name), field.kind, field.choices, field.says)
        for name, field in fields.items()
    )


def _step(study: Study, database: sqlite3.Connection, request: Request) -> object:
    step = _number(request, "step") if "step" in request.query_params else None
    return rollouts.step_groups(database, _cell(study, request, "run"), step)


def _group(study: Study, database: sqlite3.Connection, request: Request) -> object:
    run = _cell(study, request, "run")
    return rollouts.group(study, database, run, _number(request, "step"), _number(request, "group"))


def _rollouts(study: Study, database: sqlite3.Connection, request: Request) -> object:
    query, sort = _text(request, "q", ""), _text(request, "sort", "place")
    return rollouts.search(database, query, sort, _number(request, "page", 1))


def _rollout(study: Study, database: sqlite3.Connection, request: Request) -> object:
    return rollouts.rollout(study, database, _number(request, "id"))


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
