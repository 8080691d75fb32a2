"""Brings the index of a study up to what its journals have committed, and no further.

What is indexed is known by the digests of the committed batches. A journal that grew adds batches;
one that was cut, or begun anew, takes rows back first. A kill leaves what was committed to the
index so far, and the next look goes on from there.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from ahalab.errors import InputError, RecordError
from ahalab.records.journal import JournalBatch
from ahalab.store.journal import JournalState, read_journal
from ahalab.store.reading import journal_path, read_spans, sealed_path
from ahalab.view.database import index_path, open_for_writing, remove
from ahalab.view.rows import Rows
from ahalab.view.sources import Source, Study, sources

COMMIT_SECONDS = 0.5  # of work between two commits, so that readers see rows come in
MAX_BATCH_BYTES = 256 << 20  # a batch is read whole
TALLY = (
    "INSERT INTO tally SELECT ?, ?, answer_set, count(*), sum(strict = 'correct'), "
    "sum(lenient = 'correct'), sum(finish = 'length') FROM answer WHERE id BETWEEN ? AND ? "
    "GROUP BY answer_set"
)


@dataclass(frozen=True, slots=True)
class Extent:
    """How far an index is."""

    rows: int  # indexed
    total: int  # committed


Report = Callable[[Extent], None]
Signature = tuple[tuple[int, int, int] | None, ...]  # sizes, times and inodes of a source's files


class Indexer:
    """Keeps one study's index current. One process at a time: the caller holds the index's lock."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self.path = index_path(study.paths.root)
        self._seen: dict[str, Signature] = {}  # source -> its files as last indexed
        self._totals: dict[str, tuple[int, int]] = {}  # source -> rows indexed, rows committed

    @property
    def extent(self) -> Extent:
        """How far the index is, as of the last look."""
        pairs = self._totals.values()
        return Extent(sum(rows for rows, _ in pairs), sum(total for _, total in pairs))

    def sync(
        self, report: Report = lambda _: None, stop: Callable[[], bool] = lambda: False
    ) -> bool:
        """Index what was committed since the last look.

        Args:
            report: Told how far the index is, after each commit to it.
            stop: Asked now and then whether to end early.

        Returns:
            Whether anything changed.

        Raises:
            InputError: The cache folder can't be written to.
        """
        fresh = [
            (source, seen)
            for source in sources(self.study)
            if (seen := _signature(source)) != self._seen.get(source.name) and seen[0] is not None
        ]
        if not fresh and self.path.exists():
            return False
        if not self.path.exists():
            self._seen.clear()
        try:
            with closing(open_for_writing(self.path, self.study.paths.root)) as database:
                self._sync(database, fresh, report, stop)
        except sqlite3.OperationalError as error:
            raise InputError(
                f"{self.path}: expected to write the index, found: {error}. Free space in the "
                "cache folder, or set XDG_CACHE_HOME to another."
            ) from error
        except sqlite3.DatabaseError:  # a damaged index: the next look makes it again
            remove(self.path)
            self._seen.clear()
            self._totals.clear()
        return True

    def _sync(
        self,
        database: sqlite3.Connection,
        fresh: Sequence[tuple[Source, Signature]],
        report: Report,
        stop: Callable[[], bool],
    ) -> None:
        writer = _Writer(database)
        states: list[tuple[Source, JournalState]] = []
        for source, _ in fresh:
            try:
                state = read_journal(journal_path(source.path))
            except (InputError, OSError) as error:  # what is indexed stays
                writer.fault(source, str(error))
                continue
            writer.announce(source, state)
            self._totals[source.name] = (writer.rows_of(source), state.rows)
            states.append((source, state))
        report(self.extent)
        for source, state in states:
            fault = None
            try:
                for _ in writer.bring_up(source, state):
                    self._totals[source.name] = (writer.rows_of(source), state.rows)
                    report(self.extent)
                    if stop():
                        return
            except (InputError, OSError) as error:  # damaged, or being sealed: when its files
                writer.abandon()  # change it is tried again
                fault = str(error)
            rows = writer.rows_of(source)
            self._totals[source.name] = (rows, rows)
            writer.fault(source, fault)
        report(self.extent)
        self._seen |= {source.name: seen for source, seen in fresh}


class _Writer:
    """Applies journals to an open index."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._rows = Rows(database)

    def rows_of(self, source: Source) -> int:
        """Return how many rows of a source are indexed."""
        found = self._database.execute(
            "SELECT rows FROM source WHERE name = ?", (source.name,)
        ).fetchone()
        return int(found[0]) if found else 0

    def announce(self, source: Source, state: JournalState) -> None:
        """Keep how many rows a source has, before any of the new ones is indexed."""
        self._database.execute(
            "UPDATE source SET total = ?, sealed = ? WHERE id = ?",
            (state.rows, state.seal is not None, self._source(source)),
        )

    def fault(self, source: Source, fault: str | None) -> None:
        """Keep why a source could not be read on, or that it could."""
        self._source(source)
        self._database.execute(
            "UPDATE source SET fault = ? WHERE name = ? AND fault IS NOT ?",
            (fault, source.name, fault),
        )

    def abandon(self) -> None:
        """Roll back what is not committed."""
        if self._database.in_transaction:
            self._database.execute("ROLLBACK")
        self._rows = Rows(self._database)

    def bring_up(self, source: Source, state: JournalState) -> Iterator[None]:
        """Index a source up to its journal's state; yields after each commit."""
        number = self._source(source)
        kept = self._agreeing(number, state.batches)
        self._database.execute("BEGIN IMMEDIATE")
        self._cut(source, number, kept)
        began = time.monotonic()
        wanted = state.batches[kept:]
        for batch, payload in _payloads(source, wanted):
            first, last = self._rows.add(source, payload)
            self._database.execute(
                "INSERT INTO batch VALUES (?, ?, ?, ?, ?)",
                (number, batch.sequence, batch.sha256, first, last),
            )
            if source.kind == "answer":
                self._database.execute(TALLY, (number, batch.sequence, first, last))
            self._database.execute(
                "UPDATE source SET rows = rows + ? WHERE id = ?", (batch.rows, number)
            )
            if time.monotonic() - began > COMMIT_SECONDS:
                self._database.execute("COMMIT")
                yield
                self._database.execute("BEGIN IMMEDIATE")
                began = time.monotonic()
        self._database.execute("COMMIT")
        yield

    def _source(self, source: Source) -> int:
        self._rows.run(source.cell)
        self._database.execute(
            "INSERT OR IGNORE INTO source(name, rows, total, sealed) VALUES (?, 0, 0, 0)",
            (source.name,),
        )
        found = self._database.execute("SELECT id FROM source WHERE name = ?", (source.name,))
        return int(found.fetchone()[0])

    def _agreeing(self, number: int, batches: Sequence[JournalBatch]) -> int:
        """Return how many batches, from the first on, are indexed as the journal has them."""
        indexed = self._database.execute(
            "SELECT sha256 FROM batch WHERE source = ? ORDER BY sequence", (number,)
        )
        kept = 0
        for (digest,), batch in zip(indexed, batches, strict=False):
            if digest != batch.sha256:
                break
            kept += 1
        return kept

    def _cut(self, source: Source, number: int, kept: int) -> None:
        """Take back the rows of every batch after the first `kept`."""
        gone = self._database.execute(
            "SELECT first, last FROM batch WHERE source = ? AND sequence >= ?", (number, kept)
        ).fetchall()
        for first, last in gone:
            self._rows.remove(source, first, last)
        self._database.execute(
            "DELETE FROM batch WHERE source = ? AND sequence >= ?", (number, kept)
        )
        self._database.execute(
            "DELETE FROM tally WHERE source = ? AND sequence >= ?", (number, kept)
        )
        taken = sum(last - first + 1 for first, last in gone)
        self._database.execute("UPDATE source SET rows = rows - ? WHERE id = ?", (taken, number))


def _payloads(
    source: Source, batches: Sequence[JournalBatch]
) -> Iterator[tuple[JournalBatch, bytes]]:
    """Yield each batch with its bytes, which are those that were committed.

    Raises:
        InputError: The row file is gone, as for a moment while it is sealed.
        RecordError: The bytes are others, or more than one batch can have.
    """
    if not batches:
        return
    for batch in batches:
        if batch.end - batch.start > MAX_BATCH_BYTES:
            raise RecordError(
                f"{source.path}: expected batches of at most {MAX_BATCH_BYTES} bytes, found one of "
                f"{batch.end - batch.start}."
            )
    spans = read_spans(source.path, ((batch.start, batch.end) for batch in batches))
    for batch, payload in zip(batches, spans, strict=True):
        if hashlib.sha256(payload).hexdigest() != batch.sha256:
            raise RecordError(
                f"{source.path}: expected the rows of batch {batch.sequence} as committed, found "
                "other bytes. `ahalab verify` tells more."
            )
        yield batch, payload


def _signature(source: Source) -> Signature:
    """Return what changes when a source's journal or its rows, plain or compressed, do."""
    paths = (journal_path(source.path), source.path, sealed_path(source.path))
    return tuple(_stat(path) for path in paths)


def _stat(path: Path) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - polled
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ino
