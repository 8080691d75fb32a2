"""How results are printed: results on stdout, messages on stderr, model text made harmless."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ahalab.records.comparison import Ablation, ArmComparison, Comparison
from ahalab.records.diagnostics import Diagnostics

if TYPE_CHECKING:
    from ahalab.verify.checks import Check, Verification


def say(message: str) -> None:
    """Print a message on stderr."""
    typer.echo(message, err=True)


def harmless(text: str) -> str:
    """Return a text whose control and direction characters are shown escaped, not obeyed."""
    shown = []
    for character in text:
        code = ord(character)
        if character == "\n":
            shown.append(character)
        elif code < 32:
            shown.append("^" + chr(code + 64))
        elif code == 127 or unicodedata.category(character) in {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"}:
            shown.append(f"\\u{code:04x}" if code > 255 else f"\\x{code:02x}")
        else:
            shown.append(character)
    return "".join(shown)


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number == 0 else "right", no_wrap=number > 0)
    return table


def points(value: float | None) -> str:
    """Return points with a sign, or a dash."""
    return "-" if value is None else f"{value:+.1f}"


def print_verdicts(comparison: Comparison) -> None:
    """Print the verdict of each arm: sentences first, then the table."""
    console = Console()
    if comparison.missing:
        console.print(Text(f"Missing from the plan's grid: {', '.join(comparison.missing)}.\n"))
    for arm in comparison.arms:
        if arm.primary:
            console.print(Text(arm.sentence))
            console.print()
    if comparison.floor is not None:
        console.print(Text(comparison.floor.sentence))
        console.print()
    table = _table("arm", "against", "metric", "accuracy", "change", "95 % interval", "p (Holm)")
    table.columns[5].header = f"{100 * comparison.confidence:.0f} % interval"
    for arm in comparison.arms:
        table.add_row(*_verdict_row(arm))
    console.print(table)


def _verdict_row(arm: ArmComparison) -> tuple[str, ...]:
    bounds = arm.interval_points
    between = "one seed" if bounds is None else f"{points(bounds[0])} to {points(bounds[1])}"
    p_value = "-" if arm.p_holm is None else "<.001" if arm.p_holm < 0.001 else f"{arm.p_holm:.3f}"
    metric = arm.metric if arm.primary else f"({arm.metric})"
    accuracy = f"{100 * arm.accuracy:.1f} %"
    change = points(arm.difference_points)
    return arm.arm, arm.against, metric, accuracy, change, between, p_value


def print_ablation(ablation: Ablation) -> None:
    """Print arms x seeds: own reward beside accuracy."""

    def number(value: float | None) -> str:
        return "-" if value is None else f"{value:.2f}"

    table = _table("arm", "seed", "reward", "own score", "strict", "lenient", "alarms")
    for cell in ablation.cells:
        table.add_row(
            cell.arm,
            str(cell.seed),
            f"{number(cell.reward_first)} > {number(cell.reward_last)}",
            f"{number(cell.own_score_base)} > {number(cell.own_score_adapter)}",
            points(cell.strict_difference_points),
            points(cell.lenient_difference_points),
            ", ".join(cell.alarms) or "-",
        )
    Console().print(table)


def print_diagnostics(diagnostics: Diagnostics) -> None:
    """Print the summary of one run: trends, shares, alarms."""
    console = Console()
    console.print(
        Text(
            f"{diagnostics.arm}, seed {diagnostics.seed}: {diagnostics.steps} steps, "
            f"{diagnostics.rollouts} rollouts\n"
        )
    )

    def number(value: float | None) -> str:
        return "-" if value is None else f"{value:.3f}"

    table = _table("", "first fifth", "last fifth")
    names = ("reward", "strict", "lenient", "historical", "truncated", "length_tokens", "entropy")
    trends = {name: getattr(diagnostics, name) for name in names}
    trends |= {f"component {name}": trend for name, trend in diagnostics.components.items()}
    for name, trend in trends.items():
        table.add_row(name.replace("_", " "), number(trend.first), number(trend.last))
    console.print(table)
    shares = _table("whole run", "")
    for label, value in (
        ("groups without a difference in reward", diagnostics.zero_variance_fraction),
        ("positive advantage on wrong answers", diagnostics.wrong_advantage_fraction),
        ("training parser correct, scorer not", diagnostics.paid_though_wrong_fraction),
        ("scorer correct, training parser not", diagnostics.unpaid_though_right_fraction),
        ("rollouts with a reflection marker", diagnostics.reflection_fraction),
        ("norm of the adapter's effect", diagnostics.adapter_effect_norm),
    ):
        shares.add_row(label, number(value))
    console.print()
    console.print(shares)
    for alarm in diagnostics.alarms:
        console.print(Text(f"\nalarm {alarm.name}: {alarm.evidence}. Try: {alarm.remedy}."))


def print_score(scored: dict[str, Any]) -> None:
    """Print one scored response: outcomes, rule, and the span within its surroundings."""
    name = "" if scored["id"] is None else f"{scored['id']}: "
    typer.echo(f"{name}strict {scored['strict']}, lenient {scored['lenient']} ({scored['status']})")
    if scored["span"] is None:
        typer.echo(f"  rule {scored['rule']}: no answer taken")
        return
    start, end = scored["span"]
    response: str = scored["response"]
    before, after = response[max(0, start - 30) : start], response[end : end + 20]
    marked = f"{before}[{response[start:end]}]{after}".replace("\n", " ")
    typer.echo(f"  rule {scored['rule']}, characters {start} to {end}: {harmless(marked)}")


STATUS_WIDTH = 12


def print_check(check: Check) -> None:
    """Print one line of a verification, and its failures below it."""
    line = f"{check.status:<{STATUS_WIDTH}} {check.name:<16} {check.count:>7}  {check.note}"
    typer.echo(harmless(line.rstrip()))
    for failure in check.failures:
        place = f"{failure.file}:{failure.line}" if failure.line else failure.file
        typer.echo(harmless(f"    {place}: expected {failure.expected}, found {failure.found}"))


def print_verification(verification: Verification) -> None:
    """Print the result of a verification."""
    failed = sum(check.status == "failed" for check in verification.checks)
    passed = sum(check.status == "passed" for check in verification.checks)
    unchecked = sum(check.status == "not checked" for check in verification.checks)
    typer.echo(
        f"{verification.result}: {passed} checks passed, {failed} failed, {unchecked} not checked"
    )
