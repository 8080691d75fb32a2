"""Power of designs of N questions, k answers and S seeds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from ahalab.statistics.design import (
    Design,
    Noise,
    design_detectable,
    design_power,
    questions_needed,
)
from ahalab.statistics.power import mcnemar_power
from ahalab.statistics.power_seeds import SeedPlan, reward_power

NOISE = Noise(discordance=0.14, seed_sd=0.01)


def test_the_published_power_for_four_points_at_500_questions() -> None:
    # STATISTICS.md: 68 % in 2,000 simulated studies, 5 % lost and 9 % gained
    assert design_power(Design(500), NOISE, 0.04) == pytest.approx(0.68, abs=0.02)


def test_a_claim_on_one_adapter_is_mcnemars_and_one_on_a_reward_that_over_seeds() -> None:
    assert design_power(Design(300), NOISE, -0.05) == mcnemar_power(0.045, 0.095, 300)
    plan = SeedPlan(300, 5, 0.14, 0.01)
    assert design_power(Design(300, seeds=5), NOISE, 0.05) == reward_power(plan, 0.05)


@pytest.mark.parametrize("questions", [2, 500, 10**6])
def test_one_seed_carries_no_claim_on_a_reward_whatever_the_questions(questions: int) -> None:
    one = Design(questions, seeds=1)
    assert design_power(one, NOISE, 0.14) == 0.0
    assert design_detectable(one, NOISE) is None
    assert questions_needed(one, NOISE, 0.14) is None


def test_an_unknown_spread_over_seeds_carries_no_claim_on_a_reward() -> None:
    unknown = replace(NOISE, seed_sd=None)
    assert design_power(Design(500, seeds=5), unknown, 0.1) == 0.0
    assert design_power(Design(500), unknown, 0.1) > 0.9


def test_more_answers_reduce_the_sampling_noise_alone() -> None:
    noise = replace(NOISE, sampling_share=0.6)
    assert noise.of_means(1) == pytest.approx(0.14)
    assert noise.of_means(4) == pytest.approx(0.14 * (0.4 + 0.6 / 4))
    assert NOISE.of_means(64) == pytest.approx(0.14)  # greedy: the same answer again


def test_power_with_several_answers_agrees_with_simulated_t_tests() -> None:
    # base and adapter: accuracy .5 and .5 + shift_i; shift_i is +-.2 around .05
    rng = np.random.default_rng(8)
    questions, samples, effect, runs = 200, 4, 0.05, 1500
    shift = effect + rng.choice([-0.2, 0.2], (runs, questions))
    base = rng.binomial(samples, 0.5, shift.shape) / samples
    adapter = rng.binomial(samples, 0.5 + shift) / samples
    hits = stats.ttest_1samp(adapter - base, 0.0, axis=1).pvalue <= 0.05
    of_answers = 0.25 + float(np.mean((0.5 + shift) * (0.5 - shift)))  # p(1 - p), both sides
    between = float(np.mean(shift**2))
    noise = Noise(between + of_answers, None, sampling_share=of_answers / (between + of_answers))
    planned = design_power(Design(questions, samples), noise, effect)
    assert planned == pytest.approx(hits.mean(), abs=0.04)


@pytest.mark.parametrize("design", [Design(400), Design(400, 4), Design(400, 1, 5)])
def test_the_smallest_difference_is_found_as_often_as_asked_for(design: Design) -> None:
    noise = Noise(0.14, 0.005, sampling_share=0.5)
    found = design_detectable(design, noise, power=0.9)
    assert found is not None
    assert design_power(design, noise, found) == pytest.approx(0.9, abs=2e-3)


@pytest.mark.parametrize("design", [Design(2), Design(2, 4), Design(2, 1, 5), Design(2, 4, 10)])
def test_the_questions_needed_are_the_fewest_that_do(design: Design) -> None:
    noise = Noise(0.14, 0.005, sampling_share=0.5)
    enough = questions_needed(design, noise, 0.04)
    assert enough is not None
    assert design_power(replace(design, questions=enough), noise, 0.04) >= 0.8
    fewer = replace(design, questions=int(0.96 * enough))
    assert design_power(fewer, noise, 0.04) < 0.8


def test_where_seeds_dominate_no_number_of_questions_is_enough() -> None:
    assert questions_needed(Design(2, seeds=3), replace(NOISE, seed_sd=0.05), 0.04) is None


def test_every_power_is_a_probability_far_from_zero_too() -> None:
    noise = Noise(0.2, 0.005, sampling_share=0.6)  # scipy's other tail is NaN in places there
    for questions in (200, 500, 5000, 10**6):
        for difference in (0.0, 0.01, 0.05, 0.1, 0.15, 0.2):
            assert 0.0 <= design_power(Design(questions, 8), noise, difference) <= 1.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Noise(0.0, 0.01), "discordance"),
        (lambda: Noise(0.1, -0.01), "seed_sd"),
        (lambda: Noise(0.1, 0.01, shared=2.0), "shared"),
        (lambda: Noise(0.1, 0.01, sampling_share=float("nan")), "sampling_share"),
        (lambda: Design(1), "questions"),
        (lambda: Design(10, 0), "samples"),
        (lambda: Design(10, 1, 0), "seeds"),
        (lambda: design_power(Design(10), NOISE, 0.2), "difference"),
        (lambda: design_power(Design(10), NOISE, float("nan")), "difference"),
        (lambda: design_power(Design(10), NOISE, 0.1, alpha=1.0), "alpha"),
        (lambda: design_detectable(Design(10), NOISE, power=0.0), "power"),
        (lambda: questions_needed(Design(10), NOISE, 0.1, power=1.0), "power"),
    ],
)
def test_impossible_plans_are_refused(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()  # type: ignore[operator]
