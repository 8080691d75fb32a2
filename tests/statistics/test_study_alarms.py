"""Alarms over an arm's seeds, each both ways."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from ahalab.statistics.study_alarms import arm_alarms


def names(
    difference: float = 10.0,
    spread: float | None = 3.0,
    identical: Mapping[int, float] | None = None,
    *,
    control: bool = False,
) -> list[str]:
    found = arm_alarms(
        control=control,
        difference_points=difference,
        spread_points=spread,
        identical_fractions=identical or {1: 0.2, 2: 0.3},
    )
    return [alarm.name for alarm in found]


@pytest.mark.parametrize(("difference", "spread"), [(2.0, 2.1), (-2.0, 2.1), (0.0, 0.1)])
def test_seeds_further_apart_than_the_effect_are_told(difference: float, spread: float) -> None:
    assert names(difference, spread) == ["seed_spread"]


@pytest.mark.parametrize(("difference", "spread"), [(10.0, 3.0), (-10.0, 10.0), (0.0, 0.0)])
def test_seeds_closer_than_the_effect_are_not(difference: float, spread: float) -> None:
    assert names(difference, spread) == []


def test_one_seed_has_no_spread_and_a_control_no_effect() -> None:
    assert names(0.1, None) == []
    assert names(0.1, 5.0, control=True) == []


def test_an_adapter_that_answers_as_its_base_is_told_with_its_seed() -> None:
    assert names(identical={1: 0.2, 2: 0.99}) == ["same_answers"]
    assert names(identical={1: 0.2, 2: 0.98}) == []
    (alarm,) = arm_alarms(
        control=True, difference_points=0.0, spread_points=0.0, identical_fractions={7: 1.0, 8: 0.5}
    )
    assert "seed 7: 100.0%" in alarm.evidence
    assert "seed 8" not in alarm.evidence
