"""`ahalab demo`: base and adapter answers side by side, scored live."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ahalab.demo.pairs import ScoredPair
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
FILTERS = {"a": Only.all, "c": Only.changed, "g": Only.gained, "l": Only.lost}
NEXT = {" ", "\r", "\n", "n"}
QUIT = {"q", "\x1b"}
KEYS = "space next   g gained   l lost   c changed   a all   q quit"


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
) -> None:
    """Replay saved answers, base beside adapter, scored live. No torch, no network."""
    metric: Metric = by.value
    if plain or not (sys.stdin.isatty() and sys.stdout.isatty()):
        _show_plain(_pairs(run, cell, only, metric), metric, limit)
    else:
        _show_keys(run, cell, only, metric, limit)


def _pairs(run: Path | None, cell: str | None, only: Only, metric: Metric) -> Iterator[ScoredPair]:
    from ahalab.demo.pairs import packaged_pairs, select, study_pairs

    source = packaged_pairs() if run is None else study_pairs(run, cell)
    return select(source, WANTED[only], metric)


def _show_plain(pairs: Iterator[ScoredPair], metric: Metric, limit: int | None) -> None:
    from ahalab.cli.output import harmless

    counts: dict[str, int] = {}
    for number, scored in enumerate(pairs, start=1):
        change = scored.change(metric)
        counts[change] = counts.get(change, 0) + 1
        pair = scored.pair
        lines = [
            f"[{number}] {change} ({metric})",
            f"question: {pair.question}",
            f"gold:     {pair.gold}",
        ]
        for side, text, score in (
            ("base", pair.base_completion, scored.base),
            (f"{pair.arm}, seed {pair.seed}", pair.adapter_completion, scored.adapter),
        ):
            lines.append(f"{side}: {text!r}")
            lines.append(
                f"    strict {score.strict.outcome}, lenient {score.lenient.outcome} "
                f"({score.lenient.rule}: {score.lenient.extracted})"
            )
        typer.echo(harmless("\n".join(lines)) + "\n")
        if number == limit:
            break
    told = ", ".join(f"{count} {change}" for change, count in sorted(counts.items()))
    typer.echo(f"Scored live by {metric} reading: {told or 'no such pair'}.")


def _show_keys(
    run: Path | None, cell: str | None, only: Only, metric: Metric, limit: int | None
) -> None:
    from itertools import islice

    from rich.console import Console

    from ahalab.cli.demo_screen import show_pair

    pairs, number = islice(_pairs(run, cell, only, metric), limit), 0
    while True:
        scored = next(pairs, None)
        if scored is None:
            if number == 0:
                Console().clear()  # a pair of another filter must not stand above "none"
            end = f"End of the {number} pairs" if number else "No such pair"
            told = "" if only is Only.all else f"{only.value}, "
            typer.echo(f"{end} ({told}by the {metric} reading).")
            typer.echo(KEYS.replace("space next   ", ""))
        else:
            number += 1
            show_pair(scored, number, metric, only.value)
            typer.echo(KEYS)
        key = _key()
        while key not in {*NEXT, *QUIT, *FILTERS}:
            key = _key()
        if key in QUIT:
            return
        if key in FILTERS:
            only = FILTERS[key]
            pairs, number = islice(_pairs(run, cell, only, metric), limit), 0


def _key() -> str:
    """Wait for a key; the end of the input quits."""
    try:
        return str(typer.getchar()).lower()
    except EOFError:
        return "q"
