"""Small pieces of SVG: elements with everything escaped, scales, ticks, and an axis frame.

Drawn by hand and not by matplotlib, because a chart of the page is also a control: its segments are
links, its numbers name the claims that they print, its colours are the style sheet's, so that one
drawing serves light, dark and paper, and no element needs a style of its own (the page's policy
allows none). Coordinates are SVG units, which the page shows as CSS pixels where there is room.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

INK, MUTED, GRID, PAPER = "currentColor", "var(--muted)", "var(--line)", "var(--paper)"
FONT = 12  # SVG units
HATCH = 6.0  # between slanting lines
CHARACTER = 6.6  # rough width of one character at that size
MAX_POINTS = 200  # drawn per line; of longer runs every k-th step
Point = tuple[float, float]


def element(tag: str, *children: str, **attributes: str | float | None) -> Markup:
    """Return an element; None leaves an attribute out, `class_` is `class`, `_` is `-`."""
    parts = [
        Markup(' {}="{}"').format(
            name.rstrip("_").replace("_", "-"), _shown(value) if isinstance(value, float) else value
        )
        for name, value in attributes.items()
        if value is not None
    ]
    body = Markup("").join(children)
    # The tag is a literal of this package; children and values were escaped as they were joined.
    opening = Markup("<" + tag) + Markup("").join(parts)  # noqa: S704
    return opening + (Markup(">") + body + Markup(f"</{tag}>") if body else Markup("/>"))  # noqa: S704


def _shown(value: float) -> str:
    """Return a coordinate to a tenth of a pixel."""
    return f"{round(value, 1) + 0.0:g}"


@dataclass(frozen=True, slots=True)
class Scale:
    """A linear scale from values to SVG units."""

    low: float
    high: float
    start: float  # where `low` lies
    end: float

    def __call__(self, value: float) -> float:
        """Return where a value lies."""
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return self.start + share * (self.end - self.start)


def ticks(low: float, high: float, wanted: int = 4) -> tuple[float, ...]:
    """Return round values (steps of 1, 2 or 5 times a power of ten) that span a range.

    The first is at most `low`, the last at least `high`; a range of one value is widened.
    """
    if high <= low:
        room = abs(low) * 0.1 or 1.0
        low, high = low - room, high + room
    raw = (high - low) / wanted
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= raw * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return tuple(round(at * step, 12) for at in range(first, last + 1))


def text(at: Point, words: str, *, anchor: str = "start", **more: str | float | None) -> Markup:
    """Return a text whose middle height is at a point."""
    style = {"font_size": f"{FONT}", "fill": INK, **more}
    x, y = at
    return element("text", Markup.escape(words), x=x, y=y + 4.0, text_anchor=anchor, **style)


def line(one: Point, other: Point, stroke: str = GRID, **more: str | float | None) -> Markup:
    """Return a straight line."""
    (x1, y1), (x2, y2) = one, other
    style = {"stroke": stroke, "stroke_width": "1", **more}
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, **style)


def rectangle(one: Point, other: Point, **more: str | float | None) -> Markup:
    """Return the rectangle between two corners."""
    (x1, y1), (x2, y2) = one, other
    return element(
        "rect", x=min(x1, x2), y=min(y1, y2), width=abs(x2 - x1), height=abs(y2 - y1), **more
    )


def polyline(points: Sequence[Point], **more: str | float | None) -> Markup:
    """Return a line through points."""
    return element("path", d=path(points), fill="none", **more)


def area(upper: Sequence[Point], lower: Sequence[Point], **more: str | float | None) -> Markup:
    """Return the area between two lines over the same places."""
    return element("path", d=path([*upper, *reversed(lower)]) + "z", **more)


def path(points: Iterable[Point]) -> str:
    """Return the path data of a line through points."""
    return "M" + "L".join(f"{_shown(x)} {_shown(y)}" for x, y in points)


def hatched(key: str, upper: Sequence[Point], lower: Sequence[Point], colour: str) -> Markup:
    """Return the area between two lines, filled with slanting lines.

    Lines and no pattern: Chromium prints a pattern as an image, of megabytes.
    """
    outline = element("path", d=path([*upper, *reversed(lower)]) + "z")
    xs, ys = zip(*upper, *lower, strict=True)
    left, right, top, bottom = min(xs), max(xs), min(ys), max(ys)
    height = bottom - top
    starts = [left - height + HATCH * n for n in range(int((right - left + height) / HATCH) + 1)]
    d = "".join(path([(x, bottom), (x + height, top)]) for x in starts)
    return element("clipPath", outline, id=key) + element(
        "path", d=d or None, stroke=colour, stroke_width="1.3", clip_path=f"url(#{key})"
    )


@dataclass(frozen=True, slots=True)
class Frame:
    """Where a panel's values lie."""

    x: Scale
    y: Scale
    y_ticks: tuple[float, ...]

    def points(self, series: dict[int, float]) -> list[Point]:
        """Return the points of a series: every k-th where there are too many."""
        every = max(1, -(-len(series) // MAX_POINTS))
        return [(self.x(step), self.y(series[step])) for step in list(series)[::every]]

    def draw(
        self, label: Callable[[float], str], *, steps: tuple[float, ...], named: bool
    ) -> Markup:
        """Return the grid, its labels, and the step axis (its name too where `named`)."""
        parts: list[Markup] = []
        left, right, bottom = self.x.start, self.x.end, self.y.start
        for value in self.y_ticks:
            at = self.y(value)
            parts.append(line((left, at), (right, at)))
            parts.append(text((left - 6, at), label(value), anchor="end", fill=MUTED))
        for value in steps:
            at = self.x(value)
            parts.append(line((at, bottom), (at, bottom + 4)))
            if named:
                parts.append(text((at, bottom + 13), f"{value:g}", anchor="middle", fill=MUTED))
        if named:
            parts.append(text((right, bottom + 28), "step", anchor="end", fill=MUTED))
        return Markup("").join(parts)


def spread(places: Sequence[float], room: float, low: float, high: float) -> list[float]:
    """Return label places moved apart to at least `room`, in the same order, within a range."""
    order = sorted(range(len(places)), key=lambda at: places[at])
    moved = [0.0] * len(places)
    floor = low
    for at in order:
        moved[at] = floor = max(places[at], floor)
        floor += room
    ceiling = high
    for at in reversed(order):
        moved[at] = ceiling = min(moved[at], ceiling)
        ceiling -= room
    return moved
