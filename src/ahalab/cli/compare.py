"""`ahalab compare`: two files of answers to a paired verdict, without a study."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ahalab.cli.analysis import AllowOption
from ahalab.cli.options import Format, FormatOption, require_level


class MetricChoice(StrEnum):
    """Which reading decides."""

    strict = "strict"
    lenient = "lenient"


def compare(
    base: Annotated[
        Path, typer.Argument(help="Answers of the base: answers.jsonl, or .zst.", metavar="A")
    ],
    adapter: Annotated[
        Path, typer.Argument(help="Answers to the same prompts, compared with A.", metavar="B")
    ],
    metric: Annotated[
        MetricChoice, typer.Option(help="The reading that decides; the other is exploratory.")
    ] = MetricChoice.strict,
    alpha: Annotated[
        float, typer.Option(help="Two-sided level; intervals are at 1 - alpha.")
    ] = 0.05,
    margin_points: Annotated[
        float | None,
        typer.Option(help="Largest difference that does not matter, fixed before looking."),
    ] = None,
    allow: AllowOption = None,
    output: FormatOption = Format.text,
) -> None:
    """Compare two files of answers, paired by question.

    The files are answers.jsonl of a study, plain or compressed, or what `ahalab score FILE
    --format json` printed, with an `id` in every row.
    """
    from ahalab.analyze.pair import Rules, compare_files
    from ahalab.analyze.protocols import unused
    from ahalab.cli.compare_screen import print_pair
    from ahalab.cli.output import say
    from ahalab.errors import InputError
    from ahalab.records.base import encode

    require_level(alpha)
    if margin_points is not None and not 0.0 < margin_points < 100.0:
        raise InputError(
            f"--margin-points: expected points between 0 and 100, found {margin_points:g}."
        )
    rules = Rules(metric.value, alpha, margin_points)
    compared = compare_files(base, adapter, rules, allow or [])
    if output is Format.json:
        typer.echo(encode(compared).decode())
    else:
        print_pair(compared)
    for name in unused(allow or (), compared.allowed):
        say(f"--allow {name}: the protocols do not differ in it.")
