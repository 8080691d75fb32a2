"""The style of the one picture that matplotlib draws (power), and a figure to draw it on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib
import matplotlib.style
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

INK, MUTED, GRID = "#1b1b1b", "#5a5d61", "#dcdde0"  # report.css, light
UNITS_PER_INCH = 72  # an SVG unit is a point; a page shows it as a CSS pixel
STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",  # measured with it; the page's own font is shown
    "font.size": 11.0,
    "text.color": INK,
    "text.parse_math": False,
    "axes.facecolor": "none",
    "axes.labelcolor": MUTED,
    "axes.edgecolor": GRID,
    "axes.linewidth": 1.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.unicode_minus": True,
    "axes.formatter.useoffset": False,
    "axes.axisbelow": True,
    "xtick.color": GRID,
    "ytick.color": GRID,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "hatch.linewidth": 1.2,
    "path.simplify": True,
    "svg.fonttype": "none",
    "svg.hashsalt": "ahalab",
}


@contextmanager
def drawing_style() -> Iterator[None]:
    """Draw in the report's style, whatever the user's own matplotlib settings are."""
    with matplotlib.style.context("default"), matplotlib.rc_context(STYLE):
        yield


def new_figure(width: float, height: float) -> Figure:
    """Return an empty, transparent figure of so many SVG units."""
    figure = Figure(
        figsize=(width / UNITS_PER_INCH, height / UNITS_PER_INCH),
        layout=ConstrainedLayoutEngine(w_pad=0.03, h_pad=0.03),
    )
    figure.patch.set_visible(False)
    return figure
