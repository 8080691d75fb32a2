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

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ahalab.errors import InputError, ProtocolError
from ahalab.view import runs
from ahalab.view.asked import ANSWERS, Answer
from ahalab.view.database import index_path, open_for_reading
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
PAGES = ("curves", "steps", "rollouts", "answers", "compare")


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
