"""An interval of a difference of accuracies, and what it covers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Covers = Literal["questions", "seeds", "questions and seeds"]
"""Over what the interval generalises: other questions, other training seeds, or both."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Bounds of a difference, adapter minus base, as fractions in [-1, 1]."""

    low: float
    high: float
    covers: Covers = "questions"

    def __post_init__(self) -> None:
        """Refuse bounds that are NaN or the wrong way round."""
        if not self.low <= self.high:
            raise ValueError(f"interval: expected low <= high, found [{self.low}, {self.high}]")

    @property
    def excludes_zero(self) -> bool:
        """Whether 0 lies strictly outside."""
        return self.low > 0.0 or self.high < 0.0

    def contains(self, difference: float) -> bool:
        """Whether `difference` (fraction) lies inside, bounds included."""
        return self.low <= difference <= self.high

    def inside(self, margin: float) -> bool:
        """Whether every value is smaller than `margin` (fraction) in size, on both sides."""
        return -margin < self.low and self.high < margin


def clipped(centre: float, half_width: float, covers: Covers) -> Interval:
    """A symmetric interval cut at the bounds that a difference of accuracies cannot pass."""
    return Interval(max(-1.0, centre - half_width), min(1.0, centre + half_width), covers)
