"""How `ahalab counterfactual` prints what it found: at most 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import typer

from ahalab.cli.output import harmless
from ahalab.records.counterfactual import (
    ArmOnRollouts,
    Counterfactual,
    OverSeeds,
    RecordedRollouts,
)

COLUMNS = 80
NAME = 16  # characters of an arm's name beside its figures; a longer one has a line of its own
WIDTHS = (6, 6, 5, 7, 4, 4, 7, 8, 6, 6, 5)
ABOVE = ("paid", "", "", "", "", "", "A+", "A+", "|A|", "A-", "")
HEADS = ("right", "wrong", "dead", "flip", "off", "on", "strict", "lenient", "wrong", "right", "r")
MATRIX_ARMS = 11  # more do not fit beside one another
KEY = (
    "paid: mean reward of right and of wrong answers (lenient). dead: % of the groups that teach "
    "nothing, their rewards being equal. Then % of the rollouts whose advantage has the opposite "
    "sign of the recorded one (flip), is 0 where that is not (off), is not 0 where that is (on). "
    "A+ strict, A+ lenient: % of the positive advantage that falls on answers that are not right "
    "by that reading; |A| wrong: of the absolute advantage, lenient; A- right: of the negative "
    "advantage, on right answers, lenient; all as the run's loss weighs rollouts. r: correlation "
    "with the recorded advantages. \N{PLUS-MINUS SIGN}: standard deviation over seeds."
)


def print_counterfactual(found: Counterfactual) -> None:
    """Print one table per arm that was trained, the arms' likeness, and what can't be said."""
    if found.missing:
        _say(f"Not finished, and so not read: {', '.join(found.missing)}.")
        typer.echo("")
    for source in found.sources:
        _print_source(found, source)
        typer.echo("")
    _say(KEY)
    typer.echo("")
    _say(found.limit)


def _print_source(found: Counterfactual, source: RecordedRollouts) -> None:
    seeds = ", ".join(map(str, source.seeds))
    when = "" if found.steps is None else f" before step {found.steps}"
    _say(
        f"{source.study}, arm {source.arm}, seed{'s' * (len(source.seeds) > 1)} {seeds}: "
        f"{source.rollouts} rollouts{when} in {source.groups} groups of {source.group_size} "
        f"(scale_rewards {source.scale_rewards}, loss {source.loss_type})"
    )
    _say(source.sentence)
    for note in _notes(source):
        _say(f"Note: {note}")
    typer.echo("")
    typer.echo(_line("", ABOVE))
    typer.echo(_line("arm", HEADS))
    for arm in source.arms:
        for line in _arm_lines(arm):
            typer.echo(line)
    typer.echo("")
    _print_likeness(found, source)


def _notes(source: RecordedRollouts) -> list[str]:
    """Return what a reader must know of these rows, and of what is not in the table."""
    notes = [f"arm {left.arm} is left out: {left.reason}." for left in source.left_out]
    if source.outcomes_changed or source.rewards_changed:
        notes.append(
            f"the scorers at hand read {source.outcomes_changed} rollouts otherwise than they were "
            f"recorded, and would pay {source.rewards_changed or 0} of them otherwise; the first "
            "row is as it was recorded, the others are paid by the scorers at hand."
        )
    if source.advantages_off:
        notes.append(
            f"{source.advantages_off} recorded advantages are not those of their rewards; `ahalab "
            "verify` names them. Figures are of those that the rewards give."
        )
    for arm in source.arms:
        if share := arm.unrewarded_fraction.mean:
            notes.append(f"{arm.arm} has no reward for {_percent(share)} % of the rollouts.")
    return notes


def _arm_lines(arm: ArmOnRollouts) -> list[str]:
    by_metric = {m.metric: m for m in arm.mass if m.weighting == "loss"}
    strict, lenient = by_metric["strict"], by_metric["lenient"]
    cells = (
        _reward(arm.paid_right.mean),
        _reward(arm.paid_wrong.mean),
        _percent(arm.dead_group_fraction.mean),
        _spread(arm.flipped_fraction),
        _percent(arm.silenced_fraction.mean),
        _percent(arm.awakened_fraction.mean),
        _spread(strict.positive_on_wrong),
        _spread(lenient.positive_on_wrong),
        _percent(lenient.absolute_on_wrong.mean),
        _percent(lenient.negative_on_right.mean),
        _r(arm.correlation),
    )
    name = harmless(arm.arm)
    if len(name) <= NAME:
        return [_line(name, cells)]
    return [*textwrap.wrap(name, COLUMNS), _line("", cells)]


def _print_likeness(found: Counterfactual, source: RecordedRollouts) -> None:
    """Print the clusters, and the correlations where they fit."""
    together = [cluster for cluster in source.clusters if len(cluster) > 1]
    if together:
        _say(
            f"Teach alike (correlation of advantages {found.cluster_at:g} or more on average): "
            + "; ".join(", ".join(cluster) for cluster in together)
            + "."
        )
    else:
        _say(f"No two arms teach alike (correlation of advantages {found.cluster_at:g} or more).")
    silent = [arm.arm for arm in source.arms if arm.correlation is None]
    if silent:
        _say(
            "Without a correlation, since they or the recorded arm teach nothing: "
            f"{', '.join(silent)}."
        )
    if len(source.arms) > MATRIX_ARMS:
        _say("The correlations of so many arms stand in --format json.")
        return
    typer.echo("")
    for at, (arm, row) in enumerate(zip(source.arms, source.correlations, strict=True), start=1):
        cells = "".join(f"{_r(r):>5}" for r in row[:at])
        typer.echo(f"{at:>2} {harmless(arm.arm)[:21]:<21}{cells}")


def _line(name: str, cells: Sequence[str]) -> str:
    padded = (f"{cell:>{width}}" for cell, width in zip(cells, WIDTHS, strict=True))
    return f"{name:<{NAME}}{''.join(padded)}".rstrip()


def _say(text: str) -> None:
    typer.echo(textwrap.fill(harmless(text), COLUMNS, break_on_hyphens=False))


def _reward(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _r(value: float | None) -> str:
    """Return a correlation as statistics has it: two places, no leading zero."""
    if value is None:
        return "-"
    return f"{round(value, 2) + 0.0:.2f}".replace("0.", ".")


def _percent(fraction: float | None) -> str:
    """Return a percentage in whole points, below 10 with a decimal."""
    if fraction is None:
        return "-"
    value = 100 * fraction
    return f"{value:.0f}" if value == 0 or value >= 9.95 else f"{value:.1f}"


def _spread(figure: OverSeeds) -> str:
    told = _percent(figure.mean)
    if figure.sd is None:
        return told
    points = 100 * figure.sd
    spread = f"{points:.0f}" if points == 0 or points >= 0.95 else f"{points:.1f}"[1:]
    return f"{told}\N{PLUS-MINUS SIGN}{spread}"
