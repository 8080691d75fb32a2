"""A chart with its title, its description and the table behind it."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from ahalab.report.svg import element
from ahalab.report.tables import Table

LARGEST = 1.2  # CSS pixels per SVG unit where there is room; narrower places shrink it


@dataclass(frozen=True, slots=True)
class Figured:
    """A chart as the page shows it."""

    svg: Markup
    caption: str
    table: Table


@dataclass(frozen=True, slots=True)
class Canvas:
    """What a chart is called and how large it is."""

    key: str  # unique on the page; ids within the drawing start with it
    title: str
    description: str  # what it shows, in words: the numbers stand in the table behind it
    width: float
    height: float

    def close(self, *parts: Markup, links: bool = False) -> Markup:
        """Return the drawing; `links`: it holds some, so it is a group and not one image."""
        return element(
            "svg",
            element("title", Markup.escape(self.title), id=f"{self.key}-t"),
            element("desc", Markup.escape(self.description), id=f"{self.key}-d"),
            *parts,
            class_="chart",
            width=f"{LARGEST * self.width:g}",
            role="group" if links else "img",
            viewBox=f"0 0 {self.width:g} {self.height:g}",
            aria_labelledby=f"{self.key}-t",
            aria_describedby=f"{self.key}-d",
        )
