"""Puts a generated table between its marks in a page."""

from __future__ import annotations

from pathlib import Path


def marks(name: str) -> tuple[str, str]:
    """Return the lines between which the table of this name stands."""
    return f"<!-- {name}: begin -->", f"<!-- {name}: end -->"


def read_between(file: Path, name: str) -> str:
    """Return what stands between the marks.

    Raises:
        ValueError: A mark is missing.
    """
    begin, end = marks(name)
    text = file.read_text(encoding="utf-8")
    return text[text.index(begin) + len(begin) : text.index(end)].strip("\n")


def write_between(file: Path, name: str, table: str) -> None:
    """Replace what stands between the marks.

    Raises:
        ValueError: A mark is missing.
    """
    begin, end = marks(name)
    text = file.read_text(encoding="utf-8")
    before, after = text[: text.index(begin)], text[text.index(end) :]
    file.write_text(f"{before}{begin}\n{table}\n{after}", encoding="utf-8")
