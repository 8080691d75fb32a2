"""Row files: JSONL with a journal beside it, committed by the batch, resumable after any kill.

A row file holds rows only, so that any JSONL tool reads it. The rows of a batch are appended and
flushed first, the journal's line after them: what the journal does not name was never committed.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Generic, Self, TypeVar

from ahalab.errors import InputError, PlanError, RecordError
from ahalab.plain_files import open_plain, read_plain
from ahalab.records.base import Record, decode_row, encode
from ahalab.records.foreign import MAX_LINE_BYTES
from ahalab.records.journal import (
    JournalAttempt,
    JournalBatch,
    JournalCut,
    JournalHead,
    JournalSeal,
)
from ahalab.store.durable import (
    forget_cached,
    fsync_folder,
    make_folder,
    replace_file,
    write_all,
)
from ahalab.store.journal import JournalState, JournalWriter, read_journal
from ahalab.store.reading import journal_path, packed, sealed_path, stored_size

R = TypeVar("R", bound=Record)

COMPRESS_FROM_BYTES = 1 << 20  # a sealed file from this size on is kept as .jsonl.zst


@dataclass(frozen=True, slots=True)
class RowFile:
    """What a row file is and belongs to."""

    path: Path  # the plain .jsonl path
    rows_schema: str  # schema of its rows, as `rollout/1`
    plan_digest: str
    run: str  # the run's path within the study
    broken: Path  # folder outside the study where torn tails are kept


def finished(file: RowFile) -> bool:
    """Say whether the file is complete for this plan, and tidy up after a kill during its sealing.

    Raises:
        PlanError: It was written under another plan.
        RecordError: Its journal is malformed, or the rows that it seals are gone.
    """
    state = read_journal(journal_path(file.path))
    _check_head(file, state)
    if state.seal is None:
        return False
    compress_sealed(file.path)
    size = stored_size(file.path)
    if size != state.seal.bytes:
        raise RecordError(
            f"{file.path}: expected {state.seal.bytes} sealed bytes, found "
            f"{'none' if size is None else size}. "
            f"Restore the file, or remove {journal_path(file.path).name} too, to write both again."
        )
    return True


def _check_head(file: RowFile, state: JournalState) -> None:
    head = state.head
    if head is None:
        return
    for name, expected in (
        ("plan_digest", file.plan_digest),
        ("run", file.run),
        ("rows_schema", file.rows_schema),
    ):
        found = getattr(head, name)
        if found != expected:
            raise PlanError(
                f"{journal_path(file.path)}:1: expected {name}={expected}, found {found}. "
                "These rows belong to another plan or run; use a new --out."
            )


class RowWriter(Generic[R]):
    """Appends batches of rows; opens by recovering whatever a killed writer left.

    The caller holds the writer's lock. Used in a `with` block.

    Raises:
        PlanError: The rows belong to another plan or run.
        RecordError: Damage before the last commit, with file and line.
        InputError: The file is sealed already, or the disk refuses.
    """

    def __init__(self, file: RowFile) -> None:
        self.file = file
        self.path = file.path
        self._sound = True  # False: a write failed, and only reopening tells what is on the disk
        make_folder(self.path.parent)
        journal = journal_path(self.path)
        for path in (self.path, journal):
            forget_cached(path)
        state = read_journal(journal)
        _check_head(file, state)
        if state.seal is not None:
            raise InputError(f"{self.path}: expected an open row file, found a sealed one.")
        if state.torn:
            _keep_broken(file.broken, journal, state.torn)
            _truncate(journal, journal.stat().st_size - len(state.torn))
        self._recover(state)
        self._journal = JournalWriter(journal, state)
        self._descriptor = os.open(
            self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644
        )
        try:
            fsync_folder(self.path.parent)
            self._begin(state)
        except BaseException:  # whatever ends it, no open descriptor is left
            self.close()
            raise

    def _begin(self, state: JournalState) -> None:
        """Write the journal's first line where there is none, and that this attempt began."""
        if state.head is None:
            self._journal.append(
                JournalHead(
                    rows_schema=self.file.rows_schema,
                    plan_digest=self.file.plan_digest,
                    run=self.file.run,
                    previous="",
                )
            )
        self._journal.append(
            JournalAttempt(
                number=len(state.attempts) + 1,
                utc=datetime.now(UTC).isoformat(timespec="seconds"),
                rows=state.rows,
                bytes=state.end,
                previous="",
            )
        )

    def _recover(self, state: JournalState) -> None:
        """Cut the row file to the last committed byte, after checking every committed one."""
        size = self.path.stat().st_size if self.path.exists() else 0
        if size < state.end:
            raise RecordError(
                f"{self.path}: expected {state.end} committed bytes, found {size}. "
                "Rows were lost after they were committed; restore the file or use a new --out."
            )
        if size and state.head is None:  # rows follow the head: a kill can't leave them alone
            raise RecordError(
                f"{journal_path(self.path)}: expected the journal of {size} bytes of rows, found "
                "none. Restore the journal, or move the rows away."
            )
        if not self.path.exists():
            return
        line = 1
        with open_plain(self.path) as rows:
            for batch in state.batches:
                part = rows.read(batch.end - batch.start)
                digest = hashlib.sha256(part).hexdigest()
                if (digest, part.count(b"\n")) != (batch.sha256, batch.rows):
                    raise RecordError(
                        f"{self.path}:{line}: expected the {batch.rows} rows of batch "
                        f"{batch.sequence} as committed, found other bytes. Restore the file."
                    )
                line += batch.rows
            tail = rows.read()
        if tail:
            _keep_broken(self.file.broken, self.path, tail)
            _truncate(self.path, state.end)

    @property
    def state(self) -> JournalState:
        """What is committed."""
        return self._journal.state

    def append(self, rows: Sequence[R]) -> None:
        """Commit one batch: rows first, flushed, then the journal's line.

        Raises:
            ValueError: A float is NaN or infinite.
            RecordError: A row would not read back (a whole number in a float field, text that is
                not Unicode, more than 16 MB); nothing was written.
            InputError: The disk refuses, now or before; nothing committed is lost.
        """
        payload = b"".join(self._line(row, at) for at, row in enumerate(rows, self.state.rows + 1))
        start = self.state.end
        with self._writing():
            write_all(self._descriptor, payload, self.path)
            self._journal.append(
                JournalBatch(
                    sequence=len(self.state.batches),
                    rows=len(rows),
                    start=start,
                    end=start + len(payload),
                    sha256=hashlib.sha256(payload).hexdigest(),
                    previous="",
                )
            )

    def _line(self, row: R, number: int) -> bytes:
        """Return a row's line, after reading it back."""
        line, place = encode(row), f"{self.path}:{number}"
        decode_row(line, type(row), place)
        if len(line) >= MAX_LINE_BYTES:
            raise RecordError(
                f"{place}: expected at most {MAX_LINE_BYTES} bytes, found {len(line)}."
            )
        return line + b"\n"

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Refuse to write on after a failure: the file may end in a torn row (store rule 1)."""
        if not self._sound:
            raise InputError(
                f"{self.path}: expected no write after a failed one. Run the same command to "
                "resume."
            )
        self._sound = False
        yield
        self._sound = True

    def cut(self, batches: int) -> None:
        """Take back every batch from number `batches` on; the next ones are written again.

        The journal's line comes first: if a kill falls between, recovery cuts the row file to it.

        Raises:
            RecordError: Fewer batches are there than are to be kept.
        """
        committed = len(self.state.batches)
        if not 0 <= batches <= committed:
            raise RecordError(
                f"{self.path}: expected at least {batches} committed batches, found {committed}. "
                "Rows were lost after a checkpoint; restore the file, or remove its checkpoints "
                "in .work."
            )
        if batches == committed:
            return
        kept = self.state.batches[:batches]
        end = kept[-1].end if kept else 0
        with open_plain(self.path) as rows:
            rows.seek(end)
            gone = rows.read()
        line = JournalCut(
            sequence=batches,
            rows=sum(b.rows for b in kept),
            end=end,
            cut_rows=self.state.rows - sum(b.rows for b in kept),
            cut_sha256=hashlib.sha256(gone).hexdigest(),
            previous="",
        )
        with self._writing():
            self._journal.append(line)
            _truncate(self.path, end)

    def seal(self) -> None:
        """Declare the file complete; from a certain size on it is kept compressed."""
        line = JournalSeal(
            rows=self.state.rows,
            bytes=self.state.end,
            sha256=hashlib.sha256(read_plain(self.path)).hexdigest(),
            previous="",
        )
        with self._writing():
            self._journal.append(line)
        compress_sealed(self.path)

    def close(self) -> None:
        """Close the files."""
        os.close(self._descriptor)
        self._journal.close()

    def __enter__(self) -> Self:
        """Return the open writer."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the files."""
        self.close()


def compress_sealed(path: Path) -> None:
    """Keep a large sealed row file compressed. Does nothing when that is done or not needed."""
    if not path.is_file() or path.stat().st_size < COMPRESS_FROM_BYTES:
        return
    replace_file(sealed_path(path), packed(read_plain(path)))
    path.unlink()
    fsync_folder(path.parent)


def write_rows(file: RowFile, rows: Sequence[R]) -> None:
    """Write a whole row file at once and seal it."""
    with RowWriter[R](file) as writer:
        writer.cut(0)
        writer.append(rows)
        writer.seal()


def _truncate(path: Path, size: int) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.ftruncate(descriptor, size)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _keep_broken(folder: Path, path: Path, tail: bytes) -> None:
    """Keep a torn tail for whoever wants to know what was lost."""
    number = 1
    while (target := folder / f"{path.name}.{number}.broken").exists():
        number += 1
    replace_file(target, tail)
