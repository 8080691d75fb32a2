"""The arms as a forest plot: interval, seeds as dots, zero line, noise floor, control arm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes

from ahalab.records.comparison import ArmComparison, NoiseFloor
from ahalab.report.drawing import Chart, drawing_style, new_figure, to_chart
from ahalab.report.palette import BAND, INK, MUTED, PAPER, ArmStyle
from ahalab.report.sources import Study
from ahalab.report.tables import Cell, Table, metric_order, ordered_arms
from ahalab.report.wording import number, points, span

WIDTH = 420
ROW = 48  # SVG units per arm
SEED_LIFT = 0.19  # seeds stand a little below the interval's line, in rows


@dataclass(frozen=True, slots=True)
class Figured:
    """A chart with its caption and the table behind it."""

    chart: Chart
    caption: str
    table: Table


def forest_plots(study: Study, styles: dict[str, ArmStyle]) -> tuple[Figured, ...]:
    """Return a plot per reference and reading, all on one scale, the primary reading first."""
    comparisons = ordered_arms(study)
    floors = [_floor_points(study.comparison.floor, metric) for metric in ("strict", "lenient")]
    limits = _limits(comparisons, max(floor or 0.0 for floor in floors))
    plots = []
    for against in ("base", "control"):
        for metric in metric_order(study.comparison.primary):
            rows = [c for c in comparisons if (c.against, c.metric) == (against, metric)]
            if rows:
                floor = _floor_points(study.comparison.floor, metric) if against == "base" else None
                plots.append(_plot(rows, styles, limits, floor, study.comparison.confidence))
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


def _limits(comparisons: list[ArmComparison], floor: float) -> tuple[float, float]:
    values = [floor, -floor]
    for c in comparisons:
        values += [c.difference_points, *c.seed_differences_points, *(c.interval_points or ())]
    low, high = min(values), max(values)
    pad = 0.06 * max(high - low, 1.0)
    return low - pad, high + pad


def _plot(
    rows: list[ArmComparison],
    styles: dict[str, ArmStyle],
    limits: tuple[float, float],
    floor: float | None,
    confidence: float,
) -> Figured:
    against, metric = rows[0].against, rows[0].metric
    title = (
        f"Difference against the {'base' if against == 'base' else 'control arm'}, {metric} reading"
    )
    with drawing_style():
        figure = new_figure(WIDTH, 46 + ROW * len(rows))
        axes = figure.subplots()
        _frame(axes, limits, len(rows))
        if floor:
            axes.axvspan(-floor, floor, color=BAND, linewidth=0, zorder=0)
        for row, comparison in enumerate(rows):
            _row(axes, row, comparison, styles[comparison.arm])
        chart = to_chart(
            figure, f"forest-{against}-{metric}", title, _describe(rows, confidence, floor)
        )
    return Figured(chart, title, _table(rows, title))


def _frame(axes: Axes, limits: tuple[float, float], rows: int) -> None:
    axes.set_xlim(*limits)
    axes.set_ylim(rows - 0.35, -0.85)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x")
    axes.tick_params(length=0)
    axes.axvline(0.0, color=INK, linewidth=1.2, zorder=1)
    axes.set_xlabel("percentage points")


def _row(axes: Axes, row: int, c: ArmComparison, style: ArmStyle) -> None:
    label = f"{c.arm} (control)" if style.control else c.arm
    told = f"[{span(c.interval_points)}]" if c.interval_points else "(no interval)"
    words = f"{points(c.difference_points)} {told}"
    across = axes.get_yaxis_transform()
    place: dict[str, Any] = {
        "transform": across,
        "va": "center",
        "bbox": {"facecolor": PAPER, "edgecolor": "none", "pad": 1.5},
    }
    axes.text(0.0, row - 0.36, label, ha="left", color=INK, **place)
    axes.text(1.0, row - 0.36, words, ha="right", color=MUTED, fontsize=10, **place)
    if c.interval_points:
        axes.plot(
            c.interval_points, [row, row], color=style.stand_in, linewidth=2.2,
            solid_capstyle="butt", linestyle=(0, style.dash) if style.control else "-", marker="|",
            markersize=9, zorder=2,
        )  # fmt: skip
    axes.plot(
        c.seed_differences_points, [row + SEED_LIFT] * len(c.seed_differences_points), "o",
        color=style.stand_in, markersize=3.4, alpha=0.75, markeredgewidth=0, zorder=3,
    )  # fmt: skip
    axes.plot(
        [c.difference_points], [row], style.marker, color=style.stand_in, markersize=9,
        markeredgecolor=PAPER, markeredgewidth=1.2, zorder=4,
    )  # fmt: skip


def _describe(rows: list[ArmComparison], confidence: float, floor: float | None) -> str:
    level = f"{100 * confidence:g} % interval"
    parts = [
        f"{c.arm}: {points(c.difference_points)} points, {level} {span(c.interval_points)}, "
        f"{c.verdict}"
        for c in rows
    ]
    band = (
        "" if floor is None else f" The noise floor flipped {number(floor, 2)} % of the questions."
    )
    return "; ".join(parts) + "." + band


def _table(rows: list[ArmComparison], title: str) -> Table:
    return Table(
        title,
        ("arm", "difference, points", "interval", "covers", "seeds"),
        tuple(
            (
                Cell(c.arm),
                Cell(points(c.difference_points)),
                Cell(span(c.interval_points)),
                Cell(c.interval_covers),
                Cell(", ".join(points(d) for d in c.seed_differences_points)),
            )
            for c in rows
        ),
    )
