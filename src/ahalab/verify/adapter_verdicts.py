"""The comparison of single adapters: paired tests over questions, with their notes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import UNSET

from ahalab.records.comparison import AdapterComparison, Comparison
from ahalab.records.terms import METRICS, Metric
from ahalab.statistics.multiplicity import max_t
from ahalab.verify.answers import AnswerSet
from ahalab.verify.arm_verdicts import alone_note
from ahalab.verify.compared_fields import COMPARISON
from ahalab.verify.detectable import check_detectable
from ahalab.verify.matrices import Outcomes
from ahalab.verify.oracle import exact_p, mid_p, paired_bounds, score_interval, verdict
from ahalab.verify.reading import Study
from ahalab.verify.wording import check_adapter_sentence

FILE = COMPARISON.file
MAX_T_DRAWS, MAX_T_SEED = 1999, 0  # fixed, so that the p comes out again


def check_adapters(study: Study, comparison: Comparison, outcomes: Outcomes) -> None:
    """Check every adapter against the base."""
    found: dict[tuple[str | None, int | None, Metric], AdapterComparison] = {}
    tally = study.ledger["outcome.missing"]
    for adapter in comparison.adapters:
        key = (adapter.arm, adapter.seed, adapter.metric)
        if key in found:
            study.ledger["outcome.added"].fail(FILE, None, "each adapter and metric once", key)
        found[key] = adapter
    corrected = _max_t(outcomes)
    for cell in outcomes.cells:
        expected = {m: expected_adapter(outcomes, outcomes.sets[cell], m) for m in METRICS}
        for metric, other in zip(METRICS, reversed(METRICS), strict=True):
            recorded = found.pop((cell.arm, cell.seed, metric), None)
            place = f"{cell.arm}, seed {cell.seed}, {metric}"
            if recorded is None:
                tally.fail(FILE, None, f"the comparison of {place}", "none")
                continue
            tally.passed()
            wanted = dict(expected[metric])
            if recorded.p_max_t is not UNSET:  # else of an earlier version
                wanted["p_max_t"] = corrected[metric, cell.arm, cell.seed]
            stem = f"adapter.{cell.arm}.{cell.seed}.{metric}"
            study.recompute(stem, {**wanted, **_agreeing(outcomes, outcomes.sets[cell], metric)})
            COMPARISON.compare(study, place, wanted, recorded)
            spread = outcomes.differences_N(outcomes.sets[cell], metric)
            check_detectable(study, place, recorded, spread, outcomes.clusters)
            same = outcomes.identical(outcomes.sets[cell]) == len(outcomes.sets[cell].replies)
            study.ledger["stat.n"].expect(
                FILE, None, f"{place}: same_answers", same, recorded.same_answers is True
            )
            notes = _adapter_notes(outcomes, expected[metric], metric, expected[other]["verdict"])
            check_adapter_sentence(study, recorded, comparison, notes, same=same)
    for left in found:
        study.ledger["outcome.added"].fail(FILE, None, "only adapters with answers", left)


def _agreeing(outcomes: Outcomes, answers: AnswerSet, metric: Metric) -> dict[str, int]:
    """Return how many questions both sides have right, and wrong, where pairs are questions."""
    if outcomes.plan.evaluation.samples != 1:
        return {}
    base, adapter = (outcomes.correct_NK(s, metric) for s in (outcomes.base, answers))
    both = base + adapter
    return {"both_right": int((both == 2).sum()), "both_wrong": int((both == 0).sum())}


def _max_t(outcomes: Outcomes) -> dict[tuple[Metric, str | None, int | None], float | None]:
    """Return every adapter's p among all adapters of the study.

    By the analysis' own function: what has to agree is a Monte Carlo figure, draw by draw.
    """
    found: dict[tuple[Metric, str | None, int | None], float | None] = {}
    for metric in METRICS:
        spreads = [outcomes.differences_N(outcomes.sets[c], metric) for c in outcomes.cells]
        values = max_t(spreads, MAX_T_SEED, MAX_T_DRAWS, outcomes.clusters)
        found |= {(metric, c.arm, c.seed): p for c, p in zip(outcomes.cells, values, strict=True)}
    return found


def _adapter_notes(
    outcomes: Outcomes, expected: Mapping[str, Any], metric: Metric, other: str
) -> set[str]:
    """Return the notes that an adapter's sentence must hold, by its figures."""
    analysis = outcomes.plan.analysis
    word, p_value = expected["verdict"], expected["p_value"]
    low, high = expected["interval_points"]
    notes = set()
    if (p_value is not None and p_value <= analysis.alpha) != (low > 0 or high < 0):
        notes.add("borderline")
    inside = -analysis.margin_points < low and high < analysis.margin_points
    if word in ("improved", "worse") and inside:
        notes.add("smaller than the margin")
    alone = alone_note(metric, word, other)
    return notes | ({alone} if alone else set())


def expected_adapter(outcomes: Outcomes, answers: AnswerSet, metric: Metric) -> dict[str, Any]:
    """Return what the answers say of one adapter, by field of `AdapterComparison`."""
    analysis = outcomes.plan.analysis
    base, adapter = (outcomes.correct_NK(s, metric) for s in (outcomes.base, answers))
    difference = float(adapter.mean() - base.mean())
    gained = lost = exact = None
    if base.shape[1] == 1 and len(set(outcomes.clusters)) == len(outcomes.clusters):
        gained = int(np.count_nonzero(adapter > base))
        lost = int(np.count_nonzero(adapter < base))
        exact, p_value = exact_p(gained, lost), mid_p(gained, lost)
        bounds = score_interval(gained, lost, len(base), analysis.confidence)
    else:
        spread = adapter.mean(axis=1) - base.mean(axis=1)
        bounds, p_value = paired_bounds(spread, outcomes.clusters, analysis.confidence)
    margin = analysis.margin_points / 100
    return {
        "n": len(base),
        "base_correct": float(base.mean(axis=1).sum()),
        "adapter_correct": float(adapter.mean(axis=1).sum()),
        "gained": gained,
        "lost": lost,
        "difference_points": 100 * difference,
        "interval_points": (100 * bounds[0], 100 * bounds[1]),
        "interval_covers": "questions",
        "p_value": p_value,
        "p_exact": exact,
        "verdict": verdict(p_value, p_value, bounds, margin, analysis.alpha),
    }
