"""A task's own files: a folder with a JSONL or CSV file for each split, read row by row."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

from ahalab.errors import InputError
from ahalab.plain_files import read_plain
from ahalab.records.foreign import MAX_LINE_BYTES, read_json
from ahalab.records.terms import Split

NAMES: dict[Split, tuple[str, ...]] = {
    "train": ("train",),
    "eval": ("eval", "test"),
    "validation": ("validation",),
}
Row = tuple[dict[str, Any], str]  # fields, and `file:line`


def file_names(split: Split, ending: str) -> tuple[str, ...]:
    """Return how the file of a split may be called; the first one that is there is read."""
    return tuple(f"{name}.{ending}" for name in NAMES[split])


def find_file(path: str, split: Split, ending: str) -> Path | None:
    """Return the file of a split in a task's folder, or None."""
    folder = Path(path).expanduser()
    return next(
        (folder / name for name in file_names(split, ending) if (folder / name).is_file()), None
    )


def missing_file(path: str, split: Split, ending: str, also: str = "") -> InputError:
    """Return the error for a folder without the file of a split, or what else would serve."""
    folder = Path(path).expanduser()
    found = sorted(p.name for p in folder.iterdir())[:8] if folder.is_dir() else []
    if found:
        told = ", ".join(found)
    elif folder.is_dir():
        told = "nothing"
    else:
        told = "a file: task.path names a folder" if folder.exists() else "no such folder"
    expected = " or ".join([*file_names(split, ending), *([also] if also else [])])
    return InputError(f"{folder}: expected {expected} for the {split} split, found {told}.")


def jsonl_rows(path: Path) -> Iterator[Row]:
    """Yield the objects of a JSONL file.

    Raises:
        InputError: A line is no JSON object; it is named.
    """
    # Split on bytes: str.splitlines would break a row at U+2028.
    for number, line in enumerate(_read(path).split(b"\n"), start=1):
        if not line.strip():
            continue
        place = f"{path}:{number}"
        try:
            if len(line) > MAX_LINE_BYTES:
                raise ValueError(f"a line of {len(line)} bytes; {MAX_LINE_BYTES} are the most")
            row = read_json(line)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{place}: expected a JSON object, found: {error}.") from error
        if not isinstance(row, dict):
            raise InputError(f"{place}: expected a JSON object, found {type(row).__name__}.")
        yield row, place


def csv_rows(path: Path, fields: tuple[str, ...]) -> Iterator[Row]:
    """Yield the rows of a CSV file by the names of its header; a cell may hold line breaks.

    Args:
        path: UTF-8, with or without a byte order mark; commas between cells, double quotes around
            a cell that holds a comma, a quote (doubled) or a line break (RFC 4180).
        fields: Columns that must be there.

    Raises:
        InputError: The text or a row is malformed; the line where the row begins is named.
    """
    lines = _csv_lines(path)
    place, header = next(lines, (f"{path}:1", []))
    _check_header(place, header, fields)
    for place, cells in lines:
        if len(cells) != len(header):
            raise InputError(
                f"{place}: expected {len(header)} cells, as the header has, found {len(cells)} "
                f"({', '.join(cells)!r:.80}). Quote a cell that holds a comma or a line break."
            )
        yield dict(zip(header, cells, strict=True)), place


def _csv_lines(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield (place, cells) of every row that is not empty, the header first."""
    # newline="" keeps the line breaks within quotes as they are.
    reader = csv.reader(StringIO(_decoded(path), newline=""), strict=True)
    while True:
        place = f"{path}:{reader.line_num + 1}"
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise InputError(
                f"{place}: expected a row of comma-separated cells, found: {error} (a quote that "
                "is not closed, or not doubled within quotes?). Mend the row."
            ) from error
        if cells:
            yield place, cells


def _check_header(place: str, header: list[str], fields: tuple[str, ...]) -> None:
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise InputError(
            f"{place}: expected each column once, found {twice[0]!r} twice. Rename it."
        )
    missing = [name for name in fields if name not in header]
    if missing:
        found = ", ".join(repr(name) for name in header[:8]) or "no header"
        hint = " Separate the cells by commas." if len(header) == 1 and ";" in header[0] else ""
        raise InputError(
            f"{place}: expected a header with the column{'s' * (len(missing) > 1)} "
            f"{', '.join(missing)}, found {found:.300}. Mend the header, or name the columns in "
            f"task.question_field and task.gold_field.{hint}"
        )


def _decoded(path: Path) -> str:
    payload = _read(path)
    try:
        return payload.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = payload.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{path}:{line}: expected UTF-8 text, found the byte 0x{payload[error.start]:02x}. "
            "Save the file as UTF-8."
        ) from error


def _read(path: Path) -> bytes:
    try:
        return read_plain(path)
    except OSError as error:
        raise InputError(f"{path}: expected a readable file, found: {error.strerror}.") from error
