"""Paired change as diverging bars: lost to the left, gained to the right, per arm and seed."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from ahalab.records.comparison import AdapterComparison
from ahalab.records.terms import Metric
from ahalab.report.drawing import drawing_style, new_figure, to_chart
from ahalab.report.forest import Figured
from ahalab.report.palette import GAIN, INK, LOSS, MUTED
from ahalab.report.sources import Study
from ahalab.report.tables import Cell, Table, metric_order
from ahalab.report.wording import number, points

WIDTH = 420
BAR = 17  # SVG units per seed
LEFT, RIGHT = 1.5, 1.22  # reach of the axis, in longest bars: room for counts and seeds
GROUP_GAP = 1.6  # bars of room above each arm, for its name


def paired_bars(study: Study) -> tuple[Figured, ...]:
    """Return one chart per reading, on one scale; none where pairs are undefined (k > 1)."""
    pairs = [c for c in study.comparison.adapters if c.gained is not None and c.lost is not None]
    if not pairs:
        return ()
    reach = max(1, *(max(c.gained or 0, c.lost or 0) for c in pairs))
    charts = []
    for metric in metric_order(study.comparison.primary):
        rows = [
            c
            for arm in study.plan.arms
            for c in sorted(pairs, key=lambda c: c.seed)
            if (c.arm, c.metric) == (arm.name, metric)
        ]
        if rows:
            charts.append(_bars(rows, metric, reach, study.plan.control))
    return tuple(charts)


def _bars(rows: list[AdapterComparison], metric: Metric, reach: int, control: str) -> Figured:
    title = f"Questions lost and gained against the base, {metric} reading"
    places = _places(rows)
    height = places[-1] + 1.0
    with drawing_style():
        figure = new_figure(WIDTH, 44 + BAR * (height + 0.4))
        axes = figure.subplots()
        _frame(axes, reach, height)
        for place, row in zip(places, rows, strict=True):
            _bar(axes, place, row, reach)
        for arm in dict.fromkeys(row.arm for row in rows):
            top = next(p for p, row in zip(places, rows, strict=True) if row.arm == arm)
            label = f"{arm} (control)" if arm == control else arm
            axes.text(0, top - 1.05, label, va="center", ha="center", color=INK)
        chart = to_chart(figure, f"paired-{metric}", title, _describe(rows))
    table = Table(
        title,
        ("arm", "seed", "lost", "gained", "difference, points"),
        tuple(
            (
                Cell(c.arm),
                Cell(str(c.seed)),
                Cell(number(c.lost)),
                Cell(number(c.gained)),
                Cell(points(c.difference_points)),
            )
            for c in rows
        ),
        heads=2,
    )
    return Figured(chart, title, table)


def _places(rows: list[AdapterComparison]) -> list[float]:
    """Return the height of each bar, counted downwards in bars, with room above each arm."""
    places: list[float] = []
    at, arm = -1.0, ""
    for row in rows:
        at += 1.0 if row.arm == arm else 1.0 + GROUP_GAP
        arm = row.arm
        places.append(at)
    return places


def _frame(axes: Axes, reach: int, height: float) -> None:
    axes.set_xlim(-LEFT * reach, RIGHT * reach)
    axes.set_ylim(height, 0.0)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.tick_params(length=0)
    axes.grid(axis="x")
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True, symmetric=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{abs(value):g}"))
    label = "← lost\u2003\u2003\u2003questions\u2003\u2003\u2003gained →"
    axes.set_xlabel(label, x=LEFT / (LEFT + RIGHT))


def _bar(axes: Axes, place: float, row: AdapterComparison, reach: int) -> None:
    lost, gained = row.lost or 0, row.gained or 0
    axes.barh(
        place, -lost, height=0.74, facecolor="none", edgecolor=LOSS, hatch="////", linewidth=1
    )
    axes.barh(place, gained, height=0.74, facecolor=GAIN, edgecolor=GAIN, linewidth=1)
    axes.plot([0, 0], [place - 0.5, place + 0.5], color=INK, linewidth=1.2)
    small: dict[str, Any] = {"va": "center_baseline", "color": MUTED, "fontsize": 10}
    room = 0.025 * reach
    axes.text(-lost - room, place, str(lost), ha="right", **small)
    axes.text(gained + room, place, str(gained), ha="left", **small)
    axes.text(
        0, place, f"seed {row.seed}", ha="left", transform=axes.get_yaxis_transform(), **small
    )


def _describe(rows: list[AdapterComparison]) -> str:
    return "; ".join(f"{c.arm} seed {c.seed}: lost {c.lost}, gained {c.gained}" for c in rows) + "."
