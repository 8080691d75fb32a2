"""Turns a matplotlib figure into SVG: the same bytes each time, coloured by the style sheet."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib
import matplotlib.style
from markupsafe import Markup
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from ahalab.report.palette import GRID, INK, MUTED, replacements

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


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing with what stands beside it and behind it."""

    svg: Markup
    title: str


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


def to_chart(figure: Figure, key: str, title: str, description: str) -> Chart:
    """Return a figure as inline SVG with a text alternative.

    Args:
        figure: What was drawn, inside `drawing_style`.
        key: Unique on the page; every id within the drawing starts with it.
        title: What it is, for who cannot see it.
        description: What it shows.
    """
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Type": None})
    body = _body(buffer.getvalue())
    body = re.sub(r' id="(?:figure|patch|axes|line2d|text|matplotlib|xtick|ytick)[^"]*"', "", body)
    body = re.sub(r'( id="|url\(#|xlink:href="#)', rf"\g<1>{key}-", body)
    body = re.sub(r"font: ([\d.]+px)[^;\"]*", r"font-size: \1", body)
    for stand_in, colour in replacements().items():
        body = body.replace(stand_in, colour)
    width, height = (round(side * UNITS_PER_INCH) for side in figure.get_size_inches())
    opening = Markup(
        '<svg class="chart" role="img" viewBox="0 0 {width} {height}" '
        'aria-labelledby="{key}-t {key}-d"><title id="{key}-t">{title}</title>'
        '<desc id="{key}-d">{description}</desc>'
    ).format(width=width, height=height, key=key, title=title, description=description)
    # What matplotlib wrote is escaped by matplotlib; texts reach it made visible.
    return Chart(opening + Markup(body) + Markup("</svg>"), title)  # noqa: S704


def _body(svg: str) -> str:
    """Return what stands inside the svg element, less metadata and a style that would leak."""
    inner = svg[svg.index(">", svg.index("<svg")) + 1 : svg.rindex("</svg>")]
    inner = re.sub(r"<metadata>.*?</metadata>", "", inner, flags=re.DOTALL)
    inner = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", inner, flags=re.DOTALL)
    inner = re.sub(r"<!--.*?-->", "", inner, flags=re.DOTALL)
    return re.sub(r"\n\s*", "\n", inner).strip()
