# Axis suffixes: S training seeds, N questions, D draws.
# ruff: noqa: N806
"""The ranking of arms and the effects of components, by other code than the analysis.

The resamples follow the recipe that the analysis writes down (statistics/ranking.py: which numbers
are drawn in which order); what is made of each is worked out here draw by draw.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np

from ahalab.records.terms import METRICS
from ahalab.verify.arm_verdicts import compared
from ahalab.verify.matrices import Outcomes
from ahalab.verify.oracle import FloatArray
from ahalab.verify.own import definition_of

DRAWS, SEED = 2000, 0


def expected_ranking(outcomes: Outcomes) -> list[dict[str, Any]]:
    """Return the ranking that the answers give, best first."""
    analysis = outcomes.plan.analysis
    arms = outcomes.arms
    changes = [outcomes.differences_SN(arm, analysis.primary) for arm in arms]
    means = _resampled(changes, outcomes.clusters)  # (D, A)
    wins, ranks = np.zeros(len(arms)), []
    for drawn in np.round(means, 12):
        best = [at for at, mean in enumerate(drawn) if mean == max(drawn)]
        for at in best:
            wins[at] += 1 / len(best)
        ranks.append([1 + sum(other > mean for other in drawn) for mean in drawn])
    ordered, tail = np.sort(np.array(ranks), axis=0), (1 - analysis.confidence) / 2
    low, high = (ordered[math.ceil(share * DRAWS - 1e-9) - 1] for share in (tail, 1 - tail))
    found = [
        {
            "arm": arm,
            "best_fraction": float(wins[at]) / DRAWS,
            "rank_low": int(low[at]),
            "rank_high": int(high[at]),
        }
        for at, arm in enumerate(arms)
    ]
    order = {arm: -float(change.mean()) for arm, change in zip(arms, changes, strict=True)}
    return sorted(found, key=lambda place: order[str(place["arm"])])


def _resampled(changes: list[FloatArray], clusters: list[str]) -> FloatArray:
    """Return each arm's mean in every draw, shape (D, A)."""
    labels = {label: at for at, label in enumerate(dict.fromkeys(clusters))}
    cluster_of_N, groups = np.array([labels[own] for own in clusters]), len(labels)
    rng = np.random.default_rng(SEED)
    drawn_groups = rng.multinomial(groups, np.full(groups, 1 / groups), size=DRAWS)
    drawn_seeds = [
        rng.multinomial(s, np.full(s, 1 / s), size=DRAWS) if s > 1 else None
        for s in map(len, changes)
    ]
    means = np.empty((DRAWS, len(changes)))
    for draw in range(DRAWS):
        times_N = drawn_groups[draw][cluster_of_N].astype(float)  # how often each question is drawn
        asked = times_N.sum()
        for at, (values_SN, seeds) in enumerate(zip(changes, drawn_seeds, strict=True)):
            by_seed = values_SN @ times_N / asked
            centre = float(by_seed.mean())
            means[draw, at] = centre
            if seeds is not None:
                mean = float(np.repeat(by_seed, seeds[draw]).mean())
                means[draw, at] += math.sqrt(len(by_seed) / (len(by_seed) - 1)) * (mean - centre)
    return means


def expected_components(outcomes: Outcomes) -> list[dict[str, Any]]:
    """Return the comparison of every two arms that differ in one component."""
    plan, found = outcomes.plan, []
    for one, other in combinations(outcomes.arms, 2):
        ours, theirs = (dict(definition_of(plan, arm).components) for arm in (one, other))
        names = [n for n in {**ours, **theirs} if ours.get(n, 0) != theirs.get(n, 0)]
        if len(names) != 1:
            continue
        name = names[0]
        swapped = theirs.get(name, 0) > ours.get(name, 0)
        more, less = (other, one) if swapped else (one, other)
        weights = {one: float(ours.get(name, 0)), other: float(theirs.get(name, 0))}
        for metric in METRICS:
            estimate = compared(outcomes, metric, more, less)
            bounds = estimate.bounds
            found.append(
                {
                    "component": name,
                    "arm": more,
                    "weight": weights[more],
                    "against": less,
                    "against_weight": weights[less],
                    "metric": metric,
                    "difference_points": 100 * estimate.difference,
                    "interval_points": None
                    if bounds is None
                    else [100 * bounds[0], 100 * bounds[1]],
                    "p_value": estimate.p_value,
                }
            )
    return found
