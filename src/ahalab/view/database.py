"""The index of one study: an SQLite file in the user's cache folder, made anew when in doubt."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import sys
import zlib
from pathlib import Path

from ahalab.errors import InputError
from ahalab.plan.cells import Cell

EDITION = 1  # raise it when rows of the same tables come to mean something else
KINDS = ("rollout", "answer")  # tables of rows with a text
MAX_COMPONENTS = 64  # columns c0, c1, ... of `rollout`
BUSY_SECONDS = 10.0

SCHEMA = """
CREATE TABLE about(key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
-- A row file, as far as it is indexed. `fault`: why its reading stopped.
CREATE TABLE source(id INTEGER PRIMARY KEY, name TEXT UNIQUE, rows INTEGER, total INTEGER,
  sealed INTEGER, fault TEXT);
-- A committed batch that is indexed, by the digest of its bytes, with the ids of its rows.
CREATE TABLE batch(source INTEGER, sequence INTEGER, sha256 TEXT, first INTEGER, last INTEGER,
  PRIMARY KEY(source, sequence)) WITHOUT ROWID;
CREATE TABLE run(id INTEGER PRIMARY KEY, name TEXT UNIQUE, arm TEXT, seed INTEGER);
CREATE TABLE prompt(id INTEGER PRIMARY KEY, split TEXT, name TEXT, question TEXT, gold TEXT,
  UNIQUE(split, name));
CREATE TABLE component(position INTEGER PRIMARY KEY, name TEXT UNIQUE);
CREATE TABLE step(id INTEGER PRIMARY KEY, run INTEGER, step INTEGER, figures TEXT);
CREATE INDEX step_place ON step(run, step);
CREATE TABLE timing(id INTEGER PRIMARY KEY, run INTEGER, step INTEGER, seconds REAL);
-- Narrow, so that a filter reads a million rows in a moment; the texts stand apart.
CREATE TABLE rollout(id INTEGER PRIMARY KEY, run INTEGER, step INTEGER, grp INTEGER,
  prompt INTEGER, sample INTEGER, tokens INTEGER, finish TEXT, reward REAL, advantage REAL,
  historical TEXT, strict TEXT, lenient TEXT, formatted INTEGER, repetition REAL,
  reflections INTEGER, extracted TEXT);
CREATE INDEX rollout_place ON rollout(run, step, grp);
CREATE TABLE rollout_text(id INTEGER PRIMARY KEY, completion TEXT, status TEXT, components TEXT,
  reflection TEXT);
CREATE VIRTUAL TABLE rollout_words USING fts5(completion, content='rollout_text',
  content_rowid='id');
CREATE TABLE answer(id INTEGER PRIMARY KEY, run INTEGER, prompt INTEGER, sample INTEGER,
  tokens INTEGER, finish TEXT, rule TEXT, strict TEXT, lenient TEXT);
CREATE INDEX answer_place ON answer(run, prompt, sample);
CREATE TABLE answer_text(id INTEGER PRIMARY KEY, completion TEXT, extracted TEXT, status TEXT);
CREATE VIRTUAL TABLE answer_words USING fts5(completion, content='answer_text',
  content_rowid='id');
"""


# Of the tables and their meaning; an index of another version is made again.
VERSION = zlib.crc32(f"{EDITION}{SCHEMA}".encode()) & 0x7FFFFFFF


def cache_folder() -> Path:
    """Return the user's cache folder for indexes: XDG_CACHE_HOME, or the platform's own."""
    given = os.environ.get("XDG_CACHE_HOME")
    if given and Path(given).is_absolute():
        base = Path(given)
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path.home() / ".cache"
    return base / "ahalab" / "view"


def study_id(root: Path) -> str:
    """Return a study's id in addresses and in the cache: a digest of its resolved path."""
    return hashlib.sha256(os.fsencode(root.resolve())).hexdigest()[:12]


def index_path(root: Path) -> Path:
    """Return where the index of a study lies."""
    return cache_folder() / f"{study_id(root)}.sqlite"


def open_for_writing(path: Path, root: Path) -> sqlite3.Connection:
    """Open an index, made anew where it is absent, of another version, or damaged.

    Raises:
        InputError: The cache folder can't be written to.
    """
    make_folder()
    try:
        if path.exists() and not _usable(path):
            remove(path)
        database = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=NORMAL")
        database.execute("PRAGMA cache_size=-65536")
        if database.execute("PRAGMA user_version").fetchone()[0] != VERSION:
            made = SCHEMA + f"PRAGMA user_version={VERSION};"
            database.executescript(f"BEGIN IMMEDIATE;{made}COMMIT;")
            database.execute("INSERT INTO about VALUES ('study', ?)", (str(root.resolve()),))
    except (OSError, sqlite3.OperationalError) as error:
        raise _unwritable(path, str(error)) from error
    return database


def make_folder() -> None:
    """Make the cache folder, for this user alone.

    Raises:
        InputError: It can't be made.
    """
    try:
        cache_folder().mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise _unwritable(cache_folder(), error.strerror or str(error)) from error


def _unwritable(path: Path, found: str) -> InputError:
    return InputError(
        f"{path}: expected a cache folder to keep the index in, found: {found}. "
        "Free space, or set XDG_CACHE_HOME to a folder that can be written to."
    )


def _usable(path: Path) -> bool:
    try:
        database = sqlite3.connect(path)
        try:
            return bool(database.execute("PRAGMA user_version").fetchone()[0] == VERSION)
        finally:
            database.close()
    except sqlite3.DatabaseError:
        return False


def open_for_reading(path: Path) -> sqlite3.Connection:
    """Open an index that some other connection writes to.

    Raises:
        sqlite3.OperationalError: There is none yet.
    """
    database = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=BUSY_SECONDS)
    database.execute("PRAGMA query_only=ON")
    database.execute("PRAGMA mmap_size=268435456")
    database.row_factory = sqlite3.Row
    return database


def run_number(database: sqlite3.Connection, cell: Cell) -> int:
    """Return the number that rows of a cell's run or answers have; 0 while none is indexed."""
    found = database.execute("SELECT id FROM run WHERE name = ?", (cell.name,)).fetchone()
    return int(found[0]) if found else 0


def remove(path: Path) -> None:
    """Remove an index; the study it was made from is elsewhere."""
    for ending in ("", "-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)
