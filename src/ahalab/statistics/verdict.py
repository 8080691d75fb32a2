"""The verdict on one comparison: a name from a closed list, from numbers alone.

The order is the rule (STATISTICS.md): not comparable; improved or worse; equivalent; no evidence.
The sentence that a person reads is made elsewhere, from this.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ahalab.statistics.inputs import positive, probability
from ahalab.statistics.interval import Interval

VerdictName = Literal["improved", "worse", "equivalent", "no evidence", "not comparable"]
"""What a comparison may conclude."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict, and what its sentence must add."""

    name: VerdictName
    borderline: bool  # the unadjusted p and the interval disagree about 0
    smaller_than_margin: bool  # improved or worse, yet inside the margin
    lost_to_adjustment: bool  # p and interval speak for a change, the adjusted p does not
    undefined: bool  # comparable, but no interval: one seed, or nothing varies


def decide(
    p_adjusted: float | None,
    interval: Interval | None,
    *,
    margin: float | None = None,
    comparable: bool = True,
    alpha: float = 0.05,
    p_value: float | None = None,
) -> Verdict:
    """Decide between the five verdicts.

    A disagreement between p and interval is `no evidence` even inside the margin: one of the two
    speaks for a change, so `equivalent` would be too sure.

    Args:
        p_adjusted: Two-sided p after Holm, in [0, 1]; None where the test is undefined.
        interval: Interval of the difference (fractions) at confidence 1 - alpha; None where
            unknown.
        margin: Largest difference (fraction) that does not matter, from the plan; None: none
            planned.
        comparable: False when base and adapter were not measured under one protocol.
        alpha: Level, in (0, 1).
        p_value: Two-sided p before Holm; None: the same as `p_adjusted`. It tells a borderline
            result from one that only the adjustment took away.

    Returns:
        The verdict with its flags. Without an interval only `no evidence` is possible.

    Raises:
        ValueError: p outside [0, 1], adjusted p below the p it adjusts, margin not above 0.
    """
    alpha = probability("alpha", alpha)
    if margin is not None:
        margin = positive("margin", margin)
    raw = p_adjusted if p_value is None else p_value
    _refuse_p("p_adjusted", p_adjusted)
    _refuse_p("p_value", raw)
    if (p_adjusted is None) != (raw is None) or (
        p_adjusted is not None and raw is not None and p_adjusted < raw
    ):
        raise ValueError(f"p_adjusted: expected at least p_value={p_value}, found {p_adjusted}")
    if not comparable:
        return Verdict("not comparable", False, False, False, False)
    if interval is None:
        return Verdict("no evidence", False, False, False, True)

    inside = margin is not None and interval.inside(margin)
    significant = raw is not None and raw <= alpha
    borderline = significant != interval.excludes_zero
    lost_to_adjustment = (
        significant and interval.excludes_zero and p_adjusted is not None and p_adjusted > alpha
    )
    name: VerdictName = "no evidence"
    if significant and interval.excludes_zero and not lost_to_adjustment:
        name = "improved" if interval.low > 0.0 else "worse"
    elif inside and not borderline:
        name = "equivalent"
    changed = name in ("improved", "worse")
    return Verdict(name, borderline, changed and inside, lost_to_adjustment, False)


def _refuse_p(name: str, p: float | None) -> None:
    if p is not None and not 0.0 <= p <= 1.0:
        raise ValueError(f"{name}: expected a number in [0, 1] or None, found {p!r}")
