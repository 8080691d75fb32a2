"""How far the template moves the base: every count, interval, verdict and sentence again."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from ahalab.plan.templates import OWN
from ahalab.records.base import Record, to_plain
from ahalab.records.plan import Plan
from ahalab.records.prompt import Prompt
from ahalab.records.templates import TemplateComparison, TemplateSet
from ahalab.records.terms import Metric
from ahalab.tasks.text import normalised
from ahalab.verify.answers import AnswerSet
from ahalab.verify.matrices import METRICS
from ahalab.verify.oracle import FloatArray
from ahalab.verify.reading import Study, differences
from ahalab.verify.verdicts import paired_bounds
from ahalab.verify.wording import check_template_sentence

FILE = "analysis/templates.json"
COUNTS = {"n", "questions"}
NAMED = {"name", "template", "system", "split", "confidence", "metric"}
TOLERANCE = 1e-6  # of intervals, which two solvers find


def check_template_comparison(
    study: Study,
    plan: Plan,
    asked: TemplateSet,
    prompts: list[Prompt],
    sets: Mapping[str, AnswerSet],
) -> TemplateComparison | None:
    """Check analysis/templates.json against the answers; return it when it could be read."""
    path = study.paths.template_comparison
    found = study.record(path, TemplateComparison)
    names = [template.name for template in asked.templates]
    whole = [name for name in names if name in sets and _answered(sets[name], prompts)]
    if found is None:
        if not path.exists() and whole == names:
            study.ledger["stat.n"].incomplete(f"{FILE}: not written yet")
        return None
    study.match_plan(path, found.plan_digest)
    tally = study.ledger["stat.n"]
    compared = [result.name for result in found.templates]
    if not tally.expect(FILE, None, "templates", names, compared) or not tally.expect(
        FILE, None, "templates with an answer to every question", names, whole
    ):
        return found
    head = {
        "split": asked.split,
        "questions": asked.questions,
        "confidence": plan.analysis.confidence,
    }
    _book(study, "", head, found)
    for template, result in zip(asked.templates, found.templates, strict=True):
        expected = {**to_plain(template), **_counted(sets[template.name])}
        study.recompute(f"template.{template.name}", expected)
        _book(study, template.name, expected, result)
    metrics = tuple(one.metric for one in found.ranges)
    if study.ledger["outcome.missing"].expect(FILE, None, "ranges of", METRICS, metrics):
        for one in found.ranges:
            correct = {n: _correct_N(sets[n], prompts, one.metric) for n in names}
            clusters = [normalised(prompt.question) for prompt in prompts]
            expected = _range(correct, clusters, plan.analysis.confidence)
            study.recompute(f"templates.{one.metric}", expected)
            _book(study, one.metric, expected, one)
            check_template_sentence(study, one, found)
    return found


def _answered(answers: AnswerSet, prompts: list[Prompt]) -> bool:
    """Say whether the answers are whole, and those to these questions."""
    keys = {(prompt.prompt_id, 0) for prompt in prompts}
    return answers.whole and bool(keys) and keys == answers.replies.keys()


def _book(study: Study, place: str, expected: Mapping[str, Any], found: Record) -> None:
    """Compare the fields that were computed again; each goes to its own check."""
    plain = to_plain(found)
    for field, value in expected.items():
        check = "stat.n" if field in COUNTS else "stat.recompute"
        check = "stat.method" if field in NAMED else check
        wrong = list(differences(value, plain[field], TOLERANCE, field))
        for what, ours, theirs in wrong:
            study.ledger[check].fail(FILE, None, f"{place}: {what} {ours}".lstrip(": "), theirs)
        study.ledger[check].passed(0 if wrong else 1)


def _counted(answers: AnswerSet) -> dict[str, Any]:
    """Return what the answers under one template say, by field of `TemplateResult`."""
    replies = answers.replies.values()
    n = len(replies)
    found: dict[str, Any] = {"n": n}
    for metric in METRICS:
        outcomes = [reply.outcome(metric) for reply in replies]
        found[metric] = {outcome: outcomes.count(outcome) for outcome in sorted(set(outcomes))}
        found[f"{metric}_accuracy"] = outcomes.count("correct") / n
    found["mean_tokens"] = answers.mean_tokens
    return found


def _correct_N(  # noqa: N802 - an axis: N questions
    answers: AnswerSet, prompts: list[Prompt], metric: Metric
) -> FloatArray:
    """Return correctness, 0 or 1, shape (N,)."""
    replies = (answers.replies[prompt.prompt_id, 0] for prompt in prompts)
    return np.array([float(reply.outcome(metric) == "correct") for reply in replies])


def _range(
    correct: Mapping[str, FloatArray], clusters: list[str], confidence: float
) -> dict[str, Any]:
    """Return what the answers say under one reading, by field of `TemplateRange`."""
    right = {name: int(row.sum()) for name, row in correct.items()}
    best = next(name for name in right if right[name] == max(right.values()))
    worst = next(name for name in right if right[name] == min(right.values()))

    def bounds(other: str, comparisons: int) -> tuple[float, float] | None:
        if other == best:
            return None
        level = 1 - (1 - confidence) / comparisons
        (low, high), _ = paired_bounds(correct[best] - correct[other], clusters, level)
        return 100 * low, 100 * high

    lead = bounds(OWN, len(right) - 1)
    n = len(clusters)
    return {
        "worst": worst,
        "best": best,
        "worst_accuracy": right[worst] / n,
        "best_accuracy": right[best] / n,
        "own_accuracy": right[OWN] / n,
        "spread_points": 100 * (right[best] - right[worst]) / n,
        "spread_interval_points": bounds(worst, len(list(combinations(right, 2)))),
        "lead_points": 100 * (right[best] - right[OWN]) / n,
        "lead_interval_points": lead,
        "verdict": "own is best"
        if lead is None
        else "better exists"
        if lead[0] > 0
        else "no evidence",
    }
