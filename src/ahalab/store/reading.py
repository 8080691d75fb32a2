"""Reads row files, plain or sealed: where they lie, their bytes, their rows one by one."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, TypeVar

import zstandard

from ahalab.errors import InputError, RecordError
from ahalab.records.base import Record, decode_row

R = TypeVar("R", bound=Record)

MAX_LINE_BYTES = 16 << 20
MAX_UNPACKED_BYTES = 4 << 30  # of a compressed row file
READ_BYTES = 1 << 20


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
        return stored.read_bytes()
    try:
        size = _unpacked_size(stored)
        pieces, at = [], 0
        with stored.open("rb") as file, _unpacker(file) as stream:
            while at <= size and (piece := stream.read(READ_BYTES)):
                pieces.append(piece)
                at += len(piece)
    except zstandard.ZstdError as error:
        raise RecordError(f"{stored}: expected a zstandard file, found: {error}.") from error
    if at != size:
        raise _wrong_size(stored, size, at)
    return b"".join(pieces)


def _unpacked_size(stored: Path) -> int:
    """Return the size the frame declares; the reader alone takes a cut frame for whole."""
    with stored.open("rb") as file:
        size = zstandard.get_frame_parameters(file.read(18)).content_size  # the largest header
    if size > MAX_UNPACKED_BYTES:  # so is a size that is not declared
        raise RecordError(
            f"{stored}: expected a size of at most {MAX_UNPACKED_BYTES} bytes, found {size}."
        )
    return size


def _unpacker(file: BinaryIO) -> zstandard.ZstdDecompressionReader:
    # Across frames, so that bytes after the first frame are seen and refused.
    return zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)


def _wrong_size(stored: Path, expected: int, found: int) -> RecordError:
    many = "more" if found > expected else str(found)
    return RecordError(
        f"{stored}: expected {expected} unpacked bytes, found {many}. Restore the file."
    )


def read_rows(path: Path, kind: type[R]) -> Iterator[tuple[int, R]]:
    """Yield (line number from 1, row) of a row file, compressed or not.

    Raises:
        InputError: There is no such file.
        RecordError: A malformed row or a torn tail, with `file:line`.
    """
    stored = stored_path(path)
    for number, line in read_lines(path):
        yield number, decode_row(line, kind, f"{stored}:{number}")


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield (line number from 1, bytes without the newline) of a row file, compressed or not.

    Lines are split on the newline byte only: `str.splitlines` would break a row at U+2028.

    Raises:
        InputError: There is no such file.
        RecordError: A torn tail or a damaged compressed form, with `file:line`.
    """
    stored = stored_path(path)
    packed = stored.suffix == ".zst"
    number = at = 0
    with stored.open("rb") as file:
        try:
            size = _unpacked_size(stored) if packed else os.fstat(file.fileno()).st_size
            stream = io.BufferedReader(_unpacker(file)) if packed else file
            while line := stream.readline(MAX_LINE_BYTES):
                number, at = number + 1, at + len(line)
                if not line.endswith(b"\n"):
                    raise RecordError(
                        f"{stored}:{number}: expected a whole line, found a torn or overlong one. "
                        "Restore the file."
                    )
                yield number, line[:-1]
        except zstandard.ZstdError as error:
            raise RecordError(
                f"{stored}:{number + 1}: expected zstandard, found: {error}."
            ) from error
    if packed and at != size:
        raise _wrong_size(stored, size, at)


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
    packed = stored.suffix == ".zst"
    at = 0
    with stored.open("rb") as file:
        stream = io.BufferedReader(_unpacker(file), READ_BYTES) if packed else file
        try:
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
        except zstandard.ZstdError as error:
            raise RecordError(f"{stored}: expected zstandard, found: {error}.") from error


def stored_size(path: Path) -> int | None:
    """Return the size of the rows where they lie now, unpacked; None when there are none."""
    if path.is_file():
        return path.stat().st_size
    stored = sealed_path(path)
    try:
        return _unpacked_size(stored) if stored.is_file() else None
    except zstandard.ZstdError as error:
        raise RecordError(f"{stored}: expected a zstandard file, found: {error}.") from error
