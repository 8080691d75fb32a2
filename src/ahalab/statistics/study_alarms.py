"""Alarms that need a whole study: an arm's seeds side by side, an adapter beside its base."""

from __future__ import annotations

from collections.abc import Mapping

from ahalab.records.run import Alarm

SAME_FRACTION = 0.99  # of an adapter's answers that equal the base's to the letter


def arm_alarms(
    *,
    control: bool,
    difference_points: float,
    spread_points: float | None,
    identical_fractions: Mapping[int, float],
) -> tuple[Alarm, ...]:
    """Return the alarms of one arm over its seeds.

    Args:
        control: Whether it is the control arm, whose effect is nothing by design.
        difference_points: Mean difference to the base over the seeds, primary metric.
        spread_points: Standard deviation over the seeds; None for one seed.
        identical_fractions: By seed, the share of answers that equal the base's.
    """
    found = (
        None if control else _seed_spread(difference_points, spread_points),
        _same_answers(identical_fractions),
    )
    return tuple(alarm for alarm in found if alarm is not None)


def _seed_spread(difference: float, spread: float | None) -> Alarm | None:
    if spread is None or spread <= abs(difference):
        return None
    return Alarm(
        name="seed_spread",
        evidence=f"seeds differ by {spread:.1f} points (standard deviation), the effect is "
        f"{difference:+.1f}",
        remedy="train more seeds before saying anything of the reward; train longer",
    )


def _same_answers(identical: Mapping[int, float]) -> Alarm | None:
    same = {seed: share for seed, share in identical.items() if share >= SAME_FRACTION}
    if not same:
        return None
    told = ", ".join(f"seed {seed}: {share:.1%}" for seed, share in sorted(same.items()))
    return Alarm(
        name="same_answers",
        evidence=f"the adapter answers as the base does, to the letter ({told})",
        remedy="raise the learning rate or the steps; see that groups have a gradient (diagnose)",
    )
