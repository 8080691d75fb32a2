"""`ahalab demo`: base and adapter answers side by side, scored live."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ahalab.records.demo import SavedPair
    from ahalab.records.terms import Metric


class Only(StrEnum):
    """Which pairs are shown."""

    all = "all"
    changed = "changed"
    gained = "gained"
    lost = "lost"


class Reading(StrEnum):
    """By which reading of the answers pairs are sorted into gained and lost."""

    strict = "strict"
    lenient = "lenient"


WANTED = {
    Only.all: frozenset[str](),
    Only.changed: frozenset({"gained", "lost"}),
    Only.gained: frozenset({"gained"}),
    Only.lost: frozenset({"lost"}),
}


def demo(
    run: Annotated[
        Path | None,
        typer.Option("--run", help="A study's results folder (default: the packaged run)."),
    ] = None,
    cell: Annotated[str | None, typer.Option(help="With --run: arms/ARM/seed-S.")] = None,
    only: Annotated[Only, typer.Option(help="Show all, changed, gained or lost.")] = Only.all,
    by: Annotated[
        Reading, typer.Option(help="Reading that decides gained and lost.")
    ] = Reading.strict,
    limit: Annotated[int | None, typer.Option(min=1, help="Show at most so many.")] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Plain lines, for pipes.")] = False,
    typed: Annotated[
        bool,
        typer.Option("--type", help="Answer yourself, a line per question, from stdin too."),
    ] = False,
) -> None:
    """Replay saved answers, base beside adapter, scored live. No torch, no network."""
    from itertools import islice

    from ahalab.cli.demo_lines import ask, show_lines
    from ahalab.demo.pairs import select

    metric: Metric = by.value
    if not (plain or typed) and _on_a_terminal():
        from ahalab.cli.demo_keys import Browser

        Browser(list(_pairs(run, cell)), only, metric, limit).show()
        return
    pairs = islice(select(_pairs(run, cell), WANTED[only], metric), limit)
    if typed:
        ask(pairs, prompting=sys.stdin.isatty())
    else:
        show_lines(pairs, metric)


def _on_a_terminal() -> bool:
    """Say whether there is a terminal that keys come from, and that can be written all over."""
    dumb = os.environ.get("TERM", "dumb") in ("dumb", "unknown", "")
    return sys.stdin.isatty() and sys.stdout.isatty() and not dumb


def _pairs(run: Path | None, cell: str | None) -> Iterator[SavedPair]:
    from ahalab.demo.pairs import packaged_pairs, study_pairs
    from ahalab.errors import InputError

    if run is not None:
        return study_pairs(run, cell)
    if cell is not None:
        raise InputError("--cell: expected with --run DIR, found alone. The packaged run has one.")
    return packaged_pairs()
