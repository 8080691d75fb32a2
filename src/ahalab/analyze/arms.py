"""One reward design against the base and against the control arm, over all its seeds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from msgspec.structs import replace

from ahalab.analyze.answers import FloatArray, StudyAnswers
from ahalab.analyze.readings import one_scorer_note
from ahalab.analyze.sentences import Finding, arm_sentence
from ahalab.records.comparison import AdapterComparison, ArmComparison
from ahalab.records.terms import METRICS, Metric
from ahalab.statistics.multiplicity import holm
from ahalab.statistics.seeds import SeedEstimate, arm_against_control, reward_claim
from ahalab.statistics.verdict import Verdict, decide

Against = Literal["base", "control"]


@dataclass(frozen=True, slots=True)
class _Estimated:
    """A comparison before the correction for several."""

    arm: str
    against: Against
    metric: Metric
    estimate: SeedEstimate
    accuracy: float
    reference_accuracy: float


def compare_arms(study: StudyAnswers, adapters: list[AdapterComparison]) -> list[ArmComparison]:
    """Compare every arm as the plan asks: the primary metric first, the other one as exploratory.

    Holm's correction runs over all planned comparisons of one metric: every arm against the
    base, and every other arm against the control.
    """
    found = []
    primary = study.plan.analysis.primary
    for metric in sorted(METRICS, key=lambda m: m != primary):
        family = [
            _estimate(study, arm.name, against, metric)
            for against in study.plan.analysis.comparisons
            for arm in study.plan.arms
            if study.seeds_of(arm.name) and _compared(study, arm.name, against)
        ]
        adjusted = holm([e.estimate.p_value for e in family])
        found += [_judge(study, e, p, adapters) for e, p in zip(family, adjusted, strict=True)]
    return [_with_notes(study, c, found) for c in found]


def _compared(study: StudyAnswers, arm: str, against: Against) -> bool:
    control = study.plan.control
    return against == "base" or (arm != control and bool(study.seeds_of(control)))


def _estimate(study: StudyAnswers, arm: str, against: Against, metric: Metric) -> _Estimated:
    confidence = study.plan.analysis.confidence
    base = study.correct(study.base, metric)
    treatment = differences_SN(study, arm, metric, base)
    if against == "base":
        estimate = reward_claim(treatment, study.clusters, confidence)
        reference = float(base.mean())
    else:
        control = differences_SN(study, study.plan.control, metric, base)
        estimate = arm_against_control(treatment, control, study.clusters, confidence)
        reference = float(base.mean() + control.mean())
    return _Estimated(
        arm, against, metric, estimate, float(base.mean() + treatment.mean()), reference
    )


def differences_SN(  # noqa: N802 - S seeds, N questions
    study: StudyAnswers, arm: str, metric: Metric, base: FloatArray
) -> FloatArray:
    """Return adapter minus base by seed and question, shape (S, N)."""
    rows = [
        study.correct(study.adapters[arm, seed], metric).mean(axis=1) - base.mean(axis=1)
        for seed in study.seeds_of(arm)
    ]
    return np.array(rows, dtype=np.float64)


def _judge(
    study: StudyAnswers, found: _Estimated, p_holm: float | None, adapters: list[AdapterComparison]
) -> ArmComparison:
    analysis, estimate = study.plan.analysis, found.estimate
    verdict = decide(
        p_holm,
        estimate.interval,
        margin=analysis.margin_points / 100,
        alpha=analysis.alpha,
        p_value=estimate.p_value,
    )
    own = [a for a in adapters if a.arm == found.arm and a.metric == found.metric]
    paired = found.against == "base" and all(a.gained is not None for a in own)
    bounds, detectable = estimate.interval, estimate.detectable()
    return ArmComparison(
        arm=found.arm,
        against=found.against,
        metric=found.metric,
        primary=found.metric == analysis.primary,
        n=estimate.questions,
        seeds=estimate.seeds,
        accuracy=found.accuracy,
        reference_accuracy=found.reference_accuracy,
        gained_mean=_mean([a.gained for a in own]) if paired else None,
        lost_mean=_mean([a.lost for a in own]) if paired else None,
        difference_points=100 * estimate.difference,
        seed_differences_points=_by_seed(study, found),
        interval_points=None if bounds is None else (100 * bounds.low, 100 * bounds.high),
        interval_covers="nothing" if bounds is None else "questions and seeds",
        p_value=estimate.p_value,
        p_holm=p_holm,
        minimal_detectable_points=None if detectable is None else 100 * detectable,
        verdict=verdict.name,
        notes=_notes(verdict, estimate),
        sentence="",
    )


def _by_seed(study: StudyAnswers, found: _Estimated) -> tuple[float, ...]:
    """Return one difference per seed, in points; against the control, from the control's mean."""
    shift = 0.0
    if found.against == "control":
        base = study.correct(study.base, found.metric)
        shift = found.reference_accuracy - float(base.mean())
    return tuple(100 * (d - shift) for d in found.estimate.by_seed)


def _mean(values: list[int | None]) -> float:
    known = [v for v in values if v is not None]
    return sum(known) / len(known)


def _notes(verdict: Verdict, estimate: SeedEstimate) -> tuple[str, ...]:
    notes = []
    if estimate.seeds < 2:
        notes.append("one seed")
    if verdict.borderline and estimate.interval is not None:
        notes.append("borderline")
    if verdict.smaller_than_margin:
        notes.append("smaller than the margin")
    if verdict.lost_to_adjustment:
        notes.append("not after Holm")
    return tuple(notes)


def _with_notes(
    study: StudyAnswers, comparison: ArmComparison, all_found: list[ArmComparison]
) -> ArmComparison:
    """Add what only the other metric tells (a gain in format alone), and the sentence."""
    other = next(
        c
        for c in all_found
        if (c.arm, c.against) == (comparison.arm, comparison.against)
        and c.metric != comparison.metric
    )
    alone = one_scorer_note(comparison.metric, comparison.verdict, other.verdict)
    notes = (*comparison.notes, alone) if alone else comparison.notes
    analysis = study.plan.analysis
    control = f"the control arm {study.plan.control}"
    finding = Finding(
        arm=comparison.arm,
        metric=comparison.metric,
        seeds=comparison.seeds,
        control_seeds=None
        if comparison.against == "base"
        else len(study.seeds_of(study.plan.control)),
        accuracy=comparison.accuracy,
        reference="the base" if comparison.against == "base" else control,
        reference_accuracy=comparison.reference_accuracy,
        difference_points=comparison.difference_points,
        interval_points=comparison.interval_points,
        p_holm=comparison.p_holm,
        confidence=analysis.confidence,
        margin_points=analysis.margin_points,
        detectable_points=comparison.minimal_detectable_points,
        verdict=comparison.verdict,
    )
    return replace(comparison, notes=notes, sentence=arm_sentence(finding, notes))
