"""`ahalab card`: an adapter's README.md in the Hub's format, ready to be uploaded."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ahalab.cli.options import RESULTS, OutOption, StudyArgument


def card(
    study: StudyArgument,
    arm: Annotated[str, typer.Option(help="Arm of the adapter.")],
    seed: Annotated[int, typer.Option(help="Seed of the adapter.")],
    to: Annotated[
        Path | None,
        typer.Option(
            "--to", help="Copy the adapter with its card to a new folder; the study stays as it is."
        ),
    ] = None,
    out: OutOption = RESULTS,
) -> None:
    """Write an adapter's model card, for the Hugging Face Hub."""
    from ahalab.cli.output import say
    from ahalab.pipeline.cards import make_card
    from ahalab.pipeline.study import open_study

    plan, paths = open_study(study, out)
    written = make_card(plan, paths, arm, seed, to)
    typer.echo(str(written.folder / "README.md"))
    if written.no_entry is not None:
        say(f"No .eval_results entry: {written.no_entry}.")
    say(f"Upload: hf upload OWNER/NAME {written.folder}")
