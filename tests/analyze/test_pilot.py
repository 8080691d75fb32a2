"""What a pilot's answers show of noise, against counting and a two-way analysis of variance."""

from __future__ import annotations

from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from small_study import write_study

from ahalab.analyze.answers import load_study_answers
from ahalab.analyze.pilot import Pilot, measure_pilot
from ahalab.errors import InputError

N = 120


def letters(right: np.ndarray) -> str:
    return "".join("C" if one else "W" for one in right)


def measured(
    root: Path, base: object, adapters: dict[tuple[str, int], object], **asked: object
) -> Pilot:
    plan, paths = write_study(root, base, adapters)  # type: ignore[arg-type]
    return measure_pilot(load_study_answers(plan, paths), "strict", **asked)  # type: ignore[arg-type]


@pytest.fixture
def answers() -> tuple[np.ndarray, dict[tuple[str, int], np.ndarray]]:
    """Base and three adapters of two arms; each redraws its share of the answers."""
    rng = np.random.default_rng(12)
    base = rng.random(N) < 0.4
    adapters = {}
    for arm, changes in (("correctness", 0.3), ("format_only", 0.5), ("random", 0.0)):
        for seed in range(3):
            redrawn = rng.random(N) < changes
            adapters[arm, seed] = np.where(redrawn, rng.random(N) < 0.5 + 0.1 * seed, base)
    return base, adapters


def test_discordance_and_base_accuracy_are_counted_over_the_treatments(
    tmp_path: Path, answers: tuple[np.ndarray, dict[tuple[str, int], np.ndarray]]
) -> None:
    base, adapters = answers
    pilot = measured(tmp_path, letters(base), {k: letters(v) for k, v in adapters.items()})
    treated = [v for (arm, _), v in adapters.items() if arm != "random"]
    assert (pilot.arms, pilot.adapters) == (("correctness", "format_only"), 6)
    assert pilot.discordance == pytest.approx(np.mean([base != one for one in treated]))
    assert pilot.base_accuracy == pytest.approx(base.mean())
    assert (pilot.questions, pilot.samples, pilot.sampling_share) == (N, 1, None)


def test_the_spread_over_seeds_is_that_of_a_two_way_analysis_of_variance(
    tmp_path: Path, answers: tuple[np.ndarray, dict[tuple[str, int], np.ndarray]]
) -> None:
    base, adapters = answers
    written = {k: letters(v) for k, v in adapters.items()}
    pilot = measured(tmp_path, letters(base), written, arm="format_only")
    values = np.array([adapters["format_only", s].astype(float) - base for s in range(3)])
    by_seed, by_question = values.mean(axis=1, keepdims=True), values.mean(axis=0)
    rest = values - by_seed - by_question + values.mean()
    of_seeds = N * by_seed.var(ddof=1)  # mean squares
    of_rest = (rest**2).sum() / (2 * (N - 1))
    assert pilot.spread is not None
    assert pilot.spread.degrees == 2
    assert pilot.spread.sd**2 == pytest.approx(max(0.0, (of_seeds - of_rest) / N), rel=0.02)
    upper = by_seed.var(ddof=1) * 2 / stats.chi2.ppf(0.1, 2) - of_rest / N
    assert pilot.spread.upper == pytest.approx(upper**0.5, rel=0.02)
    assert pilot.spread.sd < pilot.spread.upper
    covariances = [np.cov(values[a], values[b])[0, 1] for a, b in combinations(range(3), 2)]
    own = np.mean([row.var(ddof=1) for row in values])
    assert pilot.shared == pytest.approx(np.mean(covariances) / own)


def test_two_arms_pool_their_degrees_of_freedom(
    tmp_path: Path, answers: tuple[np.ndarray, dict[tuple[str, int], np.ndarray]]
) -> None:
    base, adapters = answers
    pilot = measured(tmp_path, letters(base), {k: letters(v) for k, v in adapters.items()})
    assert pilot.spread is not None
    assert pilot.spread.degrees == 4


def test_with_several_answers_the_noise_of_sampling_is_told_apart(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    ability = rng.beta(0.6, 0.9, N)
    base = rng.random((4, N)) < ability
    adapter = rng.random((4, N)) < np.clip(ability + 0.1, 0, 1)
    pilot = measured(
        tmp_path, [letters(row) for row in base],
        {("format_only", 0): [letters(row) for row in adapter]},
    )  # fmt: skip
    pairs = [base[i] != adapter[j] for i, j in product(range(4), repeat=2)]
    assert pilot.discordance == pytest.approx(np.mean(pairs))
    noise = sum(
        np.mean([(side[i] != side[j]) / 2 for i, j in combinations(range(4), 2)])
        for side in (base, adapter)
    )
    assert pilot.sampling_share == pytest.approx(noise / np.mean(pairs))


def test_one_seed_tells_nothing_of_the_spread_over_seeds(tmp_path: Path) -> None:
    pilot = measured(tmp_path, "CCWWCWCW", {("format_only", 0): "CWWWCCCW"})
    assert (pilot.spread, pilot.shared) == (None, None)
    assert pilot.discordance == pytest.approx(2 / 8)


def test_an_arm_without_answers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"--arm brief: expected an arm with answers"):
        measured(tmp_path, "CCWW", {("format_only", 0): "CWWW"}, arm="brief")
