"""How results are printed: results on stdout, messages on stderr, model text made harmless."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer
from msgspec import UNSET
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ahalab.analyze.sentences import SAME_ANSWERS, probability
from ahalab.analyze.sentences import points as signed
from ahalab.records.comparison import (
    AllowedDifference,
    ArmComparison,
    Comparison,
    ReadingRates,
)
from ahalab.records.diagnostics import Diagnostics
from ahalab.records.preflight import Preflight
from ahalab.statistics.diagnostics import TRENDS
from ahalab.visible import plain

if TYPE_CHECKING:
    from ahalab.evaluate.partial import PartialCount
    from ahalab.store.layout import StudyPaths


PIPE_WIDTH = 1000  # into a pipe nothing is wrapped or cut
LONGEST_ERROR = 2_000  # characters of an error on stderr


def say(message: str) -> None:
    """Print a message on stderr; it may quote what others wrote."""
    typer.echo(harmless(message), err=True)


def harmless(text: str) -> str:
    """Return a text whose control and direction characters are shown escaped, not obeyed."""
    return plain(text, keep="\n")


def one_line(error: Exception) -> str:
    """Return what an error says as one line that any screen can show.

    A message may quote what others wrote: their line breaks become spaces, and of a number with
    thousands of digits the middle goes; the place stands at the beginning, the remedy at the end.
    """
    told = harmless(str(error)).replace("\n", " ")
    half = LONGEST_ERROR // 2
    return told if len(told) <= LONGEST_ERROR else f"{told[:half]} [...] {told[-half:]}"


def results_console() -> Console:
    """Return the console that results go to; into a pipe nothing is wrapped.

    Markup is off: a name in a table may be another's.
    """
    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = PIPE_WIDTH
    return console


def results_table(text: tuple[str, ...], numbers: tuple[str, ...]) -> Table:
    """Return a table: columns of text, left; then columns of numbers, right."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in text:
        table.add_column(column, overflow="fold")
    for column in numbers:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def points(value: float | None) -> str:
    """Return points as sentences have them, or a dash."""
    return "-" if value is None else signed(value)


def exception_lines(allowed: Sequence[AllowedDifference]) -> list[str]:
    """Return one line per field in which the protocols were allowed to differ, and for whom."""
    lines = []
    for field in sorted({one.field for one in allowed}):
        here = [one for one in allowed if one.field == field]
        names = ", ".join(one.answers.removesuffix("/answers") for one in here)
        found = " or ".join(sorted({one.found for one in here}))
        told = f"EXCEPTION, {field}: {here[0].base} for the base, {found} for {names}."
        lines.append(harmless(told))
    return lines


def plan_lines(comparison: Comparison) -> list[str]:
    """Return what a reader must know first: where the study is less, or more, than its plan."""
    lines = []
    if comparison.missing:
        lines.append(f"Missing from the plan's grid: {', '.join(comparison.missing)}.")
    if comparison.unplanned:
        lines.append(
            f"Looked at beyond the plan: {', '.join(comparison.unplanned)}. The verdicts below are "
            "of the planned adapters alone; a choice among more finds something by chance more "
            "often than a p-value says."
        )
    return [harmless(line) for line in lines]


def short_probability(value: float) -> str:
    """Return a p-value as a column of p-values has it: `.041`, `<.001`."""
    return probability(value).removeprefix("p ").removeprefix("= ").replace("< ", "<")


def print_verdicts(comparison: Comparison) -> None:
    """Print the verdict of each arm: sentences first, then the table."""
    console = results_console()
    for line in [*plan_lines(comparison), *exception_lines(comparison.allowed or ())]:
        console.print(Text(f"{line}\n"))
    for arm in comparison.arms:
        if arm.primary:
            console.print(Text(arm.sentence))
            console.print()
    for adapter in comparison.adapters:
        if adapter.same_answers is True and adapter.metric == comparison.primary:
            told = f"This adapter ({adapter.arm}, seed {adapter.seed}): {SAME_ANSWERS}"
            console.print(Text(f"{told}\n"))
    if comparison.floor is not None:
        console.print(Text(comparison.floor.sentence))
        console.print()
    else:
        console.print(Text("No noise floor: the base was not generated again yet.\n"))
    if cut := cut_warning(comparison.rates):
        console.print(Text(f"{cut}\n"))
    interval = f"{100 * comparison.confidence:.4g} % interval"
    table = results_table(
        ("arm", "against", "metric"), ("accuracy", "change", interval, "p (Holm)")
    )
    for arm in comparison.arms:
        table.add_row(*_verdict_row(arm))
    console.print(table)
    if any(not arm.primary for arm in comparison.arms):
        console.print(Text("\nIn brackets: exploratory, not what the plan decides by."))
    _print_pass_at(console, comparison.rates)


def _print_pass_at(console: Console, rates: Sequence[ReadingRates]) -> None:
    """Print pass@k of every answer set, where questions have several answers."""
    told = [(rate, rate.pass_at) for rate in rates if rate.pass_at is not UNSET]
    if not told:
        return
    table = results_table(("pass@k, %", "metric"), tuple(str(point.k) for point in told[0][1]))
    for rate, points_ in told:
        name = rate.answers.removesuffix("/answers")
        for metric in ("strict", "lenient"):
            table.add_row(name, metric, *(f"{100 * getattr(p, metric):.1f}" for p in points_))
    console.print()
    console.print(table)


CUT_FRACTION = 0.05  # of an answer set; below it, cut answers decide little


def cut_warning(rates: Sequence[ReadingRates]) -> str | None:
    """Return a warning when many answers were cut before they stated anything, or None.

    A cut answer cannot be right, so a difference may be one of length.
    """
    cut = {r.answers: r.lenient.get("truncated", 0) / r.n for r in rates}
    if max(cut.values(), default=0.0) < CUT_FRACTION:
        return None
    adapters = [share for name, share in cut.items() if not name.startswith("base/")]
    told = [f"base {cut['base/answers']:.0%}"] if "base/answers" in cut else []
    if adapters:
        low, high = f"{min(adapters):.0%}", f"{max(adapters):.0%}"
        told.append(f"adapters {low}" if low == high else f"adapters {low} to {high}")
    return (
        f"Cut by the token limit before an answer was stated: {', '.join(told)} of answers. Raise "
        "evaluation.max_new_tokens: a cut answer cannot be right."
    )


def _verdict_row(arm: ArmComparison) -> tuple[str, ...]:
    bounds = arm.interval_points
    between = "none" if bounds is None else f"{points(bounds[0])} to {points(bounds[1])}"
    if bounds is None and "one seed" in arm.notes:
        between = "one seed"
    p_value = "-" if arm.p_holm is None else short_probability(arm.p_holm)
    metric = arm.metric if arm.primary else f"({arm.metric})"
    accuracy = f"{100 * arm.accuracy:.1f} %"
    change = points(arm.difference_points)
    return arm.arm, arm.against, metric, accuracy, change, between, p_value


def print_diagnostics(diagnostics: Diagnostics) -> None:
    """Print the summary of one run: trends, shares, alarms."""
    console = results_console()
    console.print(
        Text(
            f"{harmless(diagnostics.arm)}, seed {diagnostics.seed}: {diagnostics.steps} steps, "
            f"{diagnostics.rollouts} rollouts\n"
        )
    )

    def number(value: float | None) -> str:
        return "-" if value is None else f"{value:.3f}"

    table = results_table(("",), ("first fifth", "last fifth"))
    trends = {name: getattr(diagnostics, name) for name in TRENDS}
    trends |= {f"component {name}": trend for name, trend in diagnostics.components.items()}
    for name, trend in trends.items():
        table.add_row(harmless(name.replace("_", " ")), number(trend.first), number(trend.last))
    console.print(table)
    shares = results_table(("whole run",), ("",))
    for label, value in (
        ("groups without a difference in reward", diagnostics.zero_variance_fraction),
        ("groups all right", diagnostics.all_right_fraction),
        ("groups mixed", diagnostics.mixed_fraction),
        ("groups all wrong", diagnostics.all_wrong_fraction),
        ("rollouts without a reward", diagnostics.unrewarded_fraction),
        ("positive advantage on wrong answers", diagnostics.wrong_advantage_fraction),
        ("training parser correct, scorer not", diagnostics.paid_though_wrong_fraction),
        ("scorer correct, training parser not", diagnostics.unpaid_though_right_fraction),
        ("entropy, change per step", diagnostics.entropy_slope),
        *(
            (f"correlation of {one} and {other}", r)
            for one, row in diagnostics.component_correlations.items()
            for other, r in row.items()
        ),
        ("norm of the adapter's effect", diagnostics.adapter_effect_norm),
    ):
        shares.add_row(harmless(label), number(value))
    console.print()
    console.print(shares)
    if diagnostics.validation:
        points = results_table(
            ("validation: after step",), ("prompts", "strict", "lenient", "truncated")
        )
        for point in diagnostics.validation:
            fractions = (point.strict_fraction, point.lenient_fraction, point.truncated_fraction)
            points.add_row(str(point.step), str(point.prompts), *map(number, fractions))
        console.print()
        console.print(points)
    for alarm in diagnostics.alarms:
        told = f"alarm {alarm.name}: {alarm.evidence}. Try: {alarm.remedy}."
        console.print(Text(f"\n{harmless(told)}"))


def print_partial(counts: Sequence[PartialCount], limit: int, paths: StudyPaths) -> None:
    """Print what a partial evaluation came to, marked as what it is."""
    table = results_table((f"PARTIAL: {limit} questions",), ("answers", "strict", "lenient"))
    for one in counts:
        shares = (f"{100 * right / one.answers:.1f} %" for right in (one.strict, one.lenient))
        table.add_row(one.name, str(one.answers), *shares)
    console = results_console()
    console.print(table)
    console.print(
        Text(
            f"\nDrawn by seed; in {paths.partial(limit).root}, none of it is evidence of the study."
        )
    )


def print_preflight(found: Preflight) -> None:
    """Print one row per check, and a summary."""
    from ahalab.pipeline.clearance import summary

    table = results_table(("check", "level", "found, and what to do"), ())
    for check in found.checks:
        remedy = f". To do: {check.remedy}" if check.remedy else ""
        table.add_row(check.name, check.level, Text(harmless(f"{check.found}{remedy}.")))
    console = results_console()
    console.print(table)
    console.print(Text(f"\n{'REFUSED' if found.refused else 'READY'}: {summary(found)}"))


def print_score(scored: dict[str, Any]) -> None:
    """Print one scored response: outcomes, rule, and the span within its surroundings."""
    name = "" if scored["id"] is None else harmless(f"{scored['id']}: ").replace("\n", " ")
    typer.echo(f"{name}strict {scored['strict']}, lenient {scored['lenient']} ({scored['status']})")
    if scored["span"] is None:
        typer.echo(f"  rule {scored['rule']}: no answer taken")
        return
    start, end = scored["span"]
    response: str = scored["response"]
    before, after = response[max(0, start - 30) : start], response[end : end + 20]
    marked = f"{before}[{response[start:end]}]{after}".replace("\n", " ")
    typer.echo(f"  rule {scored['rule']}, characters {start} to {end}: {harmless(marked)}")
