"""How a rescoring is told: per answer set, per answer, per verdict, and what to do next."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from ahalab.cli.output import harmless, points, results_console, results_table
from ahalab.records.rescoring import Regraded, RescoredSide, RescoredVerdict, Rescoring
from ahalab.store.layout import StudyPaths

LISTED = 20  # answers that are told in text; JSON holds all
SHOWN = 40  # characters of an extracted answer


def print_rescoring(told: Rescoring) -> None:
    """Print what the installed scorer says otherwise: sets, answers, verdicts."""
    versions = sorted({side.scorer_version for side in told.sides})
    typer.echo(
        f"Scorer installed: version {told.scorer_version}. The answers were scored by version "
        f"{' and '.join(versions)}."
    )
    if told.unlike:
        typer.echo("\nRecorded under the installed version, and not what it says:")
        _print_answers(told.unlike)
    if told.changed:
        _print_sides(told.sides)
        typer.echo("\nAnswers that it judges otherwise:")
        _print_answers(told.changed)
        _print_verdicts(told.verdicts)
    elif not told.unlike:
        typer.echo("It says the same of every answer.")
    if told.by_clock:
        typer.echo(f"\nOf {told.by_clock} answers the clock decided, which need not repeat.")


def _print_sides(sides: Sequence[RescoredSide]) -> None:
    rows = results_table(("answers", "what changed"), ("n", "strict", "lenient", "changed"))
    for side in sides:
        kinds = ", ".join(f"{count} {kind}" for kind, count in side.kinds.items())
        rows.add_row(
            side.answers,
            kinds or "nothing",
            str(side.n),
            _share(side.strict_correct_before, side.strict_correct, side.n),
            _share(side.lenient_correct_before, side.lenient_correct, side.n),
            str(sum(side.kinds.values())),
        )
    typer.echo("")
    results_console().print(rows)


def _share(before: int, after: int, n: int) -> str:
    was, now = (f"{100 * count / n:.1f}" for count in (before, after))
    return f"{now} %" if before == after else f"{was} to {now} %"


def _print_answers(rows: Sequence[Regraded]) -> None:
    """Print the first answers, those whose outcome changes before those whose extraction does."""
    ordered = sorted(rows, key=_same_outcomes)
    for row in ordered[:LISTED]:
        typer.echo(f"  {harmless(_told(row))}")
    if len(ordered) > LISTED:
        typer.echo(f"  and {len(ordered) - LISTED} more (--format json lists all)")


def _same_outcomes(row: Regraded) -> bool:
    return (row.before.strict, row.before.lenient) == (row.after.strict, row.after.lenient)


def _told(row: Regraded) -> str:
    parts = [
        f"{field} {_short(was)} -> {_short(now)}"
        for field in ("strict", "lenient", "extracted", "rule", "status")
        if (was := getattr(row.before, field)) != (now := getattr(row.after, field))
    ]
    sample = f" sample {row.sample}" if row.sample else ""
    return f"{row.answers}.jsonl:{row.line} {row.prompt_id}{sample}: {', '.join(parts)}"


def _short(value: str | None) -> str:
    if value is None:
        return "nothing"
    text = value.replace("\n", " ")
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def _print_verdicts(verdicts: Sequence[RescoredVerdict]) -> None:
    typer.echo("\nVerdicts:")
    for one in verdicts:
        change = points(one.difference_points)
        if one.difference_points_before not in (None, one.difference_points):
            change = f"{points(one.difference_points_before)} -> {change}"
        verdict = one.verdict
        word: str = verdict
        if one.verdict_before not in (None, verdict):
            word = f"{one.verdict_before} -> {verdict}"
        metric = one.metric if one.primary else f"({one.metric})"
        typer.echo(f"  {one.arm} against {one.against}, {metric}: {word}, {change} points")


def unlike_message(told: Rescoring, paths: StudyPaths) -> str:
    """Return the one line that refuses a study whose outcomes no scorer gave."""
    first = told.unlike[0]
    return (
        f"{paths.root}/{first.answers}.jsonl:{first.line}: expected what scorer version "
        f"{told.scorer_version} says of it, as recorded, found something else, in "
        f"{len(told.unlike)} of the answers. They were edited, or are another scorer's under this "
        "version: restore them, or generate them again. Nothing was written."
    )


def next_step(told: Rescoring, paths: StudyPaths, *, write: bool) -> str:
    """Return what was done, and what comes next."""
    root, version = paths.root, told.scorer_version
    if not write and not told.written:
        return (
            "Nothing was written. Let the study stand under the installed scorer, old outcomes "
            f"kept: ahalab rescore {root} --write"
        )
    older = sorted({s.scorer_version for s in told.sides} - {version})
    if not older:
        done = f"Nothing to do: the answers stand under scorer version {version}."
        return done if paths.manifest.is_file() else f"{done} Seal the study: ahalab report {root}"
    kept = ", ".join(f"{paths.rescored.name}/scorer-{old}" for old in older)
    wrote = f"The answers stand under scorer version {version}; the old ones: {kept}."
    if not paths.manifest.is_file():
        return f"{wrote} The study is not complete. Go on: ahalab run {root}"
    return f"{wrote} Analysed and sealed again. Check it: ahalab verify {root}"
