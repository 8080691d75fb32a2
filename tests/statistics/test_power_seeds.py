"""How many seeds: limits, and a simulation of the claim itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from ahalab.statistics.power_seeds import (
    SeedPlan,
    reward_detectable_difference,
    reward_power,
)
from ahalab.statistics.seeds import reward_claim

PLAN = SeedPlan(n=500, seeds=3, discordance=0.1, seed_sd=0.01)


def test_where_seeds_dominate_power_is_that_of_the_t_test() -> None:
    plan = SeedPlan(n=10**7, seeds=5, discordance=0.1, seed_sd=0.02)
    shift = 0.03 / (0.02 / 5**0.5)
    critical = stats.t.ppf(0.975, 4)
    expected = stats.nct.sf(critical, 4, shift) + stats.nct.cdf(-critical, 4, shift)
    assert reward_power(plan, 0.03) == pytest.approx(float(expected), abs=0.005)
    assert reward_power(plan, 0.0) == pytest.approx(0.05, abs=0.003)  # both tails
    assert reward_power(plan, -0.03) == pytest.approx(reward_power(plan, 0.03))


@pytest.mark.parametrize("shared", [0.0, 0.5, 1.0])
def test_power_agrees_with_simulated_claims(shared: float) -> None:
    plan = replace(PLAN, seeds=4, shared=shared)
    rng = np.random.default_rng(10)
    # Normal stand-ins for the differences, with the planned variances, inside [-1, 1]
    spread, hits = 0.1**0.5, 0
    for _ in range(1500):
        of_question = rng.normal(0, spread * shared**0.5, 500)
        rest = rng.normal(0, spread * (1 - shared) ** 0.5, (4, 500))
        values = 0.03 + of_question + rest + rng.normal(0, 0.01, (4, 1))
        p_value = reward_claim(values / 3).p_value  # the claim does not depend on scale
        hits += p_value is not None and p_value <= 0.05
    assert hits / 1500 == pytest.approx(reward_power(plan, 0.03), abs=0.03)


def test_more_seeds_find_smaller_effects_and_one_seed_none() -> None:
    found = [reward_detectable_difference(replace(PLAN, seeds=s)) for s in (2, 3, 5, 10)]
    assert all(value is not None for value in found)
    assert found == sorted(found, reverse=True)
    assert reward_detectable_difference(replace(PLAN, seeds=1)) is None
    assert reward_power(replace(PLAN, seeds=1), 0.9) == 0.0
    assert reward_power(PLAN, found[1]) == pytest.approx(0.8, abs=1e-3)


def test_more_questions_do_not_help_beyond_the_seeds() -> None:
    few, many = replace(PLAN, n=1319, seed_sd=0.02), replace(PLAN, n=10**6, seed_sd=0.02)
    one, other = reward_detectable_difference(few), reward_detectable_difference(many)
    assert one is not None
    assert other is not None
    assert one / other < 1.2  # 758 times the questions


def test_no_effect_is_found_no_more_often_than_the_level() -> None:
    for seed_sd in (0.0, 0.005, 0.02, 0.1):
        assert reward_power(replace(PLAN, seed_sd=seed_sd), 0.0) <= 0.0505
    assert reward_detectable_difference(PLAN, power=0.001) == 0.0


@pytest.mark.parametrize(
    "change",
    [
        {"n": 1},
        {"seeds": 0},
        {"discordance": 0.0},
        {"discordance": 1.1},
        {"seed_sd": -0.1},
        {"seed_sd": float("nan")},
        {"shared": 1.1},
    ],
)
def test_impossible_plans_are_refused(change: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(change))):
        replace(PLAN, **change)  # type: ignore[arg-type]


def test_impossible_questions_are_refused() -> None:
    with pytest.raises(ValueError, match="difference"):
        reward_power(PLAN, 1.5)
    with pytest.raises(ValueError, match="power"):
        reward_detectable_difference(PLAN, power=1.0)
    with pytest.raises(ValueError, match="alpha"):
        reward_power(PLAN, 0.1, alpha=0.0)
