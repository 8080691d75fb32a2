"""One colour, dash and marker per arm, told apart without colour, in light and in dark.

Colours are Okabe and Ito's (2008, "Color Universal Design"); the style sheet holds their values. A
chart is drawn with stand-ins, each replaced by a variable of the style sheet, so that one drawing
serves both modes.
"""

from __future__ import annotations

from dataclasses import dataclass

from ahalab.records.plan import Plan

INK = "#010101"  # stand-ins: colours that nothing else uses
MUTED = "#020202"
GRID = "#030303"
BAND = "#040404"
GAIN = "#050505"
LOSS = "#060606"
PAPER = "#070707"
HUES = 6  # arm colours in the style sheet; dash and marker go on where they repeat
DASHES: tuple[tuple[float, ...], ...] = (
    (),
    (6, 2),
    (2, 1.5),
    (7, 2, 1.5, 2),
    (10, 3),
    (4, 1, 1, 1, 1, 1),
)
MARKERS = ("o", "s", "^", "D", "v", "P")
CONTROL_DASH = (3.0, 2.0)
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
    styles = {}
    treatments = 0
    for arm in plan.arms:
        if arm.name == plan.control:
            styles[arm.name] = ArmStyle(
                arm.name, CONTROL, "var(--control)", CONTROL_DASH, "X", True
            )
            continue
        hue, turn = treatments % HUES, treatments // HUES
        shape = (hue + turn) % len(DASHES)
        styles[arm.name] = ArmStyle(
            arm.name, f"#0a00{hue:02x}", f"var(--arm-{hue})", DASHES[shape], MARKERS[shape], False
        )
        treatments += 1
    return styles


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
