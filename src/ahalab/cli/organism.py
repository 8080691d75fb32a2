"""`ahalab organism build`: train the embedded model again from its recipe."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _root() -> None:
    pass


@app.command()
def build(
    out: Annotated[Path, typer.Argument(help="Folder to write the model to.")],
    seed: Annotated[int, typer.Option(help="Seed of the recipe.")] = 0,
) -> None:
    """Train the embedded model from random weights by its seeded recipe."""
    from ahalab.errors import InputError
    from ahalab.pipeline.progress import StageProgress
    from ahalab.store.versions import require_train_extra

    require_train_extra()
    from ahalab.organism.recipe import Progress, Recipe
    from ahalab.organism.recipe import build as build_organism

    with StageProgress("organism", Recipe().steps, "steps") as bar:

        def on_step(progress: Progress) -> None:
            bar.update(progress.step)

        try:
            build_organism(out, seed, on_step)
        except ValueError as error:
            raise InputError(str(error)) from error
    typer.echo(str(out))
