"""The ranking of arms under resampling, against a plain loop and against what must hold."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from ahalab.statistics.ranking import rank_arms

Floats = npt.NDArray[np.float64]


def arms_of(means: list[float], seeds: int = 3, n: int = 200, sd: float = 0.02) -> list[Floats]:
    rng = np.random.default_rng(5)
    return [
        np.clip(
            mean + rng.normal(0, sd, (seeds, 1)) + rng.choice([-1, 0, 0, 0, 1], (seeds, n)), -1, 1
        )
        for mean in means
    ]


def test_a_plain_loop_over_draws_gives_the_same_shares_and_ranks() -> None:
    arms, draws = arms_of([0.05, 0.04, -0.03]), 400
    clusters = [number // 2 for number in range(200)]
    rng = np.random.default_rng(11)
    weights = [rng.multinomial(100, np.full(100, 0.01)) for _ in range(draws)]
    seeds = [[rng.multinomial(3, np.full(3, 1 / 3)) for _ in range(draws)] for _ in arms]
    wins, ranks = np.zeros(3), []
    for draw in range(draws):
        taken = np.repeat(np.arange(200), [weights[draw][c] for c in clusters])
        means = []
        for values, own in zip(arms, seeds, strict=True):
            by_seed = values[:, taken].mean(axis=1)
            drawn = np.repeat(by_seed, own[draw]).mean()
            means.append(by_seed.mean() + np.sqrt(1.5) * (drawn - by_seed.mean()))
        wins[int(np.argmax(means))] += 1
        ranks.append([1 + sum(other > mean for other in means) for mean in means])
    found = rank_arms(arms, 11, draws, clusters)
    assert [r.best_fraction for r in found] == pytest.approx(wins / draws)
    ordered = np.sort(np.array(ranks), axis=0)
    assert [r.rank_low for r in found] == ordered[int(np.ceil(0.025 * draws)) - 1].tolist()
    assert [r.rank_high for r in found] == ordered[int(np.ceil(0.975 * draws)) - 1].tolist()


def test_shares_add_up_and_a_clear_winner_is_sure() -> None:
    found = rank_arms(arms_of([0.6, 0.0, -0.3]), 1)
    assert sum(r.best_fraction for r in found) == pytest.approx(1)
    assert (found[0].best_fraction, found[0].rank_low, found[0].rank_high) == (1, 1, 1)
    assert found[2].rank_low == 3


def test_equal_arms_share_the_first_place() -> None:
    arm = arms_of([0.1], seeds=1)[0]
    assert [r.best_fraction for r in rank_arms([arm, arm.copy()], 3)] == [0.5, 0.5]


def test_seeds_that_vary_make_the_first_place_unsure() -> None:
    """Twenty questions decide alike; of the winner's three seeds one is far below the rival."""
    rival = np.zeros((3, 20))
    winner = np.full((3, 20), 0.2)
    winner[0] = -0.3
    share = rank_arms([winner, rival], 2)[0].best_fraction
    # Means of drawn seeds, stretched: the rival wins when at least two of three are the bad one.
    chance = 3 * (1 / 3) ** 2 * (2 / 3) + (1 / 3) ** 3
    assert share == pytest.approx(1 - chance, abs=0.05)


@pytest.mark.parametrize(
    "arms", [[], [np.zeros((2, 4)), np.zeros((2, 5))], [np.full((1, 3), np.nan)]]
)
def test_what_cannot_be_ranked_is_refused(arms: list[Floats]) -> None:
    with pytest.raises(ValueError, match="differences"):
        rank_arms(arms, 1)
