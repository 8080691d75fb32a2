"""One colour, dash and marker per arm, told apart without colour, in light and in dark.

Which arm takes which is `plan/looks.py`'s; the style sheet holds the colours, as variables, so that
one drawing serves both modes.
"""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from ahalab.plan.looks import arm_looks
from ahalab.records.plan import Plan
from ahalab.report.svg import PAPER, element

SHAPES = {  # around 0,0; as tall as a lower-case letter
    "o": "M0-4a4 4 0 1 0 .01 0z",
    "s": "M-3.5-3.5h7v7h-7z",
    "^": "M0-4.6l4.4 8h-8.8z",
    "D": "M0-4.9l4.9 4.9-4.9 4.9-4.9-4.9z",
    "v": "M0 4.6l4.4-8h-8.8z",
    "P": "M-1.7-4.6h3.4v2.9h2.9v3.4h-2.9v2.9h-3.4v-2.9h-2.9v-3.4h2.9z",
    "X": "M-2.6-4.6l2.6 2.6 2.6-2.6 2 2-2.6 2.6 2.6 2.6-2 2-2.6-2.6-2.6 2.6-2-2 2.6-2.6-2.6-2.6z",
}


@dataclass(frozen=True, slots=True)
class ArmStyle:
    """How an arm looks wherever it is drawn."""

    name: str
    colour: str  # a variable of the style sheet
    dashes: str | None  # lengths on and off; None: solid
    marker: str
    control: bool

    @property
    def label(self) -> str:
        """The arm's name as charts write it."""
        return f"{self.name} (control)" if self.control else self.name

    def mark(self, x: float, y: float) -> Markup:
        """Return the arm's marker at a place, with a rim that parts it from what it covers."""
        return element(
            "path", d=SHAPES[self.marker], transform=f"translate({x:.1f} {y:.1f})",
            fill=self.colour, stroke=PAPER, stroke_width="1",
        )  # fmt: skip

    @property
    def swatch(self) -> Markup:
        """The arm's line and marker, as a legend shows it."""
        stroke = element("path", d="M1 7H33", stroke=self.colour, stroke_width="2",
                         stroke_dasharray=self.dashes)  # fmt: skip
        return element("svg", stroke, self.mark(17, 7), class_="swatch", viewBox="0 0 34 14",
                       aria_hidden="true")  # fmt: skip


def arm_styles(plan: Plan) -> dict[str, ArmStyle]:
    """Return the style of every arm by name, in plan order; the control arm is grey and dashed."""
    return {
        name: ArmStyle(
            name,
            "var(--control)" if look.hue is None else f"var(--arm-{look.hue})",
            " ".join(f"{length:g}" for length in look.dash) or None,
            look.marker,
            look.hue is None,
        )
        for name, look in arm_looks(plan).items()
    }
