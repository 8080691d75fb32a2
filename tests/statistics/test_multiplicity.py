"""Holm against statsmodels and by hand; max-T against every sign flip there is."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from ahalab.statistics.multiplicity import holm, max_t

p_values = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12)


def test_holm_worked_by_hand() -> None:
    # 3 * .01; 2 * .03; then 1 * .04, lifted to the one before
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


@settings(max_examples=20, deadline=None)  # the oracle takes 50 ms
@given(p_values)
def test_holm_agrees_with_statsmodels(values: list[float]) -> None:
    oracle = multipletests(values, method="holm")[1]
    assert holm(values) == pytest.approx(oracle.tolist(), rel=1e-12, abs=0)


@given(p_values)
def test_holm_keeps_the_order_and_never_lowers(values: list[float]) -> None:
    adjusted = [p for p in holm(values) if p is not None]
    assert all(new >= old for new, old in zip(adjusted, values, strict=True))
    by_raw = [new for _, new in sorted(zip(values, adjusted, strict=True))]
    assert by_raw == sorted(by_raw)


def test_an_undefined_test_stays_undefined_and_takes_no_part_of_alpha() -> None:
    assert holm([0.02, None, 0.04]) == pytest.approx([0.04, None, 0.04])
    assert holm([None, None]) == [None, None]
    assert holm([]) == []


@pytest.mark.parametrize("bad", [float("nan"), -0.1, 1.1])
def test_holm_refuses_what_is_no_probability(bad: float) -> None:
    with pytest.raises(ValueError, match=r"p_values\[1\]"):
        holm([0.5, bad])


def step_down_by_every_flip(values: np.ndarray) -> list[float]:
    """Westfall and Young's step-down p-values over all 2^N shared flips."""
    scale = np.sqrt((values**2).sum(axis=1))
    observed = np.abs(values.sum(axis=1)) / scale
    order = np.argsort(-observed)
    hits = np.zeros(len(values))
    flips = list(product([-1.0, 1.0], repeat=values.shape[1]))
    for signs in flips:
        drawn = np.abs(values @ np.array(signs)) / scale
        for place in range(len(order)):
            hits[place] += drawn[order[place:]].max() >= observed[order[place]] - 1e-9
    stepped = np.maximum.accumulate(hits / len(flips))
    return [float(stepped[list(order).index(arm)]) for arm in range(len(values))]


def test_max_t_agrees_with_every_flip_there_is() -> None:
    arms = np.array(
        [
            [1, 1, 1, 1, 0, 1, 1, -1, 1, 1],
            [1, 1, -1, 1, 0, 1, 0, -1, 1, 0],
            [0, -1, 1, 0, 1, 0, 0, 0, -1, 1],
        ],
        dtype=float,
    )
    found = max_t(arms, seed=3, draws=20_000)
    assert found == pytest.approx(step_down_by_every_flip(arms), abs=0.012)  # > 3 standard errors


def test_max_t_draws_one_sign_for_all_arms() -> None:
    # Two copies of an arm are one hypothesis: with flips of their own they would cost twice.
    arm = np.array([1.0] * 9 + [-1.0] * 2 + [0.0] * 20)
    alone = max_t([arm], seed=1)[0]
    assert max_t([arm, arm], seed=1) == [alone, alone]


def test_max_t_never_ranks_a_weaker_arm_above_a_stronger_one() -> None:
    # 2 / sqrt(2) = 1.41, but half of its flips are as extreme; 7 / sqrt(29) = 1.30, alone p = .27
    stronger = [1.0, 1.0] + [0.0] * 29
    weaker = [0.0, 0.0] + [1.0] * 18 + [-1.0] * 11
    adjusted = max_t([weaker, stronger], seed=2)
    assert adjusted[1] is not None
    assert adjusted[1] > 0.5
    assert adjusted[0] == adjusted[1]


def test_max_t_gives_an_arm_without_a_difference_none() -> None:
    arm = [1.0] * 6 + [0.0] * 4
    adjusted = max_t([[0.0] * 10, arm], seed=0, draws=999)
    assert adjusted[0] is None
    assert adjusted[1] == max_t([arm], seed=0, draws=999)[0]
    assert max_t([[0.0] * 10], seed=0) == [None]


def test_max_t_flips_a_cluster_together() -> None:
    # 12 questions, 2 clusters, all gained: 2 of 4 flips are as extreme, not 2 of 4096
    adjusted = max_t([[1.0] * 12], seed=5, draws=4000, clusters=["a"] * 6 + ["b"] * 6)[0]
    assert adjusted == pytest.approx(0.5, abs=0.03)


def test_max_t_repeats_with_its_seed() -> None:
    arms = np.random.default_rng(0).integers(-1, 2, size=(3, 50)).astype(float)
    assert max_t(arms, seed=7, draws=500) == max_t(arms, seed=7, draws=500)
    with pytest.raises(ValueError, match="seed"):
        max_t(arms, seed=None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="NaN"):
        max_t([[0.0, float("nan")]], seed=1)
