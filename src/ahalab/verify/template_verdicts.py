"""How far the template moves the base: every count, interval, verdict and sentence again."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from ahalab.plan.templates import OWN
from ahalab.records.base import to_plain
from ahalab.records.plan import Plan
from ahalab.records.prompt import Prompt
from ahalab.records.templates import TemplateComparison, TemplateSet
from ahalab.records.terms import METRICS, Metric
from ahalab.tasks.text import normalised
from ahalab.verify.answers import AnswerSet
from ahalab.verify.compared_fields import TEMPLATES
from ahalab.verify.oracle import FloatArray, paired_bounds
from ahalab.verify.reading import Study
from ahalab.verify.wording import check_template_sentence

FILE = TEMPLATES.file


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
    TEMPLATES.compare(study, "", head, found)
    for template, result in zip(asked.templates, found.templates, strict=True):
        expected = {**to_plain(template), **_counted(sets[template.name])}
        study.recompute(f"template.{template.name}", expected)
        TEMPLATES.compare(study, template.name, expected, result)
    metrics = tuple(one.metric for one in found.ranges)
    if study.ledger["outcome.missing"].expect(FILE, None, "ranges of", METRICS, metrics):
        for one in found.ranges:
            correct = {n: _correct_N(sets[n], prompts, one.metric) for n in names}
            clusters = [normalised(prompt.question) for prompt in prompts]
            expected = _range(correct, clusters, plan.analysis.confidence)
            study.recompute(f"templates.{one.metric}", expected)
            TEMPLATES.compare(study, one.metric, expected, one)
            check_template_sentence(study, one, found)
    return found


def _answered(answers: AnswerSet, prompts: list[Prompt]) -> bool:
    """Say whether the answers are whole, and those to these questions."""
    keys = {(prompt.prompt_id, 0) for prompt in prompts}
    return answers.whole and bool(keys) and keys == answers.replies.keys()


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
