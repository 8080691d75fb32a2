"""The journal beside a row file: a chain of lines, each naming the digest of the one before."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from ahalab.errors import RecordError
from ahalab.plain_files import read_plain
from ahalab.records.base import decode_row, encode
from ahalab.records.journal import (
    JournalAttempt,
    JournalBatch,
    JournalCut,
    JournalHead,
    JournalLine,
    JournalSeal,
)
from ahalab.store.durable import write_all

START = "0" * 64  # what the first line names as the line before it


@dataclass(slots=True)
class JournalState:
    """What a journal says, read from its first line to its last sound one."""

    head: JournalHead | None = None
    attempts: list[JournalAttempt] = field(default_factory=list)
    batches: list[JournalBatch] = field(default_factory=list)  # in force: cut ones are gone
    cuts: list[JournalCut] = field(default_factory=list)
    seal: JournalSeal | None = None
    last: str = START  # digest of the last line
    torn: bytes = b""  # an unfinished last line
    # Rows cut on a resume, compared with the rows generated again (store rule 7).
    taken_back: dict[int, str] = field(default_factory=dict)  # batch -> sha256, not there again yet
    changed: list[int] = field(default_factory=list)  # batches that came out otherwise

    @property
    def end(self) -> int:
        """Committed bytes of the row file."""
        return self.batches[-1].end if self.batches else 0

    @property
    def rows(self) -> int:
        """Committed rows."""
        return sum(batch.rows for batch in self.batches)

    def apply(self, line: JournalLine, place: str) -> None:
        """Take in one line, checking that it can follow what stands before.

        Raises:
            RecordError: The line does not follow; the message starts with `place`.
        """
        if line.previous != self.last:
            raise RecordError(
                f"{place}: expected the digest of the line before ({self.last[:12]}...), "
                f"found {line.previous[:12]}.... A line was removed, edited or moved."
            )
        if self.seal is not None:
            raise RecordError(
                f"{place}: expected nothing after the seal, found a {_kind(line)} line."
            )
        if (self.head is None) != isinstance(line, JournalHead):
            raise RecordError(f"{place}: expected one head, first; found a {_kind(line)} line.")
        match line:
            case JournalHead():
                self.head = line
            case JournalAttempt():
                self.attempts.append(line)
            case JournalBatch():
                if (line.sequence, line.start) != (len(self.batches), self.end):
                    raise RecordError(
                        f"{place}: expected batch {len(self.batches)} from byte {self.end}, "
                        f"found batch {line.sequence} from byte {line.start}."
                    )
                if line.rows < 0 or line.end < line.start:
                    raise RecordError(
                        f"{place}: expected a batch of rows from byte {line.start} on, found "
                        f"{line.rows} rows up to byte {line.end}."
                    )
                self.batches.append(line)
                if self.taken_back.pop(line.sequence, line.sha256) != line.sha256:
                    self.changed.append(line.sequence)
            case JournalCut():
                before = self.rows
                gone = self.batches[max(0, line.sequence) :]
                self.taken_back |= {batch.sequence: batch.sha256 for batch in gone}
                del self.batches[line.sequence :]
                kept = (len(self.batches), self.rows, self.end, before - self.rows)
                if (line.sequence, line.rows, line.end, line.cut_rows) != kept:
                    raise RecordError(
                        f"{place}: expected a cut to {kept[0]} batches, {kept[1]} rows and "
                        f"{kept[2]} bytes that takes {kept[3]} rows, found {line.sequence}, "
                        f"{line.rows}, {line.end} and {line.cut_rows}."
                    )
                self.cuts.append(line)
            case JournalSeal():
                if (line.rows, line.bytes) != (self.rows, self.end):
                    raise RecordError(
                        f"{place}: expected a seal over {self.rows} rows and {self.end} bytes, "
                        f"found {line.rows} and {line.bytes}."
                    )
                self.seal = line
        self.last = hashlib.sha256(encode(line)).hexdigest()


def _kind(line: JournalLine) -> str:
    return type(line).__name__.removeprefix("Journal").lower()


def read_journal(path: Path) -> JournalState:
    """Read a journal whole.

    An unfinished last line is what a kill leaves; it is returned in `torn`, not an error.

    Raises:
        RecordError: Anything malformed before that, with `file:line`.
    """
    state = JournalState()
    payload = read_plain(path) if path.exists() else b""
    lines = payload.split(b"\n")
    state.torn = lines.pop()
    for number, line in enumerate(lines, start=1):
        place = f"{path}:{number}"
        record: JournalLine = decode_row(line, JournalLine, place)  # type: ignore[arg-type]
        state.apply(record, place)
    return state


class JournalWriter:
    """Appends lines to an open journal; the chain is kept here and nowhere else."""

    def __init__(self, path: Path, state: JournalState) -> None:
        self.path = path
        self.state = state
        self._descriptor = os.open(
            path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644
        )

    def append(self, line: JournalLine) -> None:
        """Chain a line to the last one and flush it to the disk."""
        line = replace(line, previous=self.state.last)
        payload = encode(line) + b"\n"
        self.state.apply(line, str(self.path))
        write_all(self._descriptor, payload, self.path)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)
