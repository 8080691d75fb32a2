"""How a verification, and the story of one claim, are printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from ahalab.cli.output import harmless

if TYPE_CHECKING:
    from ahalab.verify.checks import Check, Verification
    from ahalab.verify.story import Story

STATUS_WIDTH = 12
LABEL_WIDTH = 12


def print_check(check: Check) -> None:
    """Print one line of a verification, and its failures below it."""
    line = f"{check.status:<{STATUS_WIDTH}} {check.name:<16} {check.count:>7}  {check.note}"
    typer.echo(harmless(line.rstrip()))
    for failure in check.failures:
        place = f"{failure.file}:{failure.line}" if failure.line else failure.file
        typer.echo(harmless(f"    {place}: expected {failure.expected}, found {failure.found}"))
    if check.failed > len(check.failures):
        typer.echo(f"    and {check.failed - len(check.failures)} more")


def summary_line(verification: Verification) -> str:
    """Return the result of a verification in one line."""
    counts = {
        status: sum(check.status == status for check in verification.checks)
        for status in ("passed", "failed", "incomplete", "not checked")
    }
    told = [f"{counts['passed']} checks passed", f"{counts['failed']} failed"]
    told += [f"{counts['incomplete']} incomplete"] if counts["incomplete"] else []
    return f"{verification.result}: {', '.join(told)}, {counts['not checked']} not checked"


def print_verification(verification: Verification) -> None:
    """Print the result of a verification."""
    typer.echo(summary_line(verification))


def print_story(story: Story) -> None:
    """Print how one claim comes about: value, files and rows, method, and the value again."""
    claim = story.claim

    def line(label: str, text: str) -> None:
        typer.echo(harmless(f"{label:<{LABEL_WIDTH}}{text}").rstrip())

    line("claim", claim.id)
    line("value", _with_unit(claim.value, claim.unit))
    line("method", claim.method)
    for at, one in enumerate(story.inputs):
        rows = "1 record" if one.rows is None else f"{one.rows:,} rows"
        line("" if at else "inputs", f"{one.file}: {rows if one.there else 'not there'}")
    if story.told:
        word = "equal" if story.equal else "NOT EQUAL"
        line("recomputed", f"{_with_unit(story.recomputed, claim.unit)}: {word}")
    elif claim.unit == "text":
        line("recomputed", f"figures and verdict of the sentence: {_sentences(story)}")
    else:
        line("recomputed", "no: its files are not whole, or could not be read")
    line("study", summary_line(story.verification))
    failed = [check.name for check in story.verification.checks if check.status == "failed"]
    if failed:
        line("", f"failed: {', '.join(failed)}; without --claim every failure is told")


def _with_unit(value: object, unit: str) -> str:
    if value is None:
        return "undefined"
    return f"{value}" if unit in ("text", "verdict") else f"{value} {unit}"


def _sentences(story: Story) -> str:
    checks = {check.name: check.status for check in story.verification.checks}
    return checks["stat.sentence"]
