# Axis suffixes: N questions.
# ruff: noqa: N815
"""One adapter against the base, paired by question: a claim on this adapter only."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import UNSET

from ahalab.analyze.answers import Answers, FloatArray, StudyAnswers
from ahalab.analyze.readings import one_scorer_note
from ahalab.analyze.sentences import (
    AdapterFinding,
    adapter_sentence,
    floor_sentence,
    interval,
    probability,
)
from ahalab.records.answer import Answer
from ahalab.records.comparison import AdapterComparison, NoiseFloor
from ahalab.records.terms import METRICS, Metric
from ahalab.statistics.difference import Difference, detectable, difference_over_questions
from ahalab.statistics.multiplicity import max_t
from ahalab.statistics.paired import discordant
from ahalab.statistics.verdict import Verdict, decide

MAX_T_DRAWS = 1999  # sign flips; the smallest p that they can give is .0005
MAX_T_SEED = 0


@dataclass(frozen=True, slots=True)
class _Tested:
    """One adapter by one reading, before the adapters are looked at together."""

    arm: str
    seed: int
    metric: Metric
    differences_N: FloatArray  # adapter minus base by question, means over the answers
    found: Difference
    verdict: Verdict
    base_correct: float  # questions
    adapter_correct: float


def compare_adapters(study: StudyAnswers) -> list[AdapterComparison]:
    """Compare every adapter with the base, strict and lenient.

    Each is decided by its own test. Beside it stands the p that counts all adapters of the study
    as one family, since whoever quotes the best of a dozen has looked at a dozen.
    """
    tested = {metric: _test_all(study, metric) for metric in METRICS}
    corrected = {
        metric: max_t([t.differences_N for t in all_], MAX_T_SEED, MAX_T_DRAWS, study.clusters)
        for metric, all_ in tested.items()
    }
    return [
        _compared(study, tested[metric][at], tested[other][at].verdict, corrected[metric][at])
        for at in range(len(study.adapters))
        for metric, other in zip(METRICS, reversed(METRICS), strict=True)
    ]


def _test_all(study: StudyAnswers, metric: Metric) -> list[_Tested]:
    analysis = study.plan.analysis
    base = study.correct(study.base, metric).mean(axis=1)
    tested = []
    for (arm, seed), answers in study.adapters.items():
        adapter = study.correct(answers, metric).mean(axis=1)
        found = difference_over_questions(adapter - base, study.clusters, analysis.confidence)
        margin = analysis.margin_points / 100
        tested.append(
            _Tested(
                arm=arm,
                seed=seed,
                metric=metric,
                differences_N=adapter - base,
                found=found,
                verdict=decide(found.p_value, found.interval, margin=margin, alpha=analysis.alpha),
                base_correct=float(base.sum()),
                adapter_correct=float(adapter.sum()),
            )
        )
    return tested


def _compared(
    study: StudyAnswers, one: _Tested, other: Verdict, p_max_t: float | None
) -> AdapterComparison:
    """Return the record of one adapter by one reading; `other` is the verdict by the other one."""
    analysis, found = study.plan.analysis, one.found
    # Counts of pairs are told where every row is a question of its own, asked once.
    pairs = study.plan.evaluation.samples == 1 and found.units == len(study.order)
    gained, lost = (found.gained, found.lost) if pairs else (None, None)
    bounds = (100 * found.interval.low, 100 * found.interval.high)
    smallest = detectable(found, analysis.alpha)
    detectable_points = None if smallest is None else 100 * smallest
    alone = one_scorer_note(one.metric, one.verdict.name, other.name)
    same = same_answers(study.base, study.adapters[one.arm, one.seed])
    notes = {
        "borderline": one.verdict.borderline,
        "smaller than the margin": one.verdict.smaller_than_margin,
        "same answers": same,
    }
    finding = AdapterFinding(
        name=f"{one.arm}, seed {one.seed}",
        metric=one.metric,
        difference_points=100 * found.difference,
        told=_told(study, one, gained, lost, p_max_t),
        margin_points=analysis.margin_points,
        detectable_points=detectable_points,
        verdict=one.verdict.name,
    )
    said = tuple(note for note, holds in notes.items() if holds) + ((alone,) if alone else ())
    return AdapterComparison(
        arm=one.arm,
        seed=one.seed,
        metric=one.metric,
        n=len(study.order),
        base_correct=one.base_correct,
        adapter_correct=one.adapter_correct,
        gained=gained,
        lost=lost,
        difference_points=100 * found.difference,
        interval_points=bounds,
        interval_covers="questions",
        p_value=found.p_value,
        p_exact=found.p_exact if pairs else None,
        verdict=one.verdict.name,
        sentence=adapter_sentence(finding, said),
        same_answers=True if same else UNSET,
        minimal_detectable_points=detectable_points,
        p_max_t=p_max_t,
    )


def _told(
    study: StudyAnswers, one: _Tested, gained: int | None, lost: int | None, p_max_t: float | None
) -> str:
    """Return counts, interval and p, the p alone and as one of all adapters."""
    found, count = one.found, len(study.adapters)
    told = f"over {found.units} questions"
    if gained is not None:
        told = f"{gained} gained, {lost} lost of {found.units}"
    in_points = (100 * found.interval.low, 100 * found.interval.high)
    p_told = probability(found.p_value)
    if found.p_value is not None and count > 1:
        p_told += f" alone, {probability(p_max_t)} corrected for all {count} adapters"
    return f"{told} ({interval(in_points, study.plan.analysis.confidence, 'questions')}; {p_told})"


def same_answers(base: Answers, adapter: Answers) -> bool:
    """Say whether an adapter's every completion is the base's, to the letter."""
    return all(base.rows[key].completion == row.completion for key, row in adapter.rows.items())


def _changed(before: Answer, after: Answer) -> bool:
    """Compare token ids, or texts where an endpoint told no ids."""
    if before.completion_ids is None or after.completion_ids is None:
        return before.completion != after.completion
    return before.completion_ids != after.completion_ids


def noise_floor(study: StudyAnswers) -> NoiseFloor | None:
    """Compare the base with itself under the second batch plan; None when that is absent."""
    if study.floor is None:
        return None
    counts = {
        metric: discordant(
            study.correct(study.base, metric).ravel(), study.correct(study.floor, metric).ravel()
        )
        for metric in METRICS
    }
    strict, lenient = counts["strict"], counts["lenient"]
    changed = sum(_changed(row, study.floor.rows[key]) for key, row in study.base.rows.items())
    n = len(study.base.rows)
    return NoiseFloor(
        n=n,
        changed_completions=changed,
        strict_gained=strict.gained,
        strict_lost=strict.lost,
        lenient_gained=lenient.gained,
        lenient_lost=lenient.lost,
        sentence=floor_sentence(
            n, changed, strict.gained + strict.lost, lenient.gained + lenient.lost
        ),
    )
