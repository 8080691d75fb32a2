"""`ahalab analyze`, `ablate`, `diagnose`, `report`: from rows to verdicts and report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ahalab.cli.options import RESULTS, Format, FormatOption, OutOption, StudyArgument

if TYPE_CHECKING:
    from ahalab.store.layout import StudyPaths


def analyze(
    study: StudyArgument, out: OutOption = RESULTS, output: FormatOption = Format.text
) -> None:
    """Compare paired answers: arms against base and control."""
    from ahalab.analyze.compare import analyze as analyze_study
    from ahalab.cli.output import print_verdicts, say
    from ahalab.pipeline.study import open_study
    from ahalab.records.base import encode

    plan, paths = open_study(study, out)
    comparison, _ = analyze_study(plan, paths)
    if output is Format.json:
        typer.echo(encode(comparison).decode())
    else:
        print_verdicts(comparison)
    say(f"Wrote {paths.comparison}, {paths.changed.name}, {paths.ablation.name}")
    _tell_unsealed(paths)


def ablate(
    study: StudyArgument, out: OutOption = RESULTS, output: FormatOption = Format.text
) -> None:
    """Summarise arms x seeds: own reward beside accuracy."""
    from ahalab.analyze.compare import analyze as analyze_study
    from ahalab.cli.ablation_table import print_ablation
    from ahalab.pipeline.study import open_study
    from ahalab.records.base import encode

    plan, paths = open_study(study, out)
    _, ablation = analyze_study(plan, paths)
    if output is Format.json:
        typer.echo(encode(ablation).decode())
    else:
        print_ablation(ablation)
    _tell_unsealed(paths)


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
    diagnostics = decode_file(path.read_bytes(), Diagnostics, str(path))
    if output is Format.json:
        typer.echo(encode(diagnostics).decode())
    else:
        print_diagnostics(diagnostics)


def report(study: StudyArgument, out: OutOption = RESULTS) -> None:
    """Write the report and seal the study with its manifest."""
    from ahalab.analyze.compare import analyze as analyze_study
    from ahalab.pipeline.run import seal_study
    from ahalab.pipeline.study import open_study, read_manifest, refuse_tampered

    plan, paths = open_study(study, out)
    manifest = read_manifest(paths)
    if manifest is not None:
        refuse_tampered(manifest, paths)
    analyze_study(plan, paths)
    seal_study(plan, paths)
    typer.echo(str(paths.report))


def _tell_unsealed(paths: StudyPaths) -> None:
    """Say so when the analysis came out otherwise than it was sealed, as with another version."""
    from ahalab.cli.output import say
    from ahalab.pipeline.study import REWRITTEN, read_manifest
    from ahalab.store.manifest import hash_file

    manifest = read_manifest(paths)
    sealed = [e for e in manifest.evidence if e.path.startswith(REWRITTEN)] if manifest else []
    found = [(paths.root / entry.path, entry.sha256) for entry in sealed]
    if any(not path.is_file() or hash_file(path) != sha256 for path, sha256 in found):
        say(f"The analysis is not the one that was sealed. Seal it: ahalab report {paths.root}")
