"""One adapter against the base, paired by question: a claim on this adapter only."""

from __future__ import annotations

import numpy as np

from ahalab.analyze.answers import FloatArray, StudyAnswers
from ahalab.analyze.sentences import adapter_sentence, interval, probability
from ahalab.records.comparison import AdapterComparison, NoiseFloor
from ahalab.analyze.sentences import floor_sentence
from ahalab.records.terms import Metric
from ahalab.statistics.by_question import by_question
from ahalab.statistics.interval import Interval
from ahalab.statistics.paired import discordant, mcnemar_exact, mcnemar_midp
from ahalab.statistics.tango import tango_interval
from ahalab.statistics.verdict import decide

METRICS: tuple[Metric, ...] = ("strict", "lenient")


def compare_adapters(study: StudyAnswers) -> list[AdapterComparison]:
    """Compare every adapter with the base, strict and lenient."""
    return [
        _compare(study, arm, seed, metric)
        for (arm, seed) in study.adapters
        for metric in METRICS
    ]


def _compare(study: StudyAnswers, arm: str, seed: int, metric: Metric) -> AdapterComparison:
    analysis = study.plan.analysis
    base = study.correct(study.base, metric)
    adapter = study.correct(study.adapters[arm, seed], metric)
    difference = float(adapter.mean() - base.mean())
    paired = base.shape[1] == 1 and len(set(study.clusters)) == len(study.clusters)
    gained = lost = exact = None
    if paired:
        counts = discordant(base[:, 0], adapter[:, 0])
        gained, lost = counts.gained, counts.lost
        exact, p_value = mcnemar_exact(gained, lost), mcnemar_midp(gained, lost)
        bounds = tango_interval(gained, lost, counts.n, analysis.confidence)
        told = f"{gained} gained, {lost} lost of {counts.n}"
    else:
        estimate = by_question(_differences(base, adapter), study.clusters, analysis.confidence)
        bounds = estimate.interval or Interval(difference, difference)
        p_value = estimate.p_value
        told = f"over {estimate.clusters} questions"
    verdict = decide(
        p_value, bounds, margin=analysis.margin_points / 100, alpha=analysis.alpha
    ).name
    in_points = (100 * bounds.low, 100 * bounds.high)
    told += f" ({interval(in_points, analysis.confidence, 'questions')}; {probability(p_value)})"
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
        verdict=verdict,
        sentence=adapter_sentence(f"{arm}, seed {seed}", metric, 100 * difference, told, verdict),
    )


def _differences(base: FloatArray, adapter: FloatArray) -> FloatArray:
    """Return adapter minus base by question, shape (N,), means over the K samples."""
    return np.asarray(adapter.mean(axis=1) - base.mean(axis=1), dtype=np.float64)


def noise_floor(study: StudyAnswers) -> NoiseFloor | None:
    """Compare the base with itself under the second batch plan; None when that was not generated."""
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
