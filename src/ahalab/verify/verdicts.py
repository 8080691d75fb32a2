"""The comparison: every count, test, interval, verdict and sentence, from the answers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import UNSET

from ahalab.plan.cells import training_cells
from ahalab.records.answer import Protocol, comparable_digest
from ahalab.records.base import Record, to_plain
from ahalab.records.comparison import AdapterComparison, Comparison, NoiseFloor, ReadingRates
from ahalab.records.plan import Plan
from ahalab.records.terms import Metric
from ahalab.statistics.multiplicity import max_t
from ahalab.tasks.unplanned import unplanned
from ahalab.verify.answers import AnswerSet, Reply
from ahalab.verify.arm_verdicts import alone_note, check_arms
from ahalab.verify.detectable import check_detectable
from ahalab.verify.matrices import METRICS, Outcomes
from ahalab.verify.oracle import (
    FloatArray,
    by_question,
    exact_p,
    mid_p,
    pass_at_k,
    score_interval,
    verdict,
)
from ahalab.verify.reading import Study, close, differences
from ahalab.verify.wording import check_adapter_sentence, check_floor_sentence

FILE = "analysis/comparison.json"
NAMES = (
    "stat.n", "stat.recompute", "stat.method", "stat.sentence", "outcome.missing", "outcome.added",
)  # fmt: skip
COUNTS = {
    "n",
    "base_correct",
    "adapter_correct",
    "gained",
    "lost",
    "gained_mean",
    "lost_mean",
    "seeds",
}
METHODS = {"interval_covers"}
TOLERANCE = {"interval_points": 1e-6, "minimal_detectable_points": 1e-6}
P_TOLERANCE = 1e-9
P_RATIO, P_SMALLEST = 1e-6, 1e-300  # of p far below that tolerance
MAX_T_DRAWS, MAX_T_SEED = 1999, 0  # fixed, so that the p comes out again


def check_comparison(study: Study, outcomes: Outcomes | None) -> Comparison | None:
    """Check comparison.json; return it when it could be read."""
    ledger, path, plan = study.ledger, study.paths.comparison, study.plan
    comparison = study.record(path, Comparison)
    if comparison is None or plan is None:
        if not path.exists():
            for name in NAMES:
                ledger[name].incomplete(f"{FILE}: not written yet")
    elif outcomes is None:
        for name in ("stat.n", "stat.recompute"):
            ledger[name].not_checked("no base and adapter with whole answers to compare")
    else:
        _check_head(study, plan, comparison, outcomes)
        _check_rates(study, comparison, outcomes)
        _check_adapters(study, comparison, outcomes)
        _check_floor(study, comparison, outcomes)
        check_arms(study, comparison, outcomes, book)
    study.ledger.close(NAMES)
    return comparison


def book(study: Study, place: str, expected: Mapping[str, Any], found: Record) -> None:
    """Compare the fields that were computed again; each goes to its own check."""
    plain = to_plain(found)
    for field, value in expected.items():
        check = (
            "stat.n" if field in COUNTS else "stat.method" if field in METHODS else "stat.recompute"
        )
        wrong = list(differences(value, plain[field], TOLERANCE.get(field, P_TOLERANCE), field))
        if not wrong and field.startswith("p_") and not _same_size(value, plain[field]):
            wrong = [(field, value, plain[field])]
        for what, ours, theirs in wrong:
            study.ledger[check].fail(FILE, None, f"{place}: {what} {ours}", theirs)
        if not wrong:
            study.ledger[check].passed()


def _same_size(expected: float | None, found: float | None) -> bool:
    """Compare two p by their ratio: absolutely, any two far below the tolerance are equal."""
    if expected is None or found is None:
        return True  # told already
    return math.isclose(expected, found, rel_tol=P_RATIO, abs_tol=P_SMALLEST)


def _check_head(study: Study, plan: Plan, comparison: Comparison, outcomes: Outcomes) -> None:
    """Compare what decides with the plan, and what is missing with what is there."""
    study.match_plan(study.paths.comparison, comparison.plan_digest)
    tally, analysis = study.ledger["plan.match"], plan.analysis
    for field, expected in (
        ("control", plan.control),
        ("alpha", analysis.alpha),
        ("confidence", analysis.confidence),
        ("margin_points", analysis.margin_points),
    ):
        tally.expect(FILE, None, field, expected, getattr(comparison, field))
    study.ledger["outcome.added"].expect(
        FILE, None, "primary", analysis.primary, comparison.primary
    )
    protocol = study.record(study.paths.base_answers().protocol, Protocol)
    if protocol is not None:
        digest = comparable_digest(protocol)
        study.ledger["stat.method"].expect(
            FILE, None, "protocol_digest", digest, comparison.protocol_digest
        )
    missing = tuple(cell.name for cell in training_cells(plan) if cell not in outcomes.sets)
    study.ledger["outcome.missing"].expect(FILE, None, "missing", missing, comparison.missing)
    beyond = unplanned(plan, study.paths)
    told = comparison.unplanned or ()
    study.ledger["outcome.added"].expect(FILE, None, "unplanned", beyond, told)


def _check_rates(study: Study, comparison: Comparison, outcomes: Outcomes) -> None:
    found = {rate.answers: rate for rate in comparison.rates}
    sets = {answers.name: answers for answers in outcomes.sets.values()}
    tally = study.ledger["stat.n"]
    tally.expect(FILE, None, "rates of", sorted(sets), sorted(found))
    for name, answers in sets.items():
        if name not in found:
            continue
        rate = found[name]
        tally.expect(FILE, None, f"{name}: n", len(answers.replies), rate.n)
        for metric, counts in (("strict", rate.strict), ("lenient", rate.lenient)):
            tally.expect(
                FILE, None, f"{name}: {metric} outcomes", _counts(answers, metric), dict(counts)
            )
        tokens = answers.mean_tokens
        if close(tokens, rate.mean_tokens, P_TOLERANCE):
            tally.passed()
        else:
            tally.fail(FILE, None, f"{name}: mean_tokens {tokens}", rate.mean_tokens)
        _check_pass_at(study, name, answers, rate)


def _check_pass_at(study: Study, name: str, answers: AnswerSet, rate: ReadingRates) -> None:
    """Compare pass@k with the share of all subsets of k answers that hold a correct one."""
    plan = study.plan
    ks = plan.analysis.ks(plan.evaluation.samples) if plan else ()
    told = () if rate.pass_at is UNSET else rate.pass_at
    study.ledger["stat.method"].expect(
        FILE, None, f"{name}: pass@k of", ks, tuple(p.k for p in told)
    )
    for point in told:
        for metric in METRICS:
            expected = pass_at_k(_right(answers, metric), point.k)
            found = getattr(point, metric)
            wrong = list(differences(expected, found, P_TOLERANCE, f"pass@{point.k} {metric}"))
            for what, ours, theirs in wrong:
                study.ledger["stat.recompute"].fail(FILE, None, f"{name}: {what} {ours}", theirs)
            study.ledger["stat.recompute"].passed(0 if wrong else 1)


def _right(answers: AnswerSet, metric: Metric) -> list[tuple[int, int]]:
    """Return (correct, answers) of every question."""
    counts: dict[str, list[int]] = {}
    for (prompt, _), reply in answers.replies.items():
        found = counts.setdefault(prompt, [0, 0])
        found[0] += getattr(reply, metric) == "correct"
        found[1] += 1
    return [(right, given) for right, given in counts.values()]


def _counts(answers: AnswerSet, metric: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    for reply in answers.replies.values():
        outcome = reply.strict if metric == "strict" else reply.lenient
        counts[outcome] = counts.get(outcome, 0) + 1
    return counts


def _check_adapters(study: Study, comparison: Comparison, outcomes: Outcomes) -> None:
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
            book(study, place, wanted, recorded)
            spread = outcomes.differences_N(outcomes.sets[cell], metric)
            check_detectable(study, place, recorded, spread, outcomes.clusters)
            same = _same_answers(outcomes, outcomes.sets[cell])
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


def _same_answers(outcomes: Outcomes, answers: AnswerSet) -> bool:
    """Say whether an adapter wrote what the base wrote, question by question."""
    base = outcomes.base.replies
    return all(base[key].completion == reply.completion for key, reply in answers.replies.items())


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


def paired_bounds(
    spread: FloatArray, clusters: list[str], confidence: float
) -> tuple[tuple[float, float], float | None]:
    """Return interval and p where a question occurs twice or has several answers.

    Where every question's mean change is -1, 0 or 1, the questions are pairs again.
    """
    found: dict[str, list[float]] = {}
    for label, value in zip(clusters, spread, strict=True):
        found.setdefault(label, []).append(float(value))
    means = [sum(values) / len(values) for values in found.values()]
    if all(mean in (-1.0, 0.0, 1.0) for mean in means):
        gained, lost = means.count(1.0), means.count(-1.0)
        low, high = score_interval(gained, lost, len(means), confidence)
        if low <= float(spread.mean()) <= high:
            return (low, high), mid_p(gained, lost)
    interval, p_value = by_question(spread, clusters, confidence)
    return interval or (-1.0, 1.0), p_value


def _check_floor(study: Study, comparison: Comparison, outcomes: Outcomes) -> None:
    found, floor = comparison.floor, outcomes.floor
    if found is None or floor is None:
        what = "the noise floor" if floor else "no noise floor"
        if (found is None) != (floor is None):
            study.ledger["outcome.missing"].fail(
                FILE, None, what, "none" if found is None else "one"
            )
        else:
            study.ledger["outcome.missing"].incomplete("base/floor.jsonl: no noise floor yet")
        return
    _compare_floor(study, found, floor, outcomes)


def _differ(one: Reply, other: Reply) -> bool:
    """Compare token ids, or texts where one side has none."""
    if one.ids is None or other.ids is None:
        return one.completion != other.completion
    return one.ids != other.ids


def _compare_floor(study: Study, found: NoiseFloor, floor: AnswerSet, outcomes: Outcomes) -> None:
    base = outcomes.base.replies
    expected: dict[str, int] = {
        "n": len(base),
        "changed_completions": sum(_differ(r, floor.replies[k]) for k, r in base.items()),
    }
    for metric in METRICS:
        before, after = (outcomes.correct_NK(s, metric) for s in (outcomes.base, floor))
        expected[f"{metric}_gained"] = int(np.count_nonzero(after > before))
        expected[f"{metric}_lost"] = int(np.count_nonzero(after < before))
    study.recompute("floor", expected)
    for field, value in expected.items():
        study.ledger["stat.n"].expect(FILE, None, f"floor: {field}", value, getattr(found, field))
    check_floor_sentence(study, found)
