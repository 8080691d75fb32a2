"""Which arms teach alike: correlations of their advantages, and a hierarchical clustering."""
# Axis suffix: K arms.
# ruff: noqa: N803

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.cluster.hierarchy import fcluster, leaves_list, linkage
from scipy.spatial.distance import squareform

from ahalab.statistics.inputs import FloatArray

CLUSTER_AT = 0.8  # mean correlation of advantages from which arms count as one cluster


def correlations(products_KK: FloatArray) -> list[list[float | None]]:
    """Return Pearson's r of the arms' advantages from the sums of their products.

    The advantages of every group sum to 0, so that no mean has to be taken off: r is also the
    cosine of the angle between two arms' advantages.

    Args:
        products_KK: Sums over rollouts, shape (K, K).

    Returns:
        r, shape (K, K), exactly 1 on the diagonal; None where an arm taught nothing.
    """
    lengths = np.sqrt(np.diag(products_KK))
    arms = range(len(lengths))
    return [
        [
            None
            if lengths[i] == 0 or lengths[j] == 0
            else 1.0
            if i == j
            else float(np.clip(products_KK[i, j] / (lengths[i] * lengths[j]), -1.0, 1.0))
            for j in arms
        ]
        for i in arms
    ]


@dataclass(frozen=True, slots=True)
class Tree:
    """Arms by the likeness of their advantages; the numbers are rows of the matrix."""

    order: tuple[int, ...]  # like beside like; arms that taught nothing are left out
    merges: tuple[tuple[tuple[int, ...], float], ...]  # members, their mean correlation, downwards
    clusters: tuple[tuple[int, ...], ...]  # at CLUSTER_AT, in that order


def cluster(matrix: Sequence[Sequence[float | None]]) -> Tree:
    """Cluster arms hierarchically: average linkage over 1 - r.

    Args:
        matrix: What `correlations` returns.

    Source:
        scipy.cluster.hierarchy; average linkage is Sokal and Michener 1958 (UPGMA).
    """
    live = [arm for arm in range(len(matrix)) if matrix[arm][arm] is not None]
    if len(live) < 2:
        return Tree(tuple(live), (), tuple((arm,) for arm in live))
    distances = np.array([[1.0 - (matrix[i][j] or 0.0) for j in live] for i in live])
    links = linkage(squareform(distances, checks=False), "average", optimal_ordering=True)
    order = [live[int(leaf)] for leaf in leaves_list(links)]
    place = {arm: at for at, arm in enumerate(order)}
    members: list[tuple[int, ...]] = [(arm,) for arm in live]
    for left, right, *_ in links:
        joined = members[int(left)] + members[int(right)]
        members.append(tuple(sorted(joined, key=place.__getitem__)))
    heights = 1.0 - links[:, 2]
    merges = zip(members[len(live) :], (float(height) for height in heights), strict=True)
    labels = fcluster(links, 1.0 - CLUSTER_AT, "distance")
    by_label: dict[int, list[int]] = {}
    for arm in order:
        by_label.setdefault(int(labels[live.index(arm)]), []).append(arm)
    return Tree(tuple(order), tuple(merges), tuple(tuple(found) for found in by_label.values()))
