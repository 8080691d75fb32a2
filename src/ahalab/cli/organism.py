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
    seed: Annotated[
        int | None, typer.Option(help="Seed of the recipe (default: the packaged model's).")
    ] = None,
) -> None:
    """Train the embedded model again, by its seeded recipe."""
    from ahalab.pipeline.progress import StageProgress
    from ahalab.store.versions import require_train_extra

    require_train_extra()
    from ahalab.organism.recipe import DEFAULT_SEED, Progress, Recipe
    from ahalab.organism.recipe import build as build_organism

    with StageProgress("organism", Recipe().steps, "steps") as bar:

        def on_step(progress: Progress) -> None:
            bar.update(progress.step)

        build_organism(out, DEFAULT_SEED if seed is None else seed, on_step)
    typer.echo(str(out))
