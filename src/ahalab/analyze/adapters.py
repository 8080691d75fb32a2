"""One adapter against the base, paired by question: a claim on this adapter only."""

from __future__ import annotations

import numpy as np
from msgspec import UNSET

from ahalab.analyze.answers import Answers, FloatArray, StudyAnswers
from ahalab.analyze.sentences import adapter_sentence, floor_sentence, interval, probability
from ahalab.records.comparison import AdapterComparison, NoiseFloor
from ahalab.records.terms import Metric
from ahalab.statistics.by_question import by_question, cluster_means
from ahalab.statistics.interval import Interval
from ahalab.statistics.paired import discordant, mcnemar_exact, mcnemar_midp
from ahalab.statistics.tango import tango_interval
from ahalab.statistics.verdict import decide

METRICS: tuple[Metric, ...] = ("strict", "lenient")


def compare_adapters(study: StudyAnswers) -> list[AdapterComparison]:
    """Compare every adapter with the base, strict and lenient."""
    return [
        _compare(study, arm, seed, metric) for (arm, seed) in study.adapters for metric in METRICS
    ]


def _compare(study: StudyAnswers, arm: str, seed: int, metric: Metric) -> AdapterComparison:
    analysis = study.plan.analysis
    base = study.correct(study.base, metric)
    adapter = study.correct(study.adapters[arm, seed], metric)
    difference = float(adapter.mean() - base.mean())
    bounds, p_value = interval_and_p(
        _differences(base, adapter), study.clusters, analysis.confidence
    )
    gained = lost = exact = None
    if base.shape[1] == 1 and len(set(study.clusters)) == len(study.clusters):
        counts = discordant(base[:, 0], adapter[:, 0])
        gained, lost = counts.gained, counts.lost
        exact = mcnemar_exact(gained, lost)
        told = f"{gained} gained, {lost} lost of {counts.n}"
    else:
        told = f"over {len(set(study.clusters))} questions"
    verdict = decide(p_value, bounds, margin=analysis.margin_points / 100, alpha=analysis.alpha)
    in_points = (100 * bounds.low, 100 * bounds.high)
    p_told = probability(p_value) + ("" if p_value is None else ", uncorrected")
    told += f" ({interval(in_points, analysis.confidence, 'questions')}; {p_told})"
    same = same_answers(study.base, study.adapters[arm, seed])
    notes = [*(["borderline"] if verdict.borderline else []), *(["same answers"] if same else [])]
    return AdapterComparison(
        arm=arm,
        seed=seed,
        metric=metric,
        n=base.shape[0],
        base_correct=float(base.mean(axis=1).sum()),
        adapter_correct=float(adapter.mean(axis=1).sum()),
        gained=gained,
        lost=lost,
        difference_points=100 * difference,
        interval_points=in_points,
        interval_covers="questions",
        p_value=p_value,
        p_exact=exact,
        verdict=verdict.name,
        sentence=adapter_sentence(
            f"{arm}, seed {seed}",
            metric,
            100 * difference,
            told,
            verdict.name,
            *notes,
        ),
        same_answers=True if same else UNSET,
    )


def same_answers(base: Answers, adapter: Answers) -> bool:
    """Say whether an adapter's every completion is the base's, to the letter."""
    return all(base.rows[key].completion == row.completion for key, row in adapter.rows.items())


def interval_and_p(
    differences: FloatArray, clusters: list[str], confidence: float
) -> tuple[Interval, float | None]:
    """Return interval and p of one adapter's difference, with the question as the unit.

    A question that occurs twice counts once: where all of its answers changed alike, the questions
    are pairs again, and McNemar's p and Tango's interval do not move when every row is doubled.
    The t test is left to what is no pair: on few changed questions it is far too sure.
    """
    means = cluster_means(differences, clusters)
    difference = float(differences.mean())
    if np.isin(means, (-1.0, 0.0, 1.0)).all():
        gained, lost = int((means > 0).sum()), int((means < 0).sum())
        bounds = tango_interval(gained, lost, len(means), confidence)
        if bounds.contains(difference):  # not where one question has many of the rows
            return bounds, mcnemar_midp(gained, lost)
    estimate = by_question(differences, clusters, confidence)
    # Nothing to estimate an error from is not an error of zero.
    return estimate.interval or Interval(-1.0, 1.0), estimate.p_value


def _differences(base: FloatArray, adapter: FloatArray) -> FloatArray:
    """Return adapter minus base by question, shape (N,), means over the K samples."""
    return np.asarray(adapter.mean(axis=1) - base.mean(axis=1), dtype=np.float64)


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
    changed = sum(
        row.completion_ids != study.floor.rows[key].completion_ids
        for key, row in study.base.rows.items()
    )
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
