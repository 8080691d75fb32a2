# Axis suffixes: S training seeds, N questions, K answers.
# ruff: noqa: N803, N806
"""Measures in a study's answers what the power of the next one depends on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from ahalab.analyze.answers import FloatArray, StudyAnswers
from ahalab.errors import InputError
from ahalab.records.terms import Metric
from ahalab.statistics.seeds import reward_claim

RANGE = 0.8  # confidence of the range given for the spread over seeds


@dataclass(frozen=True, slots=True)
class SeedSpread:
    """Spread of true accuracy over training seeds, pooled over arms."""

    sd: float  # fraction; 0 where the questions' noise explains all of it
    upper: float  # fraction: end of the 80 % range of the spread as observed
    degrees: int


@dataclass(frozen=True, slots=True)
class Pilot:
    """What the answers of a study show of noise."""

    arms: tuple[str, ...]
    adapters: int
    questions: int
    samples: int
    base_accuracy: float
    discordance: float  # expected between single answers
    sampling_share: float | None  # None: one answer a question cannot tell
    spread: SeedSpread | None  # None: no arm with two seeds
    shared: float | None


def measure_pilot(study: StudyAnswers, metric: Metric, arm: str | None = None) -> Pilot:
    """Measure a study's noise, over its treatment arms or over one arm.

    Args:
        study: Its answers.
        metric: Reading of the answers.
        arm: One arm; None: all but the control, which changes less than a treatment does.

    Raises:
        InputError: The arm has no answers.
    """
    known = [a.name for a in study.plan.arms if study.seeds_of(a.name)]
    arms = [arm] if arm is not None else [a for a in known if a != study.plan.control] or known
    if arms[0] not in known:
        raise InputError(
            f"--arm {arm}: expected an arm with answers ({', '.join(known)}), found none."
        )
    base = study.correct(study.base, metric)
    by_arm = [
        [study.correct(study.adapters[name, seed], metric) for seed in study.seeds_of(name)]
        for name in arms
    ]
    adapters = [answers for seeds in by_arm for answers in seeds]
    samples = base.shape[1]
    discordance = float(np.mean([_discordance(base, adapter) for adapter in adapters]))
    sampling = None
    if samples > 1 and discordance > 0:
        noise = float(np.mean([_sampling(base) + _sampling(adapter) for adapter in adapters]))
        sampling = min(1.0, noise / discordance)
    differences = [
        np.array([answers.mean(axis=1) - base.mean(axis=1) for answers in seeds])
        for seeds in by_arm
        if len(seeds) > 1
    ]
    return Pilot(
        arms=tuple(arms),
        adapters=len(adapters),
        questions=len(base),
        samples=samples,
        base_accuracy=float(base.mean()),
        discordance=discordance,
        sampling_share=sampling,
        spread=_spread(differences, study.clusters),
        shared=_shared(differences),
    )


def _discordance(base_NK: FloatArray, adapter_NK: FloatArray) -> float:
    """Chance that one answer of each side differs in outcome, without bias: samples are apart."""
    p, q = base_NK.mean(axis=1), adapter_NK.mean(axis=1)
    return float(np.mean(p * (1.0 - q) + q * (1.0 - p)))


def _sampling(answers_NK: FloatArray) -> float:
    """Variance of one answer to a given question, mean over questions, without bias."""
    return float(np.mean(answers_NK.var(axis=1, ddof=1)))


def _spread(differences: Sequence[FloatArray], clusters: Sequence[str]) -> SeedSpread | None:
    """Pool the seed variance of the arms, less what the questions' noise puts into it."""
    degrees, observed, true = 0, 0.0, 0.0
    for values_SN in differences:
        claim = reward_claim(values_SN, clusters)
        if claim.seeds_error is None or claim.rest_error is None:
            continue
        free = claim.seeds - 1
        degrees += free
        observed += free * claim.seeds * claim.seeds_error**2
        true += free * claim.seeds * (claim.seeds_error**2 - claim.rest_error**2)
    if degrees == 0:
        return None
    low = float(special.chdtri(degrees, 1.0 - (1.0 - RANGE) / 2.0))  # 10 % of draws lie below it
    noise = max(0.0, observed - true) / degrees
    upper = max(0.0, observed / low - noise)
    return SeedSpread(max(0.0, true / degrees) ** 0.5, upper**0.5, degrees)


def _shared(differences: Sequence[FloatArray]) -> float | None:
    """Share of a question's variance that all seeds of an arm have in common, pooled."""
    common = total = 0.0
    for values_SN in differences:
        covariance = np.cov(values_SN)
        seeds = len(covariance)
        total += float(np.trace(covariance)) / seeds
        common += float(covariance.sum() - np.trace(covariance)) / (seeds * (seeds - 1))
    return min(1.0, max(0.0, common / total)) if total > 0 else None
