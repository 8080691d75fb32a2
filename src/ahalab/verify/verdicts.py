"""The comparison as a whole: what decides, rates, noise floor; the rest by arm and adapter."""

from __future__ import annotations

from collections import Counter

import numpy as np
from msgspec import UNSET

from ahalab.plan.cells import training_cells
from ahalab.records.answer import Protocol, comparable_digest
from ahalab.records.comparison import Comparison, NoiseFloor, ReadingRates
from ahalab.records.plan import Plan
from ahalab.records.terms import METRICS, Metric
from ahalab.tasks.unplanned import unplanned
from ahalab.verify.adapter_verdicts import check_adapters
from ahalab.verify.answers import AnswerSet, Reply
from ahalab.verify.arm_verdicts import check_arms
from ahalab.verify.compared_fields import COMPARISON
from ahalab.verify.matrices import Outcomes
from ahalab.verify.oracle import pass_at_k
from ahalab.verify.reading import Study, close, differences
from ahalab.verify.wording import check_floor_sentence

FILE = COMPARISON.file
NAMES = (
    "stat.n", "stat.recompute", "stat.method", "stat.sentence", "outcome.missing", "outcome.added",
)  # fmt: skip
TOLERANCE = 1e-9


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
        check_adapters(study, comparison, outcomes)
        _check_floor(study, comparison, outcomes)
        check_arms(study, comparison, outcomes)
    study.ledger.close(NAMES)
    return comparison


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
        for metric in METRICS:
            counts = dict(getattr(rate, metric))
            tally.expect(FILE, None, f"{name}: {metric} outcomes", _counts(answers, metric), counts)
        tokens = answers.mean_tokens
        if close(tokens, rate.mean_tokens, TOLERANCE):
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
            wrong = list(differences(expected, found, TOLERANCE, f"pass@{point.k} {metric}"))
            for what, ours, theirs in wrong:
                study.ledger["stat.recompute"].fail(FILE, None, f"{name}: {what} {ours}", theirs)
            study.ledger["stat.recompute"].passed(0 if wrong else 1)


def _right(answers: AnswerSet, metric: Metric) -> list[tuple[int, int]]:
    """Return (correct, answers) of every question."""
    counts: dict[str, list[int]] = {}
    for (prompt, _), reply in answers.replies.items():
        found = counts.setdefault(prompt, [0, 0])
        found[0] += reply.outcome(metric) == "correct"
        found[1] += 1
    return [(right, given) for right, given in counts.values()]


def _counts(answers: AnswerSet, metric: Metric) -> dict[str, int]:
    return dict(Counter(reply.outcome(metric) for reply in answers.replies.values()))


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
