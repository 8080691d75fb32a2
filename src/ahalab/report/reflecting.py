"""What reflecting does to the answers, where `ahalab reflect` asked: sentences, and each side."""

from __future__ import annotations

from dataclasses import dataclass

from ahalab.records.reflection import Reflection
from ahalab.report.tables import Cell, Table, once
from ahalab.report.wording import percent, points, span

FILE = "analysis/reflection.json"


@dataclass(frozen=True, slots=True)
class Told:
    """A sentence of the record, and where it stands there."""

    text: str
    field: str


def reflection_sentences(found: Reflection | None) -> tuple[tuple[Told, ...], tuple[Told, ...]]:
    """Return what was found of each arm, and of each side, by the primary reading."""
    if found is None:
        return (), ()
    arms = [
        Told(arm.sentence, f"arms/{at}/sentence")
        for at, arm in enumerate(found.arms)
        if arm.metric == found.primary
    ]
    sides = [
        Told(effect.sentence, f"causal/{at}/effects/{which}/sentence")
        for at, side in enumerate(found.causal)
        for which, effect in enumerate(side.effects)
        if effect.metric == found.primary
    ]
    return tuple(arms), tuple(sides)


def reflection_table(found: Reflection | None) -> Table | None:
    """Return the accuracy of each side's answers with a marker and of those without."""
    if found is None:
        return None
    rows = []
    for at, side in enumerate(found.sides):
        for which, one in enumerate(side.accuracy):
            place = f"sides/{at}/accuracy/{which}"
            rows.append(
                (
                    Cell(side.answers.removesuffix("/answers")),
                    Cell(one.metric),
                    Cell(f"{one.marked.answers:,}", field=f"{place}/marked/answers"),
                    Cell(percent(one.marked.accuracy), field=f"{place}/marked/accuracy"),
                    Cell(f"{one.unmarked.answers:,}", field=f"{place}/unmarked/answers"),
                    Cell(percent(one.unmarked.accuracy), field=f"{place}/unmarked/accuracy"),
                    Cell(points(one.difference_points), field=f"{place}/difference_points"),
                    Cell(
                        span(one.interval_points),
                        field=f"{place}/interval_points/0 {place}/interval_points/1"
                        if one.interval_points
                        else None,
                    ),
                )
            )
    return Table(
        "Answers with a marker beside those without: an association, not what a marker causes.",
        ("answers", "reading", "with", "right", "without", "right", "difference, points",
         f"{100 * found.confidence:g} % interval"),
        once(tuple(rows)), heads=2, numbers=2, files=(FILE,) * len(rows),
    )  # fmt: skip
