"""Power against questions, and smallest effects against seeds, as one SVG that stands alone."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from ahalab.plan.looks import DASHES, MARKERS
from ahalab.records.power import PowerTable
from ahalab.report.drawing import drawing_style, new_figure
from ahalab.report.wording import points
from ahalab.statistics.design import Design, Noise, design_detectable, design_power, noise_of

WIDTH, HEIGHT = 860, 380
INK, MUTED, GRID, PAPER = "#1b1b1b", "#5a5d61", "#dcdde0", "#ffffff"  # report.css, light
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#b8619a", "#c98a00", "#3f9fd6")  # Okabe and Ito
STEPS = 33  # numbers of questions drawn
MOST_LINES = 5
LEAST_SEEDS, SEEDS_DRAWN = 2, 12
SPACE = 1.5  # left of and right of the table's numbers of questions, as a factor


def draw_power(table: PowerTable) -> bytes:
    """Return the picture of a power table as SVG: the same table gives the same bytes."""
    with drawing_style():
        buffer = io.BytesIO()
        metadata = {"Date": None, "Creator": None, "Title": _title(table)}
        power_figure(table).savefig(buffer, format="svg", metadata=metadata)
    return buffer.getvalue()


def power_figure(table: PowerTable) -> Figure:
    """Return the figure: power against questions, smallest effect against seeds."""
    noise = noise_of(table.assumptions)
    figure = new_figure(WIDTH, HEIGHT)
    figure.patch.set_visible(True)
    figure.patch.set_facecolor(PAPER)
    left, right = figure.subplots(1, 2, gridspec_kw={"wspace": 0.08})
    _power_by_questions(left, table, noise)
    _effect_by_seeds(right, table, noise)
    _head(figure, table)
    return figure


def _title(table: PowerTable) -> str:
    return f"Power to find a change of {points(table.effect_points)} points"


def _head(figure: Figure, table: PowerTable) -> None:
    a = table.assumptions
    spread = "unknown" if a.seed_sd_points is None else f"{a.seed_sd_points:.1f} points"
    figure.suptitle(
        f"{_title(table)}, at level {table.alpha:g}\n"
        f"{100 * a.discordance:.1f} % of questions change outcome; SD over seeds {spread}",
        color=INK, fontsize=12,
    )  # fmt: skip


def _style(at: int) -> dict[str, Any]:
    """Return how a line looks: told apart without colour too."""
    dash = DASHES[at % len(DASHES)]
    return {
        "color": COLOURS[at % len(COLOURS)],
        "linestyle": (0, tuple(length / 2 for length in dash)) if dash else "-",
        "marker": MARKERS[at % len(MARKERS)],
        "markersize": 4.5,
        "linewidth": 2.0,
    }


def _power_by_questions(axes: Axes, table: PowerTable, noise: Noise) -> None:
    """Draw a line per number of seeds, at the first number of answers a question."""
    sizes = sorted({d.questions for d in table.designs})
    samples = table.designs[0].samples
    low, high = max(2.0, sizes[0] / SPACE), sizes[-1] * SPACE
    drawn = np.unique(np.geomspace(low, high, STEPS).astype(int))
    effect = table.effect_points / 100

    def line(seeds: int | None, label: str, look: dict[str, Any]) -> None:
        chances = [
            100 * design_power(Design(int(n), samples, seeds), noise, effect, table.alpha)
            for n in drawn
        ]
        axes.plot(drawn, chances, label=label, markevery=STEPS // 6, **look)

    line(None, "this adapter", {"color": MUTED, "linestyle": ":", "linewidth": 2.0})
    if noise.seed_sd is not None:
        for at, seeds in enumerate(_seeds(table)):
            line(seeds, f"the reward, {seeds} seeds", _style(at))
    axes.axhline(100 * table.wanted_power, color=INK, linewidth=1.0, zorder=1)
    axes.set_xscale("log")
    axes.set_ylim(0, 102)
    _frame(
        axes,
        f"questions{_each(samples)}",
        f"chance of finding {points(table.effect_points)} points",
    )
    axes.xaxis.set_major_locator(FixedLocator(sizes))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda n, _: f"{n:,.0f}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{share:.0f} %"))
    axes.legend(frameon=False, fontsize=9, labelcolor=INK)


def _effect_by_seeds(axes: Axes, table: PowerTable, noise: Noise) -> None:
    """Draw a line per number of questions; one seed has no point, for it carries no claim."""
    samples = table.designs[0].samples
    sizes = sorted({d.questions for d in table.designs})[:MOST_LINES]
    seeds = range(LEAST_SEEDS, max(SEEDS_DRAWN, *_seeds(table)) + 1)
    if noise.seed_sd is None:
        axes.text(
            0.5, 0.5, "The spread over seeds is not known:\nno claim on a reward can be planned.",
            ha="center", va="center", transform=axes.transAxes, color=INK,
        )  # fmt: skip
        axes.set_axis_off()
        return
    for at, n in enumerate(sizes):
        found = [
            (s, 100 * least)
            for s in _thinned(seeds)
            if (least := _least(Design(n, samples, s), noise, table)) is not None
        ]
        if found:
            axes.plot(*zip(*found, strict=True), label=f"{n:,} questions", **_style(at))
    axes.axhline(abs(table.effect_points), color=INK, linewidth=1.0, zorder=1)
    axes.set_ylim(bottom=0)
    axes.set_xlim(LEAST_SEEDS - 0.5, seeds[-1] + 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(7, integer=True))
    told = f"smallest effect found with {100 * table.wanted_power:.4g} % chance, points"
    _frame(axes, "training seeds of the reward", told)
    axes.legend(frameon=False, fontsize=9, labelcolor=INK)


def _least(design: Design, noise: Noise, table: PowerTable) -> float | None:
    return design_detectable(design, noise, table.wanted_power, table.alpha)


def _seeds(table: PowerTable) -> list[int]:
    """Return the numbers of seeds that carry a claim, as many as a reader can tell apart."""
    told = sorted({d.seeds for d in table.designs if d.claim == "reward"})
    return [seeds for seeds in told if seeds >= LEAST_SEEDS][:MOST_LINES] or [LEAST_SEEDS]


def _thinned(seeds: range) -> list[int]:
    """Return at most some twenty numbers of seeds."""
    return list(seeds[:: max(1, len(seeds) // 20)])


def _each(samples: int) -> str:
    return "" if samples == 1 else f", {samples} answers each"


def _frame(axes: Axes, across: str, up: str) -> None:
    axes.grid(color=GRID)
    axes.tick_params(length=0, labelcolor=MUTED)
    for spine in axes.spines.values():
        spine.set_color(GRID)
    axes.set_xlabel(across, color=MUTED)
    axes.set_ylabel(up, color=MUTED)
