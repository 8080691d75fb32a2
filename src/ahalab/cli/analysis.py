"""`ahalab analyze`, `ablate`, `diagnose`, `report`: from rows to verdicts and report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ahalab.cli.options import RESULTS, Format, FormatOption, OutOption, StudyArgument
from ahalab.plain_files import read_plain

if TYPE_CHECKING:
    from ahalab.store.layout import StudyPaths


AllowOption = Annotated[
    list[str] | None,
    typer.Option(
        "--allow",
        metavar="FIELD",
        help="A protocol field in which answer sets may differ; recorded, may be repeated.",
    ),
]


def analyze(
    study: StudyArgument,
    allow: AllowOption = None,
    csv: Annotated[
        Path | None,
        typer.Option(help="Also write the changed responses there, outside the study."),
    ] = None,
    out: OutOption = RESULTS,
    output: FormatOption = Format.text,
) -> None:
    """Compare paired answers: arms against base and control."""
    from ahalab.analyze.changed_table import require_outside, write_changed_csv
    from ahalab.analyze.compare import analyze as analyze_study
    from ahalab.analyze.protocols import unused
    from ahalab.cli.output import print_verdicts, say
    from ahalab.pipeline.study import open_study
    from ahalab.records.base import encode

    plan, paths = open_study(study, out)
    if csv is not None:
        require_outside(csv, paths)
    comparison, _ = analyze_study(plan, paths, allow or ())
    if csv is not None:
        write_changed_csv(csv, paths)
    for name in unused(allow or (), comparison.allowed or ()):
        say(f"--allow {name}: nothing differs in it, so no exception is recorded.")
    if output is Format.json:
        typer.echo(encode(comparison).decode())
    else:
        print_verdicts(comparison)
    say(f"Wrote {paths.comparison}, {paths.changed.name}, {paths.ablation.name}")
    tell_unsealed(paths)


def ablate(
    study: Annotated[
        list[Path],
        typer.Argument(
            help="Study plans, or results folders; several are ranked together.", metavar="STUDY..."
        ),
    ],
    out: OutOption = RESULTS,
    output: FormatOption = Format.text,
) -> None:
    """Summarise arms x seeds: own reward beside accuracy."""
    from ahalab.analyze.compare import analyze as analyze_study
    from ahalab.analyze.protocols import recorded_exceptions
    from ahalab.analyze.stages import staged
    from ahalab.cli.ablation_table import print_ablation, print_stages
    from ahalab.pipeline.study import open_study
    from ahalab.records.base import encode

    opened = [open_study(one, out) for one in study]
    found = [analyze_study(plan, paths, recorded_exceptions(paths))[1] for plan, paths in opened]
    for _, paths in opened:
        tell_unsealed(paths)
    if len(opened) > 1:
        stages = staged(opened, found)
        typer.echo(encode(stages).decode()) if output is Format.json else print_stages(stages)
    elif output is Format.json:
        typer.echo(encode(found[0]).decode())
    else:
        print_ablation(found[0])


def diagnose(
    run: Annotated[Path, typer.Argument(help="A run folder: <study>/arms/ARM/seed-S.")],
    output: FormatOption = Format.text,
) -> None:
    """Summarise one run: reward, groups, lengths, alarms."""
    from ahalab.cli.output import print_diagnostics
    from ahalab.errors import InputError
    from ahalab.records.base import decode_file, encode
    from ahalab.records.diagnostics import Diagnostics

    path = run / "diagnostics.json"
    if not path.is_file():
        raise InputError(
            f"{path}: expected a finished run's diagnostics, found none. Train it first."
        )
    diagnostics = decode_file(read_plain(path), Diagnostics, str(path))
    if output is Format.json:
        typer.echo(encode(diagnostics).decode())
    else:
        print_diagnostics(diagnostics)


def report(study: StudyArgument, out: OutOption = RESULTS) -> None:
    """Write the report and seal the study with its manifest."""
    from ahalab.analyze.compare import analyze as analyze_study
    from ahalab.analyze.protocols import recorded_exceptions
    from ahalab.pipeline.run import seal_study
    from ahalab.pipeline.study import open_study, read_manifest, refuse_tampered

    plan, paths = open_study(study, out)
    manifest = read_manifest(paths)
    if manifest is not None:
        refuse_tampered(manifest, paths)
    analyze_study(plan, paths, recorded_exceptions(paths))
    seal_study(plan, paths)
    typer.echo(str(paths.report))


def tell_unsealed(paths: StudyPaths) -> None:
    """Say so when the analysis came out otherwise than it was sealed, as with another version."""
    from ahalab.cli.output import say
    from ahalab.pipeline.study import REWRITTEN, read_manifest
    from ahalab.store.manifest import hash_file

    manifest = read_manifest(paths)
    if manifest is None:
        return
    sealed = {e.path: e.sha256 for e in manifest.evidence if e.path.startswith(REWRITTEN)}
    written = [paths.comparison, paths.changed, paths.ablation, paths.claims, paths.replay]
    found = {p.relative_to(paths.root).as_posix(): hash_file(p) for p in written if p.is_file()}
    if found != sealed:
        say(f"The analysis is not the one that was sealed. Seal it: ahalab report {paths.root}")
