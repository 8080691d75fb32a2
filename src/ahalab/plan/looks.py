"""How an arm looks wherever it is drawn: one hue, dash and marker each, in report and viewer.

Colours are Okabe and Ito's (2008, "Color Universal Design"); the style sheets hold their values.
Dash and marker tell arms apart without colour.
"""

from __future__ import annotations

from dataclasses import dataclass

from ahalab.records.plan import Plan

HUES = 6  # arm colours in the style sheets; dash and marker go on where they repeat
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


@dataclass(frozen=True, slots=True)
class ArmLook:
    """One arm's look."""

    hue: int | None  # number of its colour, `--arm-N`; None: the control arm, which is grey
    dash: tuple[float, ...]  # lengths on and off; empty: solid
    marker: str


def arm_looks(plan: Plan) -> dict[str, ArmLook]:
    """Return the look of every arm by name, in plan order; the control arm is grey and dashed."""
    looks = {}
    treatments = 0
    for arm in plan.arms:
        if arm.name == plan.control:
            looks[arm.name] = ArmLook(None, CONTROL_DASH, "X")
            continue
        hue, turn = treatments % HUES, treatments // HUES
        shape = (hue + turn) % len(DASHES)
        looks[arm.name] = ArmLook(hue, DASHES[shape], MARKERS[shape])
        treatments += 1
    return looks
