"""One colour, dash and marker per arm, told apart without colour, in light and in dark.

Which arm takes which is `plan/looks.py`'s; the style sheet holds the colours. A
chart is drawn with stand-ins, each replaced by a variable of the style sheet, so that one drawing
serves both modes.
"""

from __future__ import annotations

from dataclasses import dataclass

from ahalab.plan.looks import HUES, arm_looks
from ahalab.records.plan import Plan

INK = "#010101"  # stand-ins: colours that nothing else uses
MUTED = "#020202"
GRID = "#030303"
BAND = "#040404"
GAIN = "#050505"
LOSS = "#060606"
PAPER = "#070707"
CONTROL = "#080808"


@dataclass(frozen=True, slots=True)
class ArmStyle:
    """How an arm looks wherever it is drawn."""

    name: str
    stand_in: str  # the drawing's colour, to be replaced
    variable: str  # what replaces it
    dash: tuple[float, ...]  # lengths on and off; empty: solid
    marker: str
    control: bool


def arm_styles(plan: Plan) -> dict[str, ArmStyle]:
    """Return the style of every arm by name, in plan order; the control arm is grey and dashed."""
    return {
        name: ArmStyle(
            name,
            CONTROL if look.hue is None else f"#0a00{look.hue:02x}",
            "var(--control)" if look.hue is None else f"var(--arm-{look.hue})",
            look.dash,
            look.marker,
            look.hue is None,
        )
        for name, look in arm_looks(plan).items()
    }


def replacements() -> dict[str, str]:
    """Return what each stand-in becomes in the finished drawing."""
    fixed = {
        INK: "currentColor",
        MUTED: "var(--muted)",
        GRID: "var(--line)",
        BAND: "var(--band)",
        GAIN: "var(--gain)",
        LOSS: "var(--loss)",
        PAPER: "var(--paper)",
        CONTROL: "var(--control)",
    }
    return fixed | {f"#0a00{hue:02x}": f"var(--arm-{hue})" for hue in range(HUES)}
