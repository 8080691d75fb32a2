"""`ahalab preflight`: what would make a study worthless, found in seconds before its first step."""

from __future__ import annotations

import typer

from ahalab.cli.options import (
    RESULTS,
    Format,
    FormatOption,
    JobsOption,
    OutOption,
    StudyArgument,
    cores,
)


def preflight(
    study: StudyArgument,
    out: OutOption = RESULTS,
    jobs: JobsOption = None,
    output: FormatOption = Format.text,
) -> None:
    """Check before training; exit 1 when a run is worthless.

    `ahalab run` and `ahalab train` do the same before the first step. Nothing is written into the
    results: a plan that is refused can be mended.
    """
    from ahalab.cli.output import print_preflight, say
    from ahalab.pipeline.clearance import keep, record_path
    from ahalab.pipeline.inputs import check_inputs
    from ahalab.pipeline.preflight import Setting, preflight
    from ahalab.pipeline.study import open_study
    from ahalab.records.base import encode
    from ahalab.store.versions import require_train_extra
    from ahalab.tasks.rewards import reward_folders

    plan, paths = open_study(study, out)
    check_inputs(plan, paths)
    require_train_extra()
    processes = min(jobs or cores(), len(plan.arms) * len(plan.seeds))
    found = preflight(plan, paths, Setting(processes, reward_folders(study)))
    keep(found, paths)
    if output is Format.json:
        typer.echo(encode(found).decode())
    else:
        print_preflight(found)
    say(f"Wrote {record_path(paths)}")
    if found.refused:
        raise typer.Exit(1)
