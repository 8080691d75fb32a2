"""Paired change as diverging bars: lost to the left, gained to the right, per arm and seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup

from ahalab.records.comparison import AdapterComparison
from ahalab.records.terms import Metric
from ahalab.report.figure import Canvas, Figured
from ahalab.report.palette import ArmStyle
from ahalab.report.sources import Study
from ahalab.report.svg import (
    CHARACTER,
    MUTED,
    Point,
    Scale,
    element,
    hatched,
    line,
    rectangle,
    text,
    ticks,
)
from ahalab.report.tables import Cell, Table, change_link, metric_order
from ahalab.report.wording import count, points

WIDTH = 370
NAME = 24  # SVG units above an arm's bars, for its name
CHANGED, SAME, GAP = 15, 11, 7  # height of the two bars of an adapter, and what parts adapters
HEAD, FOOT, LEFT, RIGHT = 4, 42, 56, 34
COUNT = 34  # room for a count beside a bar


@dataclass(frozen=True, slots=True)
class Segment:
    """One of the four kinds of pairs of an adapter."""

    change: str
    value: int
    side: int  # -1: to the left of zero
    lower: bool  # in the bar beneath


def paired_bars(study: Study, styles: dict[str, ArmStyle]) -> tuple[Figured, ...]:
    """Return one chart per reading, on one scale; none where pairs are undefined (k > 1)."""
    pairs = [c for c in study.comparison.adapters if c.gained is not None and c.lost is not None]
    if not pairs:
        return ()
    reach = max(segment.value for c in pairs for segment in _segments(c))
    known = {claim.id for claim in study.claims.claims}
    charts = []
    for metric in metric_order(study.comparison.primary):
        rows = [
            c
            for arm in study.plan.arms
            for c in sorted(pairs, key=lambda c: c.seed)
            if (c.arm, c.metric) == (arm.name, metric)
        ]
        if rows:
            charts.append(_bars(rows, metric, max(reach, 1), styles, known))
    return tuple(charts)


def _segments(c: AdapterComparison) -> tuple[Segment, ...]:
    gained, lost = c.gained or 0, c.lost or 0
    return (
        Segment("lost", lost, -1, lower=False),
        Segment("gained", gained, 1, lower=False),
        Segment("both wrong", c.n - round(c.base_correct) - gained, -1, lower=True),
        Segment("both right", round(c.base_correct) - lost, 1, lower=True),
    )


def _bars(
    rows: list[AdapterComparison],
    metric: Metric,
    reach: int,
    styles: dict[str, ArmStyle],
    known: set[str],
) -> Figured:
    title = f"Questions, {metric} reading"
    each = CHANGED + SAME + GAP
    arms = len({row.arm for row in rows})
    canvas = Canvas(
        f"paired-{metric}", title,
        "One pair of bars per adapter. Upper bar: questions lost to the left, gained to the right. "
        "Lower bar: both wrong to the left, both right to the right. Each count is a link to its "
        "answers.",
        WIDTH, HEAD + arms * NAME + len(rows) * each + FOOT,
    )  # fmt: skip
    scale = Scale(-reach, reach, LEFT + COUNT, WIDTH - RIGHT)
    parts = [*_axis(canvas, scale, reach)]
    at, arm = float(HEAD), ""
    for row in rows:
        if row.arm != arm:
            arm = row.arm
            parts.append(text((0, at + 14), styles[arm].label, font_weight="600"))
            at += NAME
        parts.append(text((12, at + CHANGED / 2), f"seed {row.seed}", fill=MUTED))
        parts += [_segment(row, segment, scale, at, known) for segment in _segments(row)]
        at += each
    parts.append(line((scale(0), HEAD), (scale(0), at), "currentColor", stroke_width="1.4"))
    return Figured(canvas.close(*parts, links=True), title, _table(rows, title, known))


def _axis(canvas: Canvas, scale: Scale, reach: int) -> Iterator[Markup]:
    bottom = canvas.height - FOOT
    for value in ticks(0, reach, 3):
        for at in {scale(value), scale(-value)} if value <= reach else ():
            yield line((at, HEAD), (at, bottom))
            yield text((at, bottom + 11), f"{value:g}", anchor="middle", fill=MUTED)
    yield text((scale(0) - 10, bottom + 29), "← lost, both wrong", anchor="end", fill=MUTED)
    yield text((scale(0) + 10, bottom + 29), "gained, both right →", fill=MUTED)


def _segment(
    c: AdapterComparison, segment: Segment, scale: Scale, at: float, known: set[str]
) -> Markup:
    """Return a bar with its count, as one link to the answers that it counts."""
    top = at + (CHANGED if segment.lower else 0)
    bottom = top + (SAME if segment.lower else CHANGED)
    zero, end = scale(0), scale(segment.side * segment.value)
    edge = {"gained": "var(--gain)", "lost": "var(--loss)"}.get(segment.change, "var(--same)")
    fill = edge if segment.side > 0 else "none"
    told = count(segment.value)
    room = len(told) * CHARACTER + 8
    named = f"{c.arm}, seed {c.seed}, {c.metric}: {told} {segment.change}. Show these answers"
    claim = f"adapter.{c.arm}.{c.seed}.{c.metric}.{segment.change.replace(' ', '_')}"
    middle = (top + bottom) / 2
    return element(
        "a",
        # As large as bar and count together, so that a small count can be met too.
        rectangle((zero, top), (end + segment.side * room, bottom), fill="transparent"),
        _hatching(c, (zero, top + 1), (end, bottom - 1)) if segment.change == "lost" else "",
        rectangle((zero, top + 1), (end, bottom - 1), fill=fill, stroke=edge, stroke_width="1"),
        text(
            (end + segment.side * 5, middle), told, anchor="start" if segment.side > 0 else "end",
            fill="var(--link)", data_claim=claim if claim in known else None,
        ),
        href=change_link(c.arm, c.seed, c.metric, segment.change),
        aria_label=named,
    )  # fmt: skip


def _hatching(c: AdapterComparison, one: Point, other: Point) -> Markup:
    (x1, top), (x2, bottom) = one, other
    upper, lower = [(x2, top), (x1, top)], [(x2, bottom), (x1, bottom)]
    return hatched(
        f"lost-{c.metric}-{c.arm}-{c.seed}",
        upper,
        lower,
        "var(--loss)",
    )


def _table(rows: list[AdapterComparison], title: str, known: set[str]) -> Table:
    def cell(c: AdapterComparison, told: str, name: str, change: str | None = None) -> Cell:
        claim = f"adapter.{c.arm}.{c.seed}.{c.metric}.{name}"
        href = change_link(c.arm, c.seed, c.metric, change) if change else None
        return Cell(told, claim if claim in known else None, href)

    return Table(
        title,
        ("arm", "seed", "lost", "gained", "both wrong", "both right", "difference, points"),
        tuple(
            (
                Cell(c.arm),
                Cell(str(c.seed)),
                *(
                    cell(c, count(one.value), one.change.replace(" ", "_"), one.change)
                    for one in _segments(c)
                ),
                cell(c, points(c.difference_points), "difference_points"),
            )
            for c in rows
        ),
        heads=2,
        numbers=2,
    )
