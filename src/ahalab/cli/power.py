"""`ahalab power`: questions, samples and seeds for a wanted effect, before anything is trained."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ahalab.cli.options import Format, FormatOption, require_level

if TYPE_CHECKING:
    from ahalab.analyze.pilot import Pilot
    from ahalab.records.power import PowerTable

QUESTIONS = (200, 500, 1319, 5000)
SEEDS = (1, 2, 3, 5, 10)
SAMPLES = (1,)
MOST = {"--questions": 1_000_000, "--seeds": 1_000, "--samples": 1_000}
Sizes = list[int] | None
Percent = float | None


def power(
    study: Annotated[
        Path | None, typer.Argument(help="Folder of a study with answers: the pilot.")
    ] = None,
    effect: Annotated[float, typer.Option(help="Change in accuracy to be found, points.")] = 4.0,
    questions: Annotated[Sizes, typer.Option(help="Questions; may be repeated.")] = None,
    seeds: Annotated[Sizes, typer.Option(help="Training seeds; may be repeated.")] = None,
    samples: Annotated[Sizes, typer.Option(help="Answers a question; may be repeated.")] = None,
    base_accuracy: Annotated[Percent, typer.Option(help="Accuracy of the base, percent.")] = None,
    discordance: Annotated[
        Percent, typer.Option(help="Questions whose outcome changes, percent.")
    ] = None,
    seed_sd: Annotated[
        Percent, typer.Option(help="Standard deviation of accuracy over seeds, points.")
    ] = None,
    sampling_share: Annotated[
        Percent, typer.Option(help="How much of the change is sampling noise, percent.")
    ] = None,
    arm: Annotated[str | None, typer.Option(help="Arm of the pilot (default: treatments).")] = None,
    alpha: Annotated[float, typer.Option(help="Two-sided level.")] = 0.05,
    target: Annotated[float, typer.Option("--power", help="Chance wanted of finding it.")] = 0.8,
    out: Annotated[Path | None, typer.Option(help="Draw a picture into this file (SVG).")] = None,
    output: FormatOption = Format.text,
) -> None:
    """Plan questions, samples and seeds for a wanted effect.

    Noise is measured in a pilot's answers, or given: --discordance and --seed-sd stand over what
    the pilot shows.
    """
    from ahalab.analyze.planning import Given, Wanted, plan_power
    from ahalab.cli.power_screen import print_power
    from ahalab.errors import InputError
    from ahalab.records.base import encode

    if effect == 0.0:
        raise InputError("--effect: expected a change to be found, found 0 points.")
    wanted = Wanted(
        effect=_percent("--effect", effect, least=-100.0) or 0.0,
        power=_between("--power", target),
        alpha=require_level(alpha),
        questions=_sizes("--questions", questions, QUESTIONS, least=2),
        seeds=_sizes("--seeds", seeds, SEEDS),
        samples=_sizes("--samples", samples, SAMPLES),
    )
    given = Given(
        base_accuracy=_percent("--base-accuracy", base_accuracy),
        discordance=_percent("--discordance", discordance),
        seed_sd=_percent("--seed-sd", seed_sd),
        sampling_share=_percent("--sampling-share", sampling_share),
    )
    _check_picture(out)
    pilot = _pilot(study, arm)
    table = plan_power(wanted, given, pilot, "given" if study is None else str(study))
    if output is Format.json:
        typer.echo(encode(table).decode())
    else:
        print_power(table)
    if out is not None:
        _draw(table, out)


def _draw(table: PowerTable, out: Path) -> None:
    from ahalab.cli.output import say
    from ahalab.report.power_picture import draw_power
    from ahalab.store.durable import replace_file

    replace_file(out, draw_power(table))
    say(f"Wrote {out}")


def _pilot(study: Path | None, arm: str | None) -> Pilot | None:
    from ahalab.analyze.answers import load_study_answers
    from ahalab.analyze.pilot import measure_pilot
    from ahalab.analyze.protocols import recorded_exceptions
    from ahalab.errors import InputError
    from ahalab.pipeline.study import open_study

    if study is None:
        if arm is not None:
            raise InputError(f"--arm {arm}: expected a pilot that has the arm, found no STUDY.")
        return None
    if not study.is_dir():
        raise InputError(f"{study}: expected a study's folder, found none. Run one: ahalab run")
    plan, paths = open_study(study, study)
    answers = load_study_answers(plan, paths, recorded_exceptions(paths))
    return measure_pilot(answers, plan.analysis.primary, arm)


def _percent(name: str, value: float | None, least: float = 0.0) -> float | None:
    """Return a percentage as a fraction."""
    from ahalab.errors import InputError

    if value is not None and not least <= value <= 100.0:  # nor NaN
        raise InputError(f"{name}: expected a number from {least:g} to 100, found {value:g}.")
    return None if value is None else value / 100


def _between(name: str, value: float) -> float:
    from ahalab.errors import InputError

    if not 0.0 < value < 1.0:
        raise InputError(f"{name}: expected a number between 0 and 1, found {value:g}.")
    return value


def _sizes(
    name: str, asked: Sequence[int] | None, default: tuple[int, ...], least: int = 1
) -> tuple[int, ...]:
    """Return the sizes that were asked for, each once, in order."""
    from ahalab.errors import InputError

    for value in asked or ():
        if not least <= value <= MOST[name]:
            raise InputError(f"{name}: expected {least} to {MOST[name]:,}, found {value}.")
    return tuple(sorted(set(asked))) if asked else default


def _check_picture(out: Path | None) -> None:
    """Refuse a picture's path before anything is computed."""
    from ahalab.errors import InputError

    if out is None:
        return
    if out.suffix.lower() != ".svg":
        raise InputError(f"--out {out}: expected a file name that ends in .svg.")
    if not out.parent.is_dir() or out.is_dir():
        raise InputError(f"--out {out}: expected a file in a folder that is there, found none.")
