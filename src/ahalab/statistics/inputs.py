# Axis suffixes: S training seeds, N questions, G clusters, K answers, A arms.
# ruff: noqa: N803
"""What the statistics refuse: every public function here checks its arguments through this file.

A NaN, a None, a score of 0.5 or a string would otherwise become a number silently, and a number
that looks significant is worse than an error.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Seed = int | np.random.Generator


def count(name: str, value: int, at_least: int = 0) -> int:
    """Return `value` as an int, refusing what is not a whole number of at least `at_least`.

    Raises:
        ValueError: A bool, a float, or too small.
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool) or number < at_least:
        raise ValueError(f"{name}: expected a whole number >= {at_least}, found {value!r}")
    return number


def pair_counts(gained: int, lost: int, n: int) -> tuple[int, int, int]:
    """Return (gained, lost, n), refusing more discordant pairs than pairs.

    Raises:
        ValueError: Not counts, n < 1, or gained + lost > n.
    """
    gained, lost, n = count("gained", gained), count("lost", lost), count("n", n, at_least=1)
    if gained + lost > n:
        raise ValueError(f"gained + lost: expected at most n={n} pairs, found {gained} + {lost}")
    return gained, lost, n


def probability(name: str, value: float) -> float:
    """Return `value` as a float, refusing what does not lie strictly between 0 and 1.

    Raises:
        ValueError: NaN, not a number, or outside (0, 1).
    """
    if isinstance(value, bool | str) or not 0.0 < value < 1.0:
        raise ValueError(f"{name}: expected a number in (0, 1), found {value!r}")
    return float(value)


def positive(name: str, value: float) -> float:
    """Return `value` as a float, refusing what is not finite and greater than 0.

    Raises:
        ValueError: NaN, infinite, zero or negative.
    """
    if isinstance(value, bool | str) or not 0.0 < value < float("inf"):
        raise ValueError(f"{name}: expected a finite number > 0, found {value!r}")
    return float(value)


def outcomes(name: str, values: ArrayLike) -> NDArray[np.bool_]:
    """Return correctness as booleans, shape (N,).

    Args:
        name: What to call the values in the error.
        values: True/False or 1/0, shape (N,), N >= 1.

    Raises:
        ValueError: Not one axis, empty, or any value that is not exactly 0 or 1 (NaN, None, 0.5,
            text).
    """
    array = np.asarray(values)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{name}: expected at least one value on one axis, found {array.shape}")
    if array.dtype == np.bool_:
        return array
    if array.dtype.kind not in "iuf":
        raise ValueError(f"{name}: expected 0 or 1, found values of type {array.dtype}")
    wrong = np.flatnonzero((array != 0) & (array != 1))
    if wrong.size:
        where = int(wrong[0])
        raise ValueError(f"{name}[{where}]: expected 0 or 1, found {array[where]!r}")
    return np.asarray(array == 1, dtype=np.bool_)


def fractions(name: str, values: ArrayLike, axes: int) -> FloatArray:
    """Return differences of accuracies as floats.

    Args:
        name: What to call the values in the error.
        values: Numbers in [-1, 1]; no axis may be empty.
        axes: Number of axes expected.

    Raises:
        ValueError: Ragged or wrongly shaped, empty, not finite, or outside [-1, 1].
    """
    try:
        raw: NDArray[Any] = np.asarray(values)
    except ValueError as ragged:
        raise ValueError(f"{name}: expected rows of equal length") from ragged
    if raw.dtype.kind not in "biuf":
        raise ValueError(f"{name}: expected numbers, found values of type {raw.dtype}")
    if raw.ndim != axes or raw.size == 0:
        raise ValueError(f"{name}: expected {axes} axes, none of them empty, found {raw.shape}")
    array = raw.astype(np.float64)
    if not np.all(np.abs(array) <= 1.0):  # also false for NaN
        raise ValueError(f"{name}: expected differences in [-1, 1], found NaN or a larger value")
    return array


def cluster_index(clusters: Sequence[object] | None, n: int) -> tuple[IntArray, int]:
    """Number the clusters of `n` questions.

    Args:
        clusters: One hashable label a question, shape (N,); None: every question stands alone.
        n: Number of questions.

    Returns:
        Cluster of each question, shape (N,), in [0, G); and G.

    Raises:
        ValueError: Another number of labels than questions, or a label that is None or NaN.
    """
    if clusters is None:
        return np.arange(n), n
    if len(clusters) != n:
        raise ValueError(f"clusters: expected {n} labels, one a question, found {len(clusters)}")
    numbers: dict[object, int] = {}
    for where, label in enumerate(clusters):
        if label is None or label != label:  # NaN is the one value unequal to itself
            raise ValueError(f"clusters[{where}]: expected a label, found {label!r}")
        numbers.setdefault(label, len(numbers))
    return np.array([numbers[label] for label in clusters], dtype=np.int64), len(numbers)


def cluster_sums(values_SN: FloatArray, index: IntArray, groups: int) -> FloatArray:
    """Sum the questions of each cluster: (S, N) to (S, G). The axis suffixes are the house's."""
    return np.stack([np.bincount(index, weights=row, minlength=groups) for row in values_SN])


def generator(seed: Seed) -> np.random.Generator:
    """Return a Generator from a seed, or the one given.

    Raises:
        ValueError: No seed: a figure drawn from the machine's entropy could not be recomputed.
    """
    if isinstance(seed, np.random.Generator):
        return seed
    return np.random.default_rng(count("seed", seed))
