"""Which arm is best and how sure that is; which component made the difference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ahalab.analyze.answers import FloatArray, StudyAnswers
from ahalab.analyze.arms import differences_SN
from ahalab.analyze.protocols import require_comparable
from ahalab.errors import InputError
from ahalab.records.comparison import ComponentEffect, RankedArm
from ahalab.records.terms import METRICS, Metric
from ahalab.scoring.arms import resolve_arm
from ahalab.statistics.ranking import rank_arms
from ahalab.statistics.seeds import arm_against_control

RANKING_SEED = 0  # of the resamples: the same answers give the same ranking


def rank(study: StudyAnswers) -> tuple[RankedArm, ...]:
    """Rank the arms by their change on the plan's primary metric, best first."""
    return _rank(changes_by_arm(study, study.plan.analysis.primary), study)


def rank_stages(stages: Mapping[str, StudyAnswers]) -> tuple[RankedArm, ...]:
    """Rank the arms of several studies together, each as `study:arm`, best first.

    Args:
        stages: Studies by name.

    Raises:
        ProtocolError: Their answers were made under protocols that differ in more than the plan.
        InputError: Their plans decide by different metrics.
    """
    (first, measure), *others = stages.items()
    primary = measure.plan.analysis.primary
    for name, study in others:
        if study.plan.analysis.primary != primary:
            raise InputError(
                f"{name}: expected {primary} as the primary metric, as {first} has it, found "
                f"{study.plan.analysis.primary}. Rank them apart."
            )
        require_comparable(measure.base, study.base, ("plan_digest",))
    changes = {
        f"{name}:{arm}": change
        for name, study in stages.items()
        for arm, change in changes_by_arm(study, primary).items()
    }
    return _rank(changes, measure)


def changes_by_arm(study: StudyAnswers, metric: Metric) -> dict[str, FloatArray]:
    """Return adapter minus base by seed and question, (S, N), for every arm with answers."""
    base = study.correct(study.base, metric)
    arms = [arm.name for arm in study.plan.arms if study.seeds_of(arm.name)]
    return {arm: differences_SN(study, arm, metric, base) for arm in arms}


def _rank(changes: Mapping[str, FloatArray], study: StudyAnswers) -> tuple[RankedArm, ...]:
    confidence = study.plan.analysis.confidence
    ranked = rank_arms(
        list(changes.values()), RANKING_SEED, clusters=study.clusters, confidence=confidence
    )
    found = [
        RankedArm(
            arm=arm,
            best_fraction=place.best_fraction,
            rank_low=place.rank_low,
            rank_high=place.rank_high,
        )
        for arm, place in zip(changes, ranked, strict=True)
    ]
    return tuple(sorted(found, key=lambda place: -float(changes[place.arm].mean())))


def component_effects(study: StudyAnswers) -> tuple[ComponentEffect, ...]:
    """Compare every two arms that differ in one component, on both metrics."""
    weights = {
        arm.name: dict(resolve_arm(arm.name, arm.components).components)
        for arm in study.plan.arms
        if study.seeds_of(arm.name)
    }
    return tuple(
        _effect(study, weights, pair, component, metric)
        for pair, component in single_differences(weights)
        for metric in METRICS
    )


def single_differences(
    weights: Mapping[str, Mapping[str, float]],
) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield ((more, less), component) for arms that differ in the weight of one component."""
    names = list(weights)
    for at, one in enumerate(names):
        for other in names[at + 1 :]:
            ours, theirs = weights[one], weights[other]
            differing = [
                name
                for name in sorted(ours.keys() | theirs.keys())
                if ours.get(name, 0.0) != theirs.get(name, 0.0)
            ]
            if len(differing) == 1:
                name = differing[0]
                more = ours.get(name, 0.0) > theirs.get(name, 0.0)
                yield ((one, other) if more else (other, one)), name


def _effect(
    study: StudyAnswers,
    weights: Mapping[str, Mapping[str, float]],
    pair: tuple[str, str],
    component: str,
    metric: Metric,
) -> ComponentEffect:
    base = study.correct(study.base, metric)
    more, less = (differences_SN(study, arm, metric, base) for arm in pair)
    estimate = arm_against_control(more, less, study.clusters, study.plan.analysis.confidence)
    bounds = estimate.interval
    return ComponentEffect(
        component=component,
        arm=pair[0],
        weight=weights[pair[0]].get(component, 0.0),
        against=pair[1],
        against_weight=weights[pair[1]].get(component, 0.0),
        metric=metric,
        difference_points=100 * estimate.difference,
        interval_points=None if bounds is None else (100 * bounds.low, 100 * bounds.high),
        p_value=estimate.p_value,
    )
