"""The arms as a forest plot: interval, seeds as dots, zero line, noise floor, control arm."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from markupsafe import Markup

from ahalab.records.comparison import ArmComparison, NoiseFloor
from ahalab.report.figure import Canvas, Figured
from ahalab.report.palette import ArmStyle
from ahalab.report.sources import Study
from ahalab.report.svg import CHARACTER, MUTED, Scale, element, line, rectangle, text, ticks
from ahalab.report.tables import Cell, Table, metric_order, ordered_arms
from ahalab.report.wording import MINUS, points, span

WIDTH = 370
ROW = 52  # SVG units per arm: its name and figures above, its interval and seeds below
HEAD, FOOT = 6, 40
SEEDS = 9  # seeds lie so far below the interval


def forest_plots(study: Study, styles: dict[str, ArmStyle]) -> tuple[Figured, ...]:
    """Return a plot per reference and reading, all on one scale, the primary reading first."""
    comparisons = ordered_arms(study)
    floors = [_floor_points(study.comparison.floor, metric) for metric in ("strict", "lenient")]
    marks = _ticks(comparisons, max(floor or 0.0 for floor in floors))
    known = {claim.id for claim in study.claims.claims}
    places = {id(c): at for at, c in enumerate(study.comparison.arms)}
    plots = []
    for against in ("base", "control"):
        for metric in metric_order(study.comparison.primary):
            rows = [c for c in comparisons if (c.against, c.metric) == (against, metric)]
            if not rows:
                continue
            floor = _floor_points(study.comparison.floor, metric) if against == "base" else None
            title = (
                f"Difference from the {'base' if against == 'base' else 'control arm'}, "
                f"{metric} reading"
            )
            table = _table(rows, title, known, [places[id(c)] for c in rows])
            canvas = Canvas(
                f"forest-{against}-{metric}", title, _describe(rows, floor), WIDTH,
                HEAD + ROW * len(rows) + FOOT,
            )  # fmt: skip
            drawn = [_frame(canvas, marks, floor)]
            scale = _scale(marks)
            drawn += [_row(c, styles[c.arm], scale, at, known) for at, c in enumerate(rows)]
            plots.append(Figured(canvas.close(*drawn), title, table))
    return tuple(plots)


def _floor_points(floor: NoiseFloor | None, metric: str) -> float | None:
    """Return the share of questions that the floor flipped, in points; None: not measured."""
    if floor is None or floor.n == 0:
        return None
    flips = {
        "strict": floor.strict_gained + floor.strict_lost,
        "lenient": floor.lenient_gained + floor.lenient_lost,
    }[metric]
    return 100.0 * flips / floor.n


def _ticks(comparisons: list[ArmComparison], floor: float) -> tuple[float, ...]:
    values = [0.0, floor, -floor]
    for c in comparisons:
        values += [c.difference_points, *c.seed_differences_points, *(c.interval_points or ())]
    return ticks(min(values), max(values), 6)


def _scale(marks: Sequence[float]) -> Scale:
    return Scale(marks[0], marks[-1], 12.0, WIDTH - 12.0)


def _frame(canvas: Canvas, marks: Sequence[float], floor: float | None) -> Markup:
    """Return grid, zero line, noise floor and the axis below."""
    scale, bottom = _scale(marks), canvas.height - FOOT
    parts: list[Markup] = []
    if floor:
        parts.append(rectangle((scale(-floor), HEAD), (scale(floor), bottom), fill="var(--band)"))
    for value in marks:
        at = scale(value)
        parts.append(line((at, HEAD), (at, bottom)))
        label = f"{value:+g}".replace("-", MINUS) if value else "0"
        parts.append(text((at, bottom + 11), label, anchor="middle", fill=MUTED))
    parts.append(line((scale(0), HEAD), (scale(0), bottom), "currentColor", stroke_width="1.4"))
    parts.append(text((scale(0), bottom + 28), "percentage points", anchor="middle", fill=MUTED))
    return Markup("").join(parts)


def _row(c: ArmComparison, style: ArmStyle, scale: Scale, at: int, known: set[str]) -> Markup:
    top = HEAD + ROW * at
    middle = top + 29
    parts = [
        _backed(style.label, top + 12),
        text((0, top + 12), style.label),
        _figures(c, top + 12, known),
    ]
    if c.interval_points:
        low, high = (scale(bound) for bound in c.interval_points)
        dashes = style.dashes if style.control else None
        parts.append(
            line((low, middle), (high, middle), style.colour, stroke_width="2.4",
                 stroke_dasharray=dashes)
        )  # fmt: skip
        parts += [
            line((end, middle - 5), (end, middle + 5), style.colour, stroke_width="2")
            for end in (low, high)
        ]
    parts += [
        element("circle", cx=x, cy=middle + SEEDS + lift, r="2.6", fill=style.colour)
        for x, lift in _apart([scale(d) for d in c.seed_differences_points])
    ]
    parts.append(style.mark(scale(c.difference_points), middle))
    return Markup("").join(parts)


def _apart(places: list[float]) -> list[tuple[float, float]]:
    """Return the places with a lift where one dot would cover the one before it."""
    ordered = sorted(places)
    lifts = [0.0]
    for before, after in pairwise(ordered):
        lifts.append((lifts[-1] + 4.5) % 9 if after - before < 4.5 else 0.0)
    return list(zip(ordered, lifts, strict=False))


def _figures(c: ArmComparison, at: float, known: set[str]) -> Markup:
    """Return mean and interval, right-aligned, as claims."""
    stem = f"arm.{c.arm}.{c.against}.{c.metric}"
    names = ["difference_points"]
    told = "no interval"
    if c.interval_points:
        names += ["interval_low_points", "interval_high_points"]
        told = span(c.interval_points)
    words = f"{points(c.difference_points)}  ({told})"
    ids = " ".join(f"{stem}.{name}" for name in names if f"{stem}.{name}" in known)
    return _backed(words, at, right=True) + text(
        (WIDTH, at), words, anchor="end", fill=MUTED, data_claim=ids or None
    )


def _backed(words: str, at: float, *, right: bool = False) -> Markup:
    """Return what keeps the grid from running through a text."""
    wide = CHARACTER * len(words) + 6
    ends = (WIDTH - wide, WIDTH) if right else (0, wide)
    return rectangle((ends[0], at - 9), (ends[1], at + 8), fill="var(--paper)")


def _describe(rows: list[ArmComparison], floor: float | None) -> str:
    parts = [f"{c.arm}: {c.verdict}" for c in rows]
    band = "" if floor is None else " The noise floor is drawn as a band around zero."
    return "; ".join(parts) + "." + band


def _table(rows: list[ArmComparison], title: str, known: set[str], places: list[int]) -> Table:
    def claims(c: ArmComparison, *names: str) -> str | None:
        ids = [f"arm.{c.arm}.{c.against}.{c.metric}.{name}" for name in names]
        return " ".join(name for name in ids if name in known) or None

    return Table(
        title,
        ("arm", "difference, points", "interval", "covers", "seeds"),
        tuple(
            (
                Cell(c.arm),
                Cell(points(c.difference_points), claims(c, "difference_points")),
                Cell(
                    span(c.interval_points),
                    claims(c, "interval_low_points", "interval_high_points"),
                ),
                Cell(c.interval_covers),
                Cell(
                    ", ".join(points(d) for d in c.seed_differences_points),
                    field=" ".join(
                        f"arms/{place}/seed_differences_points/{at}"
                        for at in range(len(c.seed_differences_points))
                    ),
                ),
            )
            for c, place in zip(rows, places, strict=True)
        ),
        files=("analysis/comparison.json",) * len(rows),
    )
