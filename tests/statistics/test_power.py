"""Power: published planning figures, direct enumeration and simulation."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from scipy import stats

from ahalab.statistics.paired import mcnemar_exact, mcnemar_midp
from ahalab.statistics.power import (
    McNemarTest,
    detectable_difference,
    mcnemar_power,
)

TESTS = {"midp": mcnemar_midp, "exact": mcnemar_exact}


@pytest.mark.parametrize(("test", "published"), [("exact", 0.64), ("midp", 0.68)])
def test_published_power_for_four_points(test: McNemarTest, published: float) -> None:
    # 2,000 simulated studies: Monte Carlo error 1.1 points
    assert mcnemar_power(0.09, 0.05, 500, test=test) == pytest.approx(published, abs=0.02)


@pytest.mark.parametrize(("test", "published"), [("exact", 0.026), ("midp", 0.041)])
def test_published_level_at_200_questions(test: McNemarTest, published: float) -> None:
    assert mcnemar_power(0.05, 0.05, 200, test=test) == pytest.approx(published, abs=0.01)


@pytest.mark.parametrize(
    ("n", "discordance", "points"),
    [
        (200, 0.1, 6.4),
        (200, 0.2, 9.1),
        (500, 0.1, 4.1),
        (500, 0.2, 5.7),
        (1319, 0.1, 2.5),
        (1319, 0.2, 3.5),
    ],
)
def test_published_detectable_differences(n: int, discordance: float, points: float) -> None:
    exact = detectable_difference(discordance, n)
    midp = detectable_difference(discordance, n, test="midp")
    assert exact is not None
    assert midp is not None
    assert 100 * exact == pytest.approx(points, abs=0.05)
    assert midp < exact
    assert midp == pytest.approx(2.80 * (discordance / n) ** 0.5, rel=0.05)  # the usual rough one


@pytest.mark.parametrize("test", ["midp", "exact"])
@pytest.mark.parametrize(
    ("gained_rate", "lost_rate", "n", "alpha"),
    [(0.3, 0.1, 25, 0.05), (0.0, 0.4, 20, 0.05), (0.5, 0.5, 30, 0.1), (0.2, 0.2, 24, 0.3)],
)
def test_power_is_the_sum_over_every_table(
    test: McNemarTest, gained_rate: float, lost_rate: float, n: int, alpha: float
) -> None:
    total = 0.0
    for gained in range(n + 1):
        for lost in range(n - gained + 1):
            p_value = TESTS[test](gained, lost)
            if p_value is not None and p_value <= alpha:
                ways = comb(n, gained) * comb(n - gained, lost)
                rest = max(0.0, 1 - gained_rate - lost_rate)
                total += ways * gained_rate**gained * lost_rate**lost * rest ** (n - gained - lost)
    assert mcnemar_power(gained_rate, lost_rate, n, alpha, test) == pytest.approx(total, rel=1e-9)


def test_exact_never_exceeds_its_level_and_midp_hardly() -> None:
    for n in (10, 37, 200, 1319):
        for rate in (0.02, 0.05, 0.2):
            assert mcnemar_power(rate, rate, n, test="exact") <= 0.05
            assert mcnemar_power(rate, rate, n, test="midp") <= 0.054


def test_the_chance_at_the_detectable_difference_is_the_one_asked_for() -> None:
    found = detectable_difference(0.15, 400, power=0.9, test="midp")
    assert found is not None
    drawn = np.random.default_rng(3).multinomial(
        400, [(0.15 + found) / 2, (0.15 - found) / 2, 0.85], size=4000
    )
    hits = [(mcnemar_midp(int(g), int(b)) or 1.0) <= 0.05 for g, b, _ in drawn]
    assert np.mean(hits) == pytest.approx(0.9, abs=0.02)


def test_too_few_questions_find_nothing() -> None:
    assert detectable_difference(0.1, 20) is None
    assert mcnemar_power(0.0, 0.0, 100) == 0.0
    assert mcnemar_power(0.2, 0.0, 3) == 0.0  # three pairs: smallest mid-p is 1/8


def test_a_power_below_the_level_asks_for_no_difference() -> None:
    assert detectable_difference(0.2, 500, power=0.01) == 0.0


def test_many_questions_follow_the_normal_law() -> None:
    # 100,000 pairs: z = (gained - lost) / sqrt(discordant), mean .01 * 10^5 / sqrt(.1 * 10^5)
    shift = 0.005 * 1e5 / (0.1 * 1e5 - 0.005**2 * 1e5) ** 0.5
    expected = stats.norm.sf(1.95996 - shift)
    assert mcnemar_power(0.0525, 0.0475, 100_000) == pytest.approx(expected, abs=0.002)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.7, 0.4, 100), "sum of at most 1"),
        ((-0.1, 0.4, 100), "rates"),
        ((float("nan"), 0.1, 100), "rates"),
        ((0.1, 0.1, 0), "n: expected"),
        ((0.1, 0.1, 100, 0.0), "alpha"),
        ((0.1, 0.1, 100, 0.05, "chi2"), "test"),
    ],
)
def test_impossible_plans_are_refused(arguments: tuple[float, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mcnemar_power(*arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("discordance", [0.0, 1.5, float("nan")])
def test_an_impossible_discordance_is_refused(discordance: float) -> None:
    with pytest.raises(ValueError, match="discordance"):
        detectable_difference(discordance, 100)
