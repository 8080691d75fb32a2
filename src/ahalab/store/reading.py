"""The one door to row files, plain or sealed: where they lie, their bytes, their rows.

Rows that a journal stands beside are compared with it as they are read: a batch that is not what
was committed is an error before any row after it, so no stage computes from damaged rows.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import zstandard

from ahalab.errors import InputError, RecordError
from ahalab.plain_files import open_plain, read_plain
from ahalab.records.base import Record, decode_row
from ahalab.records.foreign import MAX_LINE_BYTES
from ahalab.records.journal import JournalBatch
from ahalab.store.journal import JournalState, read_journal

R = TypeVar("R", bound=Record)

MAX_UNPACKED_BYTES = 4 << 30  # of a compressed row file
READ_BYTES = 1 << 20
PACKED_BYTES = 512  # read at once; a block of 4 bytes may unpack to 128 KiB, so these to 16 MiB
ZSTD_LEVEL = 12


def journal_path(path: Path) -> Path:
    """Return the journal's path: `rollouts.journal.jsonl` beside `rollouts.jsonl`."""
    return path.with_name(path.name.removesuffix(".jsonl") + ".journal.jsonl")


def sealed_path(path: Path) -> Path:
    """Return the path that a row file has once sealed and compressed."""
    return path.with_name(path.name + ".zst")


def stored_path(path: Path) -> Path:
    """Return where the rows lie now: the plain file, or its compressed form.

    Raises:
        InputError: Neither exists.
    """
    for candidate in (path, sealed_path(path)):
        if candidate.is_file():
            return candidate
    raise InputError(f"{path}: expected a row file, found none. Run the stage that writes it.")


def read_bytes(path: Path) -> bytes:
    """Return the (uncompressed) bytes of a row file.

    Raises:
        InputError: There is no such file.
        RecordError: The compressed form is damaged.
    """
    stored = stored_path(path)
    if stored.suffix != ".zst":
        return read_plain(stored)
    with open_rows(stored) as stream:
        return stream.read()


def packed(payload: bytes) -> bytes:
    """Return rows as they are kept compressed."""
    return zstandard.ZstdCompressor(level=ZSTD_LEVEL).compress(payload)


@contextmanager
def open_rows(stored: Path) -> Iterator[BinaryIO]:
    """Open a row file where it lies and read its uncompressed bytes, not checked against anything.

    A compressed one is one frame, which declares its size, and is unpacked as it is read.

    Raises:
        OSError: The file can't be read.
        RecordError: The compressed form is damaged, or larger than row files are; also while it is
            read, where more or less comes than was declared.
    """
    with open_plain(stored) as file:
        if stored.suffix != ".zst":
            yield file
            return
        unpacked = _Unpacked(stored, file, _unpacked_size(stored))
        try:
            yield io.BufferedReader(unpacked)
        except zstandard.ZstdError as error:
            raise _not_zstandard(stored, error) from error


class _Unpacked(io.RawIOBase):
    """The bytes of a compressed file as they are unpacked: one frame, whole, and nothing after."""

    def __init__(self, stored: Path, file: BinaryIO, size: int) -> None:
        self._stored, self._file, self._size = stored, file, size
        self._frame = zstandard.ZstdDecompressor().decompressobj(write_size=PACKED_BYTES * 16)
        self._ready, self._at = memoryview(b""), 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        while not self._ready and (piece := self._file.read(PACKED_BYTES)):
            if self._frame.eof:
                raise self._wrong("nothing after its frame", "more bytes")
            self._ready = memoryview(self._frame.decompress(piece))
            self._at += len(self._ready)
        if self._frame.unused_data:
            raise self._wrong("nothing after its frame", "more bytes")
        if not self._ready and not (self._frame.eof and self._at == self._size):
            raise self._wrong(f"{self._size} unpacked bytes", str(self._at))
        count = min(len(buffer), len(self._ready))
        buffer[:count], self._ready = self._ready[:count], self._ready[count:]
        return count

    def _wrong(self, expected: str, found: str) -> RecordError:
        return RecordError(f"{self._stored}: expected {expected}, found {found}. Restore the file.")


def _unpacked_size(stored: Path) -> int:
    """Return the size the frame declares; the reader alone takes a cut frame for whole."""
    with open_plain(stored) as file:
        try:
            header = zstandard.get_frame_parameters(file.read(18))  # the largest header
        except zstandard.ZstdError as error:
            raise _not_zstandard(stored, error) from error
    size = header.content_size
    if size > MAX_UNPACKED_BYTES:  # so is a size that is not declared
        raise RecordError(
            f"{stored}: expected a size of at most {MAX_UNPACKED_BYTES} bytes, found {size}."
        )
    return size


def _not_zstandard(stored: Path, error: zstandard.ZstdError) -> RecordError:
    return RecordError(f"{stored}: expected a zstandard file, found: {error}. Restore the file.")


def read_rows(path: Path, kind: type[R]) -> Iterator[tuple[int, R]]:
    """Yield (line number from 1, row) of a row file, compressed or not.

    Raises:
        InputError: There is no such file.
        RecordError: A malformed row, a torn tail, or rows that are not those that the journal
            beside them names, with `file:line`.
    """
    stored = stored_path(path)
    committed = _Committed(stored, read_journal(journal_path(path)))
    for number, line in read_lines(path):
        yield number, decode_row(line, kind, f"{stored}:{number}")
        committed.take(number, line)
    committed.end()


class _Committed:
    """Follows rows as they are read, batch by batch of their journal."""

    def __init__(self, stored: Path, journal: JournalState) -> None:
        self._stored, self._sealed = stored, journal.seal is not None
        self._batches = iter(journal.batches)
        self._rows, self._digest = 0, hashlib.sha256()
        self._batch = self._next()

    def _next(self) -> JournalBatch | None:
        """Return the next batch that has rows."""
        self._rows, self._digest = 0, hashlib.sha256()
        return next((batch for batch in self._batches if batch.rows), None)

    def take(self, number: int, line: bytes) -> None:
        """Take in a line; at the end of its batch, compare."""
        batch = self._batch
        if batch is None:
            if self._sealed:
                raise RecordError(
                    f"{self._stored}:{number}: expected nothing after the seal, found a row. "
                    "Restore the file."
                )
            return
        self._rows += 1
        self._digest.update(line + b"\n")
        if self._rows < batch.rows:
            return
        if self._digest.hexdigest() != batch.sha256:
            raise RecordError(
                f"{self._stored}:{number - batch.rows + 1}: expected the {batch.rows} rows of "
                f"batch {batch.sequence} as committed, found other bytes. Restore the file."
            )
        self._batch = self._next()

    def end(self) -> None:
        """Refuse rows that end before their journal does."""
        if self._batch is not None:
            raise RecordError(
                f"{self._stored}: expected the {self._batch.rows} rows of batch "
                f"{self._batch.sequence}, found {self._rows}. Rows were lost after they were "
                "committed; restore the file."
            )


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield (line number from 1, bytes without the newline) of a row file, compressed or not.

    Lines are split on the newline byte only: `str.splitlines` would break a row at U+2028.

    Raises:
        InputError: There is no such file.
        RecordError: A torn tail or a damaged compressed form, with `file:line`.
    """
    stored = stored_path(path)
    number = 0
    with open_rows(stored) as stream:
        while line := stream.readline(MAX_LINE_BYTES):
            number += 1
            if not line.endswith(b"\n"):
                raise RecordError(
                    f"{stored}:{number}: expected a whole line, found a torn or overlong one. "
                    "Restore the file."
                )
            yield number, line[:-1]


def read_spans(path: Path, spans: Iterable[tuple[int, int]]) -> Iterator[bytes]:
    """Yield the (unpacked) bytes of each span of a row file, compressed or not, one at a time.

    Args:
        path: The plain path of the row file.
        spans: Start and end of each, in bytes, in ascending order, none overlapping.

    Raises:
        InputError: There is no such file.
        RecordError: It ends before a span does, or its compressed form is damaged.
    """
    stored = stored_path(path)
    packed, at = stored.suffix == ".zst", 0
    with open_rows(stored) as stream:
        for start, end in spans:
            if packed:
                while at < start and (piece := stream.read(min(READ_BYTES, start - at))):
                    at += len(piece)
            else:
                stream.seek(start)
            part = stream.read(end - start)
            at = start + len(part)
            if at < end:
                raise RecordError(
                    f"{stored}: expected {end} committed bytes, found {at}. Restore the file."
                )
            yield part


def stored_size(path: Path) -> int | None:
    """Return the size of the rows where they lie now, unpacked; None when there are none."""
    if path.is_file():
        return path.stat().st_size
    stored = sealed_path(path)
    return _unpacked_size(stored) if stored.is_file() else None


def changed_on_resume(paths: Iterable[Path]) -> str | None:
    """Say in which row files a resume gave other rows than those it had cut; None: in none.

    Raises:
        RecordError: A journal is malformed.
    """
    told = [
        f"{path.name} (batch {', '.join(map(str, changed))})"
        for path in paths
        if (changed := read_journal(journal_path(path)).changed)
    ]
    if not told:
        return None
    return f"rows that a resume cut came out otherwise the second time: {', '.join(told)}"
