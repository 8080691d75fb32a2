"""Claims on a reward: formulas worked out another way, and the error rates of simulated studies."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from ahalab.statistics.paired import mcnemar_midp
from ahalab.statistics.power_seeds import SeedPlan, reward_power
from ahalab.statistics.seeds import arm_against_control, reward_claim

MEAN_ACCURACY = 0.4  # of the generator's Beta(.6, .9)


def base_correct(rng: np.random.Generator, n: int, k: int) -> np.ndarray:
    """Correct base answers of k, shape (N,): drawn once, the same for every seed."""
    return rng.binomial(k, rng.beta(0.6, 0.9, n))


def adapters(rng: np.random.Generator, base: np.ndarray, k: int, shifts: np.ndarray) -> np.ndarray:
    """Differences (S, N): each adapter redraws 10 % of the base's answers, shifted by its seed."""
    chance = np.clip(MEAN_ACCURACY + shifts / 0.10, 0.0, 1.0)[:, None]
    if k == 1:
        drawn = rng.random((len(shifts), len(base)), dtype=np.float32)
        gained = (base == 0) & (drawn < 0.10 * chance)
        lost = (base == 1) & (drawn < 0.10 * (1.0 - chance))
        return gained.astype(float) - lost
    gained = rng.binomial(k - base, 0.10 * chance)
    return (gained - rng.binomial(base, 0.10 * (1.0 - chance))) / k


@pytest.mark.parametrize("k", [1, 8])
@pytest.mark.parametrize("n", [200, 500, 1319])
@pytest.mark.parametrize("seeds", [3, 5])
@pytest.mark.parametrize("seed_sd", [0.0, 0.01, 0.02])
def test_a_claim_on_the_reward_keeps_its_promises(
    k: int, n: int, seeds: int, seed_sd: float
) -> None:
    studies = 1000 if (k, n) == (8, 1319) else 1500
    rng = np.random.default_rng([k, n, seeds, round(100 * seed_sd)])
    false_positives = covered = 0
    for _ in range(studies):
        base = base_correct(rng, n, k)
        found = reward_claim(adapters(rng, base, k, rng.normal(0.0, seed_sd, seeds)))
        assert found.p_value is not None
        assert found.interval is not None
        false_positives += found.p_value <= 0.05
        covered += found.interval.contains(0.0)
    # 8,000 studies a cell gave 0.4 to 4.7 %; here two Monte Carlo errors are allowed.
    noise = 2.0 * math.sqrt(0.05 * 0.95 / studies)
    assert false_positives / studies <= 0.055 + noise
    assert covered / studies >= 0.94 - noise


def test_one_adapter_would_have_claimed_too_much_of_the_same_studies() -> None:
    # STATISTICS.md: 28.8 % at a seed spread of 1 point and N = 1,319; 54.5 % at 2 points
    rng = np.random.default_rng(1)
    for seed_sd, expected in ((0.01, 0.288), (0.02, 0.545)):
        wrong = 0
        for _ in range(1000):
            base = base_correct(rng, 1319, 1)
            row = adapters(rng, base, 1, rng.normal(0.0, seed_sd, 1))[0]
            p_value = mcnemar_midp(int((row > 0).sum()), int((row < 0).sum()))
            wrong += p_value is not None and p_value <= 0.05
        assert wrong / 1000 == pytest.approx(expected, abs=0.05)


def test_an_arm_equal_to_its_control_is_seldom_called_different() -> None:
    rng = np.random.default_rng(6)
    for seed_sds in ((0.02, 0.0), (0.02, 0.02)):
        wrong = 0
        for _ in range(1000):
            base = base_correct(rng, 500, 4)
            treatment, control = (adapters(rng, base, 4, rng.normal(0.0, sd, 3)) for sd in seed_sds)
            p_value = arm_against_control(treatment, control).p_value
            wrong += p_value is not None and p_value <= 0.05
        assert wrong / 1000 <= 0.055


def test_a_true_effect_is_found_as_often_as_planned() -> None:
    rng = np.random.default_rng(2)
    found = 0
    for _ in range(800):
        base = base_correct(rng, 500, 1)
        shifts = rng.normal(0.03, 0.01, 5)
        p_value = reward_claim(adapters(rng, base, 1, shifts)).p_value
        found += p_value is not None and p_value <= 0.05
    # discordance: 10 % redrawn, wrong to right .6 * (.4 + .3), right to wrong .4 * .3
    plan = SeedPlan(n=500, seeds=5, discordance=0.10 * (0.6 * 0.7 + 0.4 * 0.3), seed_sd=0.01)
    assert found / 800 == pytest.approx(reward_power(plan, 0.03), abs=0.06)


def by_analysis_of_variance(values: np.ndarray) -> tuple[float, float, float]:
    """Squared errors of questions, seeds and rest from the mean squares of a balanced table."""
    seeds, n = values.shape
    grand, by_seed, by_question = values.mean(), values.mean(axis=1), values.mean(axis=0)
    questions = seeds * float(((by_question - grand) ** 2).sum()) / (n - 1)
    of_seeds = n * float(((by_seed - grand) ** 2).sum()) / (seeds - 1)
    left = sum(
        (values[s, i] - by_seed[s] - by_question[i] + grand) ** 2
        for s in range(seeds)
        for i in range(n)
    )
    rest = float(left) / ((seeds - 1) * (n - 1))
    return questions / (seeds * n), of_seeds / (seeds * n), rest / (seeds * n)


tables = hnp.arrays(
    np.float64,
    st.tuples(st.integers(2, 5), st.integers(2, 12)),
    elements=st.integers(-4, 4).map(lambda i: i / 4),
)


@settings(max_examples=60)
@given(tables)
def test_the_parts_are_those_of_an_analysis_of_variance(values: np.ndarray) -> None:
    questions, of_seeds, rest = by_analysis_of_variance(values)
    found = reward_claim(values)
    assert found.questions_error == pytest.approx(math.sqrt(questions), abs=1e-9)
    assert found.seeds_error == pytest.approx(math.sqrt(of_seeds), abs=1e-9)
    assert found.rest_error == pytest.approx(math.sqrt(rest), abs=1e-9)
    two_way = max(questions, of_seeds, questions + of_seeds - rest)
    assert (found.standard_error or 0.0) == pytest.approx(math.sqrt(two_way), abs=1e-9)
    assert found.by_seed == pytest.approx(values.mean(axis=1))
    assert found.difference == pytest.approx(values.mean())


@settings(max_examples=60)
@given(tables)
def test_p_is_small_exactly_where_the_interval_excludes_zero(values: np.ndarray) -> None:
    found = reward_claim(values)
    if found.interval is None or found.p_value is None:
        assert (found.interval, found.p_value, found.standard_error) == (None, None, None)
        return
    if abs(found.p_value - 0.05) > 1e-9:
        assert (found.p_value < 0.05) == found.interval.excludes_zero
    assert found.interval.contains(found.difference)
    assert found.interval.covers == "questions and seeds"


def test_the_interval_worked_by_hand() -> None:
    # seed means .75 .25 .50: variance .0625, SE_s^2 = .0625 / 3
    # question means 2/3 1/3 2/3 1/3: SE_q^2 = (4 / 36) / 3 / 4 = 1 / 108
    values = np.array([[1, 1, 1, 0], [0, 0, 1, 0], [1, 0, 0, 1]], dtype=float)
    found = reward_claim(values)
    half = math.sqrt(4.302653**2 * 0.0625 / 3 + 3.182446**2 / 108)
    assert found.difference == pytest.approx(0.5)
    assert found.interval is not None
    assert found.interval.low == pytest.approx(0.5 - half, abs=1e-6)
    assert found.degrees_of_freedom == 2


def test_the_detectable_change_worked_by_hand() -> None:
    # The table above, its differences a quarter as large. SE is never below the seeds' part.
    values = np.array([[1, 1, 1, 0], [0, 0, 1, 0], [1, 0, 0, 1]], dtype=float) / 4
    half = math.sqrt(4.302653**2 * 0.0625 / 3 + 3.182446**2 / 108) / 4
    found = reward_claim(values).detectable()
    assert found == pytest.approx(half + 0.841621 * math.sqrt(0.0625 / 3) / 4, abs=1e-6)
    assert reward_claim(values[:1]).detectable() is None


def test_an_interval_that_is_cut_does_not_make_small_changes_detectable() -> None:
    values = np.array([[1, 1, 1, 1], [-1, -1, -1, 0]], dtype=float)
    found = reward_claim(values)
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == (-1.0, 1.0)
    assert found.detectable() == 1.0


def test_where_only_seeds_differ_it_is_the_t_test_on_seed_means() -> None:
    by_seed = [0.03, 0.01, 0.02]
    found = reward_claim(np.repeat(np.array(by_seed)[:, None], 50, axis=1))
    oracle = stats.ttest_1samp(by_seed, 0.0)
    low, high = oracle.confidence_interval(0.95)
    assert found.p_value == pytest.approx(float(oracle.pvalue), rel=1e-6)
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == pytest.approx((low, high), rel=1e-6)


def test_where_the_seeds_agree_the_questions_still_count() -> None:
    row = np.array([1.0] * 9 + [-1.0] * 3 + [0.0] * 38)
    found = reward_claim(np.stack([row] * 3))
    oracle = stats.ttest_1samp(row, 0.0)
    assert found.seeds_error == pytest.approx(0.0, abs=1e-12)
    assert found.p_value == pytest.approx(float(oracle.pvalue), rel=1e-6)


def test_one_seed_says_nothing_of_the_reward() -> None:
    found = reward_claim([[1.0, 0.0, 0.0, 1.0, -1.0]])
    assert found.difference == pytest.approx(0.2)
    assert (found.interval, found.p_value, found.standard_error) == (None, None, None)
    assert found.degrees_of_freedom is None
    one_control = arm_against_control([[1.0, 0.0], [0.0, 0.0]], [[0.0, 1.0]])
    assert (one_control.interval, one_control.p_value) == (None, None)
    assert (one_control.seeds, one_control.control_seeds) == (2, 1)


def test_nothing_that_varies_leaves_the_error_unknown() -> None:
    for same in (0.0, 0.1, 0.125):  # the mean of three times 0.1 is not 0.1 to the last bit
        found = reward_claim(np.full((3, 20), same))
        assert found.difference == pytest.approx(same)
        assert (found.standard_error, found.interval, found.p_value) == (None, None, None)


def test_repeated_questions_in_one_cluster_change_nothing() -> None:
    values = np.random.default_rng(3).integers(-1, 2, size=(4, 30)).astype(float)
    once = reward_claim(values)
    again = reward_claim(np.tile(values, 3), clusters=list(range(30)) * 3)
    assert (again.questions, again.clusters) == (90, 30)
    assert again.standard_error == pytest.approx(once.standard_error)
    assert again.rest_error == pytest.approx(once.rest_error)
    assert again.p_value == pytest.approx(once.p_value)
    pooled = reward_claim(np.tile(values, 3))
    assert pooled.questions_error < 0.9 * once.questions_error  # what clusters prevent


def test_arm_against_control_worked_by_hand() -> None:
    # only seeds differ: difference .02, SE_s^2 = .0001 / 3 + .0002 / 2; t 4.302653 and 12.706205
    treatment = np.repeat([[0.04], [0.02], [0.03]], 40, axis=1)
    control = np.repeat([[0.00], [0.02]], 40, axis=1)
    found = arm_against_control(treatment, control)
    half = math.sqrt(4.302653**2 * 0.0001 / 3 + 12.706205**2 * 0.0002 / 2)
    assert found.difference == pytest.approx(0.02)
    assert found.seeds_error == pytest.approx(math.sqrt(0.0001 / 3 + 0.0002 / 2))
    assert found.interval is not None
    assert found.interval.high == pytest.approx(0.02 + half, abs=1e-6)
    assert found.degrees_of_freedom == 1


def test_what_both_arms_share_cancels_and_swapping_them_mirrors() -> None:
    rng = np.random.default_rng(9)
    treatment, control = rng.uniform(-0.4, 0.4, (3, 60)), rng.uniform(-0.4, 0.4, (5, 60))
    shared = rng.uniform(-0.5, 0.5, 60)  # the base's luck on each question
    plain = arm_against_control(treatment, control)
    moved = arm_against_control(treatment + shared, control + shared)
    swapped = arm_against_control(control, treatment)
    assert moved.p_value == pytest.approx(plain.p_value)
    assert moved.standard_error == pytest.approx(plain.standard_error)
    assert swapped.difference == pytest.approx(-plain.difference)
    assert swapped.p_value == pytest.approx(plain.p_value)
    assert plain.interval is not None
    assert swapped.interval is not None
    assert swapped.interval.low == pytest.approx(-plain.interval.high)


def test_a_tiny_p_keeps_its_digits() -> None:
    by_seed = [0.5, 0.5001, 0.4999, 0.5, 0.5]
    found = reward_claim(np.repeat(np.array(by_seed)[:, None], 10, axis=1))
    assert found.p_value == pytest.approx(
        float(stats.ttest_1samp(by_seed, 0).pvalue), rel=1e-5, abs=0
    )
    centred = reward_claim([[0.5, -0.5], [-0.5, 0.5]])
    assert centred.p_value is None or centred.p_value == 1.0


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0.1, 0.2], "2 axes"),
        ([[0.1, 0.2], [0.1]], "equal length"),
        ([[0.1, float("nan")]], "NaN"),
        ([[]], "none of them empty"),
        ([[2.0, 0.0]], r"\[-1, 1\]"),
    ],
)
def test_bad_tables_are_refused(values: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        reward_claim(values)  # type: ignore[arg-type]


def test_arms_on_other_questions_are_refused() -> None:
    with pytest.raises(ValueError, match="control_TN: expected 3 questions, found 2"):
        arm_against_control([[0.0, 0.1, 0.2]], [[0.0, 0.1]])
    with pytest.raises(ValueError, match="confidence"):
        reward_claim([[0.0, 0.1], [0.1, 0.0]], confidence=95)
