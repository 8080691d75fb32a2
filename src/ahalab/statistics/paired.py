# Axis suffixes: S training seeds, N questions, G clusters, K answers, A arms.
# ruff: noqa: N806
"""One adapter against its base, one answer to each question: gained, lost, and McNemar's tests.

Concordant pairs say nothing about a change, so both p-values depend on gained and lost alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from ahalab.statistics.inputs import count, outcomes


@dataclass(frozen=True, slots=True)
class PairedCounts:
    """Pairs of base and adapter answers, counted."""

    n: int  # pairs
    base_correct: int
    adapter_correct: int
    gained: int  # base wrong, adapter correct
    lost: int  # base correct, adapter wrong

    @property
    def difference(self) -> float:
        """Adapter accuracy minus base accuracy, a fraction."""
        return (self.gained - self.lost) / self.n


def discordant(base: ArrayLike, adapter: ArrayLike) -> PairedCounts:
    """Count the pairs in which exactly one side is correct.

    Args:
        base: Base correctness, 0 or 1, shape (N,), in question order.
        adapter: Adapter correctness, 0 or 1, shape (N,), the same order.

    Returns:
        Counts of pairs.

    Raises:
        ValueError: Lengths differ (so the lists are not paired), empty, or a value not 0 or 1.
    """
    base_N, adapter_N = outcomes("base", base), outcomes("adapter", adapter)
    if base_N.shape != adapter_N.shape:
        raise ValueError(
            f"base and adapter: expected equal lengths, found {base_N.size} and {adapter_N.size}"
        )
    return PairedCounts(
        n=base_N.size,
        base_correct=int(np.count_nonzero(base_N)),
        adapter_correct=int(np.count_nonzero(adapter_N)),
        gained=int(np.count_nonzero(adapter_N & ~base_N)),
        lost=int(np.count_nonzero(base_N & ~adapter_N)),
    )


def mcnemar_exact(gained: int, lost: int) -> float | None:
    """Two-sided exact McNemar test: min(1, 2 P(X <= m)), X ~ Bin(gained + lost, 1/2).

    Args:
        gained: Pairs with base wrong, adapter correct.
        lost: Pairs with base correct, adapter wrong.

    Returns:
        Probability; None without a discordant pair, where the test is undefined.

    Raises:
        ValueError: A count is negative or not whole.

    Source:
        McNemar 1947, Psychometrika 12:153.
    """
    fewer, total = _smaller_and_total(gained, lost)
    if total == 0:
        return None
    if total - 2 * fewer <= 1:
        return 1.0  # the two tails meet; the sum below would miss it by rounding
    return min(1.0, 2.0 * float(special.bdtr(fewer, total, 0.5)))


def mcnemar_midp(gained: int, lost: int) -> float | None:
    """Two-sided mid-p McNemar test: 2 P(X < m) + P(X = m), X ~ Bin(gained + lost, 1/2).

    The primary p-value: the exact one spends only half of its nominal 5 % at the usual sizes.

    Args:
        gained: Pairs with base wrong, adapter correct.
        lost: Pairs with base correct, adapter wrong.

    Returns:
        Probability, 1 when gained equals lost; None without a discordant pair.

    Raises:
        ValueError: A count is negative or not whole.

    Source:
        Fagerland, Lydersen and Laake 2013, BMC Medical Research Methodology 13:91.
    """
    fewer, total = _smaller_and_total(gained, lost)
    if total == 0:
        return None
    if 2 * fewer == total:
        return 1.0  # by symmetry; the sum below would miss it by rounding
    below = float(special.bdtr(fewer - 1, total, 0.5)) if fewer > 0 else 0.0
    return min(1.0, below + float(special.bdtr(fewer, total, 0.5)))


def _smaller_and_total(gained: int, lost: int) -> tuple[int, int]:
    gained, lost = count("gained", gained), count("lost", lost)
    return min(gained, lost), gained + lost
