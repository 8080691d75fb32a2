"""`ahalab counterfactual`: what other rewards would have paid and taught on saved rollouts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ahalab.cli.options import Format, FormatOption, QuietOption

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ahalab.analyze.candidates import Draft
    from ahalab.analyze.saved_rollouts import FoundRuns
    from ahalab.records.counterfactual import CounterfactualRow


RunsArgument = Annotated[
    list[Path],
    typer.Argument(
        help="Folders of finished runs, <study>/arms/ARM/seed-S; an arm's or a study's folder "
        "means all of its runs.",
        metavar="RUN...",
    ),
]
ArmOption = Annotated[
    list[str] | None,
    typer.Option(
        "--arm",
        help="One more arm: `correct_strict + 0.2 length_cosine`, or module:function; can be "
        "repeated.",
    ),
]


def counterfactual(
    runs: RunsArgument,
    arm: ArmOption = None,
    plan: Annotated[
        Path | None, typer.Option("--plan", help="A plan whose arms are scored too.")
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(min=1, help="Only rollouts of the first so many steps; 1: the base's own."),
    ] = None,
    rows: Annotated[
        Path | None,
        typer.Option("--rows", help="Write every rollout's rewards and advantages, as JSONL."),
    ] = None,
    trust_rewards: Annotated[
        bool, typer.Option("--trust-rewards", help="Run the code of rewards of one's own.")
    ] = False,
    output: FormatOption = Format.text,
    quiet: QuietOption = False,
) -> None:
    """Score saved rollouts with every other arm. No model, no torch, no network.

    What each arm would have paid, whose advantages it would have turned round, how much of them
    lies on wrong answers, and which arms teach alike. Nothing is written into a study.
    """
    from ahalab.analyze.counterfactual import Asked
    from ahalab.analyze.counterfactual import counterfactual as compute
    from ahalab.analyze.saved_rollouts import find_runs
    from ahalab.cli.counterfactual_table import print_counterfactual
    from ahalab.cli.output import say
    from ahalab.pipeline.progress import StageProgress
    from ahalab.records.base import encode

    found = find_runs(runs)
    drafts = _drafts(found, arm or [], plan)
    total = sum(run.rollouts_before(steps) for run in found.runs)
    with (
        _row_writer(rows, found) as on_row,
        StageProgress("counterfactual", total, "rollouts", show=not quiet) as progress,
    ):
        asked = Asked(drafts, trust_rewards, steps, progress.advance, on_row)
        computed = compute(found, asked)
    if rows is not None:
        say(f"Wrote {rows}")
    if output is Format.json:
        typer.echo(encode(computed).decode())
    else:
        print_counterfactual(computed)


def _drafts(found: FoundRuns, texts: Sequence[str], plan: Path | None) -> list[Draft]:
    from ahalab.analyze.candidates import draft_of, drafts_of_plan
    from ahalab.scoring.arms import BUILT_IN_ARMS

    drafts = [] if plan is None else drafts_of_plan(plan)
    known = {*BUILT_IN_ARMS, *(draft.arm.name for draft in drafts)}
    known |= {arm.name for run in found.runs for arm in run.study.plan.arms}
    formulas = [draft_of(text, known) for text in texts]
    return drafts + [draft for draft in formulas if draft is not None]


@contextmanager
def _row_writer(
    path: Path | None, found: FoundRuns
) -> Iterator[Callable[[CounterfactualRow], None] | None]:
    """Yield what writes a row; the file appears whole, and never inside a study."""
    from ahalab.errors import InputError
    from ahalab.records.base import encode

    if path is None:
        yield None
        return
    target = path.resolve()
    if target.is_dir():
        raise InputError(f"--rows {path}: expected a file, found a folder. Name a file in it.")
    for run in found.runs:
        if run.study.paths.root.resolve() in target.parents:
            raise InputError(
                f"--rows {path}: expected a file outside the study {run.study.paths.root.name}, "
                "whose files are evidence, found one inside it. Name another folder."
            )
    partial = target.with_name(target.name + ".partial")
    try:
        file = partial.open("wb")
    except OSError as error:
        raise InputError(
            f"--rows {path}: expected a file that can be written, found: {error.strerror}."
        ) from error
    try:
        with file:

            def write(row: CounterfactualRow) -> None:
                file.write(encode(row) + b"\n")

            yield write
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
