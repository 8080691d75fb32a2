"""`ahalab init`, `plan` and `freeze`: a plan to start from, what it will run, what pins it."""

from __future__ import annotations

from enum import StrEnum
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from ahalab.cli.options import RESULTS, Format, FormatOption, OutOption, StudyArgument


class Preset(StrEnum):
    """Plans to start from."""

    organism = "organism"
    gsm8k = "gsm8k"


def init(
    path: Annotated[Path, typer.Argument(help="The plan to write.")] = Path("study.yaml"),
    preset: Annotated[
        Preset, typer.Option(help="organism: the embedded model; gsm8k: a Hugging Face model.")
    ] = Preset.organism,
) -> None:
    """Write a commented study plan to start from."""
    from ahalab.cli.output import say
    from ahalab.errors import InputError
    from ahalab.store.durable import replace_file

    if path.exists():
        raise InputError(f"{path}: expected no file there, found one. Name another, or remove it.")
    replace_file(path, files("ahalab.plan").joinpath(f"presets/{preset}.yaml").read_bytes())
    say(f"Wrote {path}. Look at it, then: ahalab plan {path}")


def plan(
    study: StudyArgument, out: OutOption = RESULTS, output: FormatOption = Format.text
) -> None:
    """Check a plan, model and questions; print what will run."""
    import json

    from ahalab.cli.output import harmless, say
    from ahalab.pipeline.inputs import check_inputs
    from ahalab.pipeline.study import open_study
    from ahalab.plan.describe import describe
    from ahalab.records.base import digest, to_plain

    resolved, paths = open_study(study, out)
    for unchecked in check_inputs(resolved, paths):
        say(f"Not checked: {unchecked}.")
    if output is Format.json:
        typer.echo(json.dumps({"digest": digest(resolved), "plan": to_plain(resolved)}))
    else:
        typer.echo(harmless(describe(resolved, paths.root)))


def freeze(
    study: StudyArgument, out: OutOption = RESULTS, output: FormatOption = Format.text
) -> None:
    """Print the digests to publish before the first step.

    Writes nothing. The plan's digest depends on the plan and on the code of its own rewards alone,
    not on this machine: it is what `ahalab run` freezes, and what `ahalab verify --plan` compares.
    """
    import json

    from ahalab.cli.output import harmless, say
    from ahalab.pipeline.study import open_study
    from ahalab.records.base import digest

    resolved, paths = open_study(study, out)
    pinned = digest(resolved)
    if output is Format.json:
        digests = {"study": resolved.name, "plan_digest": pinned, "rewards": resolved.rewards}
        typer.echo(json.dumps(digests))
        return
    lines = [f"study   {resolved.name}", f"plan    {pinned}"]
    lines += [f"reward  {code} {name}" for name, code in resolved.rewards.items()]
    typer.echo(harmless("\n".join(lines)))
    say(
        "Publish these where a date stands beside them, before the first step. Then: "
        f"ahalab verify {paths.root} --plan {pinned}"
    )
