"""Prints what is known of reflection in a study."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from ahalab.cli.output import harmless, points, results_console, results_table, short_probability
from ahalab.records.reflection import (
    GroupAccuracy,
    MarkedAccuracy,
    Reflection,
    SideMarkers,
    TrainingMarkers,
)

ASSOCIATION = (
    "With and without a marker is an association, not a cause: which questions make a model write "
    "one was nobody's choice, and they differ in difficulty."
)
TO_CHECK = "What a marker causes takes the model: ahalab reflect STUDY --causal"
MOST_MARKERS = 6  # named of each side


def print_reflection(found: Reflection) -> None:
    """Print marker rates, accuracy with and without, and the causal check where it was made."""
    console = results_console()
    if found.training:
        _print_training(console, found.training)
    if found.sides:
        _print_sides(console, found)
    if found.causal:
        _print_causal(console, found)
    elif any(side.marked for side in found.sides):
        console.print(Text(f"\n{TO_CHECK}"))
    console.print(Text("\nExploratory: no plan decides by any of this."))


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}" if whole else "-"


def _print_training(console: Console, runs: Sequence[TrainingMarkers]) -> None:
    """Print the share of rollouts with a marker, over training, two buckets a column."""
    parts = [[run.buckets[at : at + 2] for at in range(0, len(run.buckets), 2)] for run in runs]
    ends = list(dict.fromkeys(part[-1].last_step + 1 for run in parts for part in run))
    table = results_table(
        ("rollouts with a marker, %",), ("rollouts", "all", *(f"to {end}" for end in ends))
    )
    for run, columns in zip(runs, parts, strict=True):
        shares = {
            part[-1].last_step + 1: _percent(
                sum(b.marked for b in part), sum(b.rollouts for b in part)
            )
            for part in columns
        }
        table.add_row(
            harmless(f"{run.arm}, seed {run.seed}"),
            str(run.rollouts),
            _percent(run.marked, run.rollouts),
            *(shares.get(end, "-") for end in ends),
        )
    console.print(table)
    console.print(Text("\nto N: of the steps up to N, from the column before on.\n"))


def _print_sides(console: Console, found: Reflection) -> None:
    """Print each side's accuracy with and without a marker."""
    table = results_table(
        ("side", "metric"), ("marked", "of", "with", "without", "points", "interval")
    )
    for side in found.sides:
        for one in side.accuracy if side.marked else ():
            table.add_row(_name(side.answers), one.metric, *_figures(side, one))
    if table.row_count:
        console.print(table)
        level = f"{100 * found.confidence:.4g}"
        console.print(Text(f"\n{level} % intervals over questions. {ASSOCIATION}"))
    without = [_name(side.answers) for side in found.sides if not side.marked]
    if without:
        console.print(Text(f"No answer has a marker: {', '.join(without)}."))
    for side in found.sides:
        if side.markers:
            console.print(Text(harmless(_most(side))))


def _name(answers: str) -> str:
    return harmless(answers.removesuffix("/answers").removeprefix("arms/").replace("base/", ""))


def _figures(side: SideMarkers, one: MarkedAccuracy) -> tuple[str, ...]:
    bounds = one.interval_points
    return (
        str(side.marked),
        str(side.n),
        _accuracy(one.marked),
        _accuracy(one.unmarked),
        points(one.difference_points),
        "-" if bounds is None else f"{points(bounds[0])} to {points(bounds[1])}",
    )


def _accuracy(group: GroupAccuracy) -> str:
    return "-" if group.accuracy is None else f"{100 * group.accuracy:.1f} %"


def _most(side: SideMarkers) -> str:
    """Return the markers of a side, the most frequent first."""
    ordered = sorted(side.markers.items(), key=lambda item: (-item[1], item[0]))
    told = ", ".join(f'"{marker}" {count}' for marker, count in ordered[:MOST_MARKERS])
    more = len(ordered) - MOST_MARKERS
    return f"{_name(side.answers)}: {told}" + (f", and {more} others" if more > 0 else "")


def _print_causal(console: Console, found: Reflection) -> None:
    """Print what reflecting causes: a row per side and reading, then the sentences."""
    table = results_table(
        ("cut there", "metric"),
        ("pairs", "with", "without", "gained", "lost", "points", "p (Holm)"),
    )
    for side in found.causal:
        for one in side.effects:
            table.add_row(
                _name(side.answers),
                one.metric,
                *(str(n) for n in (one.pairs, one.correct_with, one.correct_without)),
                *(str(n) for n in (one.gained, one.lost)),
                points(one.difference_points),
                "-" if one.p_holm is None else short_probability(one.p_holm),
            )
    console.print()
    console.print(table)
    for side in found.causal:
        told = [one.sentence for one in side.effects if one.metric == found.primary]
        told += [side.floor] if side.marked else []
        console.print(Text(harmless("\n" + " ".join(told))))
    for arm in found.arms:
        if arm.metric == found.primary:
            console.print(Text(harmless(f"\n{arm.sentence}")))
