"""`ahalab rescore`: saved answers under the installed scorer."""

from __future__ import annotations

from typing import Annotated

import typer

from ahalab.cli.options import RESULTS, Format, FormatOption, OutOption, QuietOption, StudyArgument


def rescore(
    study: StudyArgument,
    write: Annotated[
        bool,
        typer.Option("--write", help="Let the study stand under it; the old outcomes are kept."),
    ] = False,
    out: OutOption = RESULTS,
    output: FormatOption = Format.text,
    quiet: QuietOption = False,
) -> None:
    """Score saved answers again with the installed scorer."""
    from ahalab.cli.output import say
    from ahalab.cli.rescored_text import next_step, print_rescoring, unlike_message
    from ahalab.errors import CheckFailedError
    from ahalab.evaluate.rescore import saved_targets
    from ahalab.pipeline.progress import StageProgress
    from ahalab.pipeline.rescore import rescore_study
    from ahalab.pipeline.study import open_study
    from ahalab.records.base import encode
    from ahalab.store.journal import read_journal
    from ahalab.store.reading import journal_path

    plan, paths = open_study(study, out)
    saved = [target for _, _, target in saved_targets(plan, paths)]
    total = sum(read_journal(journal_path(target.answers)).rows for target in saved)
    with StageProgress("rescore", total, "answers", show=not quiet) as progress:
        told = rescore_study(plan, paths, write=write, on_rows=progress.advance)
    if output is Format.json:
        typer.echo(encode(told).decode())
    else:
        print_rescoring(told)
    if told.unlike:
        raise CheckFailedError(unlike_message(told, paths))
    say(next_step(told, paths, write=write))
