"""The comparison of whole reward designs: over seeds, after Holm, with its notes."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Literal

from scipy import stats

from ahalab.records.comparison import ArmComparison, Comparison
from ahalab.records.terms import METRICS, Metric
from ahalab.verify.arm_oracle import ArmEstimate, estimate_arm
from ahalab.verify.compared_fields import COMPARISON
from ahalab.verify.matrices import Outcomes
from ahalab.verify.oracle import step_down, verdict
from ahalab.verify.reading import Study
from ahalab.verify.wording import check_arm_sentence

FILE = COMPARISON.file
POWER = 0.8
Named = tuple[str, str, Metric]  # arm, against, metric


@dataclass(frozen=True, slots=True)
class _Planned:
    """One planned comparison, estimated."""

    arm: str
    against: Literal["base", "control"]
    metric: Metric
    estimate: ArmEstimate
    accuracy: float
    reference: float


def check_arms(study: Study, comparison: Comparison, outcomes: Outcomes) -> None:
    """Check every arm against base and control."""
    found: dict[Named, ArmComparison] = {}
    key: Named
    for recorded in comparison.arms:
        key = (recorded.arm, recorded.against, recorded.metric)
        if key in found:
            study.ledger["outcome.added"].fail(FILE, None, "each comparison once", key)
        found[key] = recorded
    planned = _planned(outcomes)
    verdicts = arm_words(outcomes)
    for item, p_holm in planned:
        key = (item.arm, item.against, item.metric)
        recorded_here = found.pop(key, None)
        if recorded_here is None:
            study.ledger["outcome.missing"].fail(FILE, None, f"the comparison {key}", "none")
            continue
        study.ledger["outcome.missing"].passed()
        _compare(study, outcomes, item, (recorded_here, p_holm, verdicts))
        check_arm_sentence(study, recorded_here, comparison)
    for key in found:
        study.ledger["outcome.added"].fail(FILE, None, "only planned comparisons", key)


def _planned(outcomes: Outcomes) -> list[tuple[_Planned, float | None]]:
    """Return every planned comparison with its p after Holm."""
    planned: list[tuple[_Planned, float | None]] = []
    for metric in METRICS:
        family = _family(outcomes, metric)
        planned += zip(family, step_down([p.estimate.p_value for p in family]), strict=True)
    return planned


def arm_words(outcomes: Outcomes) -> dict[Named, str]:
    """Return the verdict of every planned comparison, from the answers."""
    return {
        (item.arm, item.against, item.metric): _verdict(outcomes, item, p_holm)
        for item, p_holm in _planned(outcomes)
    }


def _family(outcomes: Outcomes, metric: Metric) -> list[_Planned]:
    """Return the comparisons that Holm runs over: all of one metric."""
    plan = outcomes.plan
    base = float(outcomes.correct_NK(outcomes.base, metric).mean())
    family = []
    for against in plan.analysis.comparisons:
        for arm in outcomes.arms:
            if against == "control" and (arm == plan.control or plan.control not in outcomes.arms):
                continue
            estimate = compared(outcomes, metric, arm, plan.control if against != "base" else None)
            accuracy = base + statistics.fmean(estimate.by_seed)
            reference = base if against == "base" else accuracy - estimate.difference
            family.append(_Planned(arm, against, metric, estimate, accuracy, reference))
    return family


def compared(outcomes: Outcomes, metric: Metric, arm: str, other: str | None) -> ArmEstimate:
    """Compare one arm with the base (`other` is None) or with another arm."""
    key = (metric, arm, other)
    if key not in outcomes.estimates:
        sides = [outcomes.gains_SN(name, metric) for name in (arm, other) if name is not None]
        samples, level = outcomes.plan.evaluation.samples, outcomes.plan.analysis.confidence
        outcomes.estimates[key] = estimate_arm(sides, samples, outcomes.clusters, level)
    return outcomes.estimates[key]


def _verdict(outcomes: Outcomes, item: _Planned, p_holm: float | None) -> str:
    analysis = outcomes.plan.analysis
    margin = analysis.margin_points / 100
    return verdict(item.estimate.p_value, p_holm, item.estimate.bounds, margin, analysis.alpha)


def _compare(
    study: Study,
    outcomes: Outcomes,
    item: _Planned,
    recorded: tuple[ArmComparison, float | None, dict[Named, str]],
) -> None:
    found, p_holm, verdicts = recorded
    estimate, analysis = item.estimate, outcomes.plan.analysis
    bounds = estimate.bounds
    base = float(outcomes.correct_NK(outcomes.base, item.metric).mean())
    shift = item.reference - base if item.against == "control" else 0.0
    detectable = None
    if estimate.half_width is not None and estimate.standard_error is not None:
        missed = float(stats.norm.ppf(POWER)) * estimate.standard_error
        detectable = 100 * min(1.0, estimate.half_width + missed)
    gained, lost = _discordant(outcomes, item)
    expected = {
        "n": estimate.questions,
        "seeds": estimate.seeds,
        "accuracy": item.accuracy,
        "reference_accuracy": item.reference,
        "gained_mean": gained,
        "lost_mean": lost,
        "difference_points": 100 * estimate.difference,
        "seed_differences_points": tuple(100 * (d - shift) for d in estimate.by_seed),
        "interval_points": None if bounds is None else (100 * bounds[0], 100 * bounds[1]),
        "interval_covers": "nothing" if bounds is None else "questions and seeds",
        "p_value": estimate.p_value,
        "p_holm": p_holm,
        "minimal_detectable_points": detectable,
        "verdict": verdicts[item.arm, item.against, item.metric],
        "notes": _notes(outcomes, item, p_holm, verdicts),
    }
    place = f"{item.arm} against {item.against}, {item.metric}"
    study.recompute(f"arm.{item.arm}.{item.against}.{item.metric}", expected)
    COMPARISON.compare(study, place, expected, found)
    primary = item.metric == analysis.primary
    study.ledger["outcome.added"].expect(FILE, None, f"{place}: primary", primary, found.primary)


def _discordant(outcomes: Outcomes, item: _Planned) -> tuple[float | None, float | None]:
    """Return gained and lost pairs per seed, where an answer is a question."""
    alone = len(set(outcomes.clusters)) == len(outcomes.clusters)
    if item.against != "base" or outcomes.plan.evaluation.samples != 1 or not alone:
        return None, None
    change = outcomes.differences_SN(item.arm, item.metric)  # (S, N), -1, 0 or 1
    seeds = len(change)
    return float((change > 0).sum()) / seeds, float((change < 0).sum()) / seeds


def _notes(
    outcomes: Outcomes,
    item: _Planned,
    p_holm: float | None,
    verdicts: dict[Named, str],
) -> tuple[str, ...]:
    analysis, bounds, p_value = (
        outcomes.plan.analysis,
        item.estimate.bounds,
        item.estimate.p_value,
    )
    margin, found = analysis.margin_points / 100, verdicts[item.arm, item.against, item.metric]
    notes = ["one seed"] if item.estimate.seeds < 2 else []
    if bounds is not None:
        says_p = p_value is not None and p_value <= analysis.alpha
        says_interval = bounds[0] > 0 or bounds[1] < 0
        if says_p != says_interval:
            notes.append("borderline")
        if found in ("improved", "worse") and -margin < bounds[0] and bounds[1] < margin:
            notes.append("smaller than the margin")
        if says_p and says_interval and p_holm is not None and p_holm > analysis.alpha:
            notes.append("not after Holm")
    reading: Metric = "lenient" if item.metric == "strict" else "strict"
    alone = alone_note(item.metric, found, verdicts[item.arm, item.against, reading])
    return (*notes, *([alone] if alone else []))


def alone_note(metric: Metric, found: str, other: str) -> str | None:
    """Return the note on a change that one reading alone shows; `other` is the other's verdict."""
    if found not in ("improved", "worse") or other == found:
        return None
    changed_too = other in ("improved", "worse")
    if metric == "lenient":
        return "lenient alone" + ", strict opposite" * changed_too
    if found == "improved":
        return "format gain" + ", ability lost" * changed_too
    return "format loss" + ", ability gained" * changed_too
