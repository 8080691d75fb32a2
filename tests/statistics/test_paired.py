"""McNemar's tests: published tables, exact fractions and statsmodels decide what is right."""

from __future__ import annotations

import time
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.contingency_tables import mcnemar

from ahalab.statistics.paired import PairedCounts, discordant, mcnemar_exact, mcnemar_midp

# gained, lost, exact p as printed, half a unit of the last digit printed (STATISTICS.md)
PUBLISHED = [
    (9, 6, 0.61, 5e-3),
    (8, 6, 0.79, 5e-3),
    (9, 10, 1.0, 0.0),
    (9, 3, 0.15, 5e-3),
    (6, 2, 0.29, 5e-3),
    (10, 3, 0.09, 5e-3),
    (15, 3, 0.00754, 5e-6),
    (16, 3, 0.00443, 5e-6),
    (28, 29, 1.0, 0.0),
    (115, 65, 2.39e-4, 5e-7),
    (28, 34, 0.53, 5e-3),
    (28, 34, 0.5258, 5e-5),
]
counts = st.integers(0, 60)


def midp_by_fractions(gained: int, lost: int) -> float:
    total, fewer = gained + lost, min(gained, lost)
    below = sum(comb(total, i) for i in range(fewer))
    return float(min(Fraction(1), Fraction(2 * below + comb(total, fewer), 2**total)))


@pytest.mark.parametrize(("gained", "lost", "p_value", "tolerance"), PUBLISHED)
def test_published_tables_come_out(
    gained: int, lost: int, p_value: float, tolerance: float
) -> None:
    assert mcnemar_exact(gained, lost) == pytest.approx(p_value, abs=tolerance, rel=0)


@pytest.mark.parametrize(
    ("gained", "lost", "p_value"),
    [
        (1, 7, 10 / 256),  # 2 * P(X=0) + P(X=1), X ~ Bin(8, 1/2): airway reactivity, n = 21
        (6, 16, 0.034690),  # R package contingencytables, consolidation therapy, n = 161
        (5, 0, 1 / 32),
        (1, 0, 1 / 2),
    ],
)
def test_midp_of_published_and_hand_worked_tables(gained: int, lost: int, p_value: float) -> None:
    assert mcnemar_midp(gained, lost) == pytest.approx(p_value, abs=5e-7)


@given(counts, counts)
def test_exact_p_agrees_with_statsmodels(gained: int, lost: int) -> None:
    if gained + lost == 0:
        return
    oracle = mcnemar([[3, lost], [gained, 5]], exact=True).pvalue
    assert mcnemar_exact(gained, lost) == pytest.approx(float(oracle), rel=1e-10)


@given(counts, counts)
def test_midp_agrees_with_exact_fractions(gained: int, lost: int) -> None:
    if gained + lost == 0:
        return
    assert mcnemar_midp(gained, lost) == pytest.approx(midp_by_fractions(gained, lost), rel=1e-12)


@given(counts, counts)
def test_swapping_the_sides_changes_no_p(gained: int, lost: int) -> None:
    assert mcnemar_exact(gained, lost) == mcnemar_exact(lost, gained)
    assert mcnemar_midp(gained, lost) == mcnemar_midp(lost, gained)


@given(st.integers(1, 10**6))
def test_equal_counts_give_exactly_one(each: int) -> None:
    assert mcnemar_midp(each, each) == 1.0
    assert mcnemar_exact(each, each) == 1.0


def test_no_discordant_pair_leaves_p_undefined() -> None:
    assert mcnemar_exact(0, 0) is None
    assert mcnemar_midp(0, 0) is None


def test_a_million_discordant_pairs_take_no_time_and_keep_their_digits() -> None:
    started = time.perf_counter()
    for _ in range(100):
        p_value = mcnemar_midp(499_000, 501_000)
    assert time.perf_counter() - started < 2.0
    assert p_value == pytest.approx(0.0455003, rel=1e-4)  # normal law at z = 2, two-sided


def test_pairs_are_counted_by_kind() -> None:
    #            both     lost       gained  neither
    base = [1, 1, 1, 1, 1, 0, 0]
    adapter = [1, 1, 0, 0, 0, 1, 0]
    assert discordant(base, adapter) == PairedCounts(7, 5, 3, 1, 3)
    assert discordant(base, adapter).difference == pytest.approx(-2 / 7)


def test_booleans_integers_and_whole_floats_are_the_same_outcomes() -> None:
    expected = PairedCounts(n=3, base_correct=2, adapter_correct=1, gained=1, lost=2)
    assert discordant([True, True, False], [False, False, True]) == expected
    assert discordant(np.array([1, 1, 0]), np.array([0.0, 0.0, 1.0])) == expected


@given(
    st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40),
    st.lists(st.booleans(), max_size=40),
)
def test_concordant_pairs_change_no_p(pairs: list[tuple[bool, bool]], both: list[bool]) -> None:
    base, adapter = zip(*pairs, strict=True)
    fewer = discordant(base, adapter)
    more = discordant([*base, *both], [*adapter, *both])
    assert more.n == fewer.n + len(both)
    assert mcnemar_midp(more.gained, more.lost) == mcnemar_midp(fewer.gained, fewer.lost)
    assert mcnemar_exact(more.gained, more.lost) == mcnemar_exact(fewer.gained, fewer.lost)


@pytest.mark.parametrize(
    ("base", "adapter", "message"),
    [
        ([1, 0], [1], "equal lengths, found 2 and 1"),
        ([], [], "at least one value"),
        ([[1, 0]], [[1, 0]], "one axis"),
        ([1.0, float("nan")], [1, 0], r"base\[1\]: expected 0 or 1, found .*nan"),
        ([1, 0], [1, None], "adapter: expected 0 or 1"),
        ([1, 0], [1, 0.5], r"adapter\[1\]"),
        ([1, 2], [1, 0], r"base\[1\]"),
        (["1", "0"], [1, 0], "base: expected 0 or 1"),
    ],
)
def test_what_is_no_outcome_is_refused(base: object, adapter: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        discordant(base, adapter)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [-1, 1.0, float("nan"), True, "3", None])
def test_what_is_no_count_is_refused(bad: object) -> None:
    for test in (mcnemar_exact, mcnemar_midp):
        with pytest.raises(ValueError, match="expected a whole number >= 0"):
            test(bad, 3)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="expected a whole number >= 0"):
            test(3, bad)  # type: ignore[arg-type]
