"""`ahalab reflect`: what reflection markers go with, and with a model, what they cause."""

from __future__ import annotations

from typing import Annotated

import typer

from ahalab.cli.options import (
    RESULTS,
    Format,
    FormatOption,
    OutOption,
    QuietOption,
    StudyArgument,
)


def reflect(
    study: StudyArgument,
    causal: Annotated[
        bool,
        typer.Option(
            "--causal",
            help="Cut each answer before its marker and let it finish without reflecting; needs "
            "the model, resumes where it stopped.",
        ),
    ] = False,
    cell: Annotated[
        list[str] | None,
        typer.Option(
            "--cell", help="With --causal: base or arms/ARM/seed-S; may be repeated (default: all)."
        ),
    ] = None,
    out: OutOption = RESULTS,
    output: FormatOption = Format.text,
    quiet: QuietOption = False,
) -> None:
    """Tell what "wait" goes with, and what it causes.

    Marker rates over training and of every side, and accuracy with and without a marker: from
    saved rows, without a model, and nothing is written. With --causal also whether reflecting
    makes answers right; that is kept in the study, as evidence.
    """
    from ahalab.analyze.reflection import reflect as compute
    from ahalab.cli.output import say
    from ahalab.cli.reflection_table import print_reflection
    from ahalab.errors import InputError
    from ahalab.evaluate.backends.choice import require_backend
    from ahalab.pipeline.reflection import check_causes
    from ahalab.pipeline.study import open_study, sealed_without
    from ahalab.records.base import encode

    if cell and not causal:
        raise InputError("--cell: expected --causal beside it; every side is told without it.")
    plan, paths = open_study(study, out)
    if causal:
        require_backend(plan)
        found = check_causes(plan, paths, cell or (), quiet=quiet)
    else:
        found = compute(plan, paths)
    if output is Format.json:
        typer.echo(encode(found).decode())
    else:
        print_reflection(found)
    if causal:
        say(f"Wrote {paths.reflection}")
        if sealed_without(paths, paths.reflection):
            say(f"The study is sealed without this. Seal it again: ahalab report {paths.root}")
