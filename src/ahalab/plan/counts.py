"""Numbers of a plan that say how much there is of something: bounded, since others' plans are read.

Whoever reads a plan counts up to them, `ahalab verify` among them: what no study has would keep it
busy for years.
"""

from __future__ import annotations

from ahalab.errors import PlanError

MOST = 10_000_000  # prompts, steps, tokens
MOST_SAMPLES = 10_000  # answers to each question


def require_count(key: str, value: int, most: int = MOST) -> None:
    """Refuse a count that is none, or beyond all use.

    Args:
        key: Its place in the plan.
        value: What stands there.
        most: The largest that is taken.

    Raises:
        PlanError: It is below 1 or above `most`.
    """
    if not 1 <= value <= most:
        raise PlanError(f"{key}: expected a number from 1 to {most:,}, found {value}.")
