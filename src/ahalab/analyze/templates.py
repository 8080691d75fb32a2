"""How far the prompt template alone moves the base, from its answers under each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from ahalab.analyze.answers import Answers, FloatArray, load_answers
from ahalab.analyze.sentences import interval, percent
from ahalab.plan.templates import OWN
from ahalab.records.base import digest
from ahalab.records.plan import Plan
from ahalab.records.prompt import Prompt
from ahalab.records.templates import (
    BetterTemplate,
    TemplateComparison,
    TemplateRange,
    TemplateResult,
    TemplateSet,
)
from ahalab.records.terms import METRICS, Metric
from ahalab.statistics.difference import difference_over_questions
from ahalab.store.layout import StudyPaths
from ahalab.store.reading import read_rows
from ahalab.tasks.templates import read_template_set
from ahalab.tasks.text import normalised

Bounds = tuple[float, float]
NO_MOVE = "no evidence that the protocol alone moves it"


@dataclass(frozen=True, slots=True)
class _Tried:
    """The base's correctness under every template, by question."""

    correct: Mapping[str, FloatArray]  # (N,) by name, in the set's order
    clusters: list[str]  # one label per question
    confidence: float

    def bounds(self, higher: str, lower: str, comparisons: int) -> Bounds | None:
        """Return an interval of a difference, in points, that holds for so many at once."""
        if higher == lower:
            return None
        differences = self.correct[higher] - self.correct[lower]
        level = 1 - (1 - self.confidence) / comparisons
        found = difference_over_questions(differences, self.clusters, level).interval
        return 100 * found.low, 100 * found.high


def compare_templates(plan: Plan, paths: StudyPaths) -> TemplateComparison | None:
    """Compare the base's answers under the templates of a study; None until each has its own.

    Raises:
        ProtocolError: Answers were made under another protocol than the one beside them.
        RecordError: A row is malformed, doubled or missing, with `file:line`.
    """
    asked = read_template_set(paths)
    if asked is None:
        return None
    sets: dict[str, Answers] = {}
    prompts: list[Prompt] = []
    for template in asked.templates:
        path = paths.template_prompts(template.name)
        if path.is_file():
            prompts = [prompt for _, prompt in read_rows(path, Prompt)]
        expected = {(prompt.prompt_id, 0) for prompt in prompts}
        answers = load_answers(paths.template_answers(template.name), expected)
        if answers is None:
            return None
        sets[template.name] = answers
    return _comparison(plan, asked, sets, prompts)


def _comparison(
    plan: Plan, asked: TemplateSet, sets: Mapping[str, Answers], prompts: list[Prompt]
) -> TemplateComparison:
    order = [prompt.prompt_id for prompt in prompts]
    results = []
    for template in asked.templates:
        rates = sets[template.name].rates()
        results.append(
            TemplateResult(
                name=template.name,
                template=template.template,
                system=template.system,
                n=rates.n,
                strict=rates.strict,
                lenient=rates.lenient,
                strict_accuracy=rates.strict.get("correct", 0) / rates.n,
                lenient_accuracy=rates.lenient.get("correct", 0) / rates.n,
                mean_tokens=rates.mean_tokens,
            )
        )
    ranges = []
    for metric in METRICS:
        correct = {name: a.correct(metric, order, 1)[:, 0] for name, a in sets.items()}
        clusters = [normalised(prompt.question) for prompt in prompts]
        ranges.append(_range(metric, _Tried(correct, clusters, plan.analysis.confidence)))
    return TemplateComparison(
        plan_digest=digest(plan),
        split=asked.split,
        questions=asked.questions,
        confidence=plan.analysis.confidence,
        templates=tuple(results),
        ranges=tuple(ranges),
    )


def _range(metric: Metric, tried: _Tried) -> TemplateRange:
    """Compare best and worst, and best and own; of equals the first in the set's order counts."""
    accuracy = {name: float(np.mean(correct)) for name, correct in tried.correct.items()}
    best = max(accuracy, key=lambda name: accuracy[name])
    worst = min(accuracy, key=lambda name: accuracy[name])
    others = len(accuracy) - 1
    spread = tried.bounds(best, worst, others * (others + 1) // 2)
    lead = tried.bounds(best, OWN, others)
    verdict: BetterTemplate = "own is best"
    if lead is not None:
        verdict = "better exists" if lead[0] > 0 else "no evidence"
    found = TemplateRange(
        metric=metric,
        worst=worst,
        best=best,
        worst_accuracy=accuracy[worst],
        best_accuracy=accuracy[best],
        own_accuracy=accuracy[OWN],
        spread_points=100 * (accuracy[best] - accuracy[worst]),
        spread_interval_points=spread,
        lead_points=100 * (accuracy[best] - accuracy[OWN]),
        lead_interval_points=lead,
        verdict=verdict,
        sentence="",
    )
    return _with_sentence(found, tried)


def _with_sentence(found: TemplateRange, tried: _Tried) -> TemplateRange:
    templates, questions = len(tried.correct), len(tried.clusters)
    over = f"over {questions} questions"
    bounds = found.spread_interval_points
    if bounds is None:
        own = percent(found.own_accuracy)
        moved = f"The protocol alone does not move the base: {own} {found.metric} accuracy under "
        moved += f"each of {templates} templates {over}."
        return replace(found, sentence=moved)
    told = f"{found.spread_points:.1f} points ({interval(bounds, tried.confidence, 'questions')} "
    told += f"and every pair of {templates} templates)"
    worst = f"{percent(found.worst_accuracy)} ({found.worst})"
    best = f"{percent(found.best_accuracy)} ({found.best}) {found.metric} accuracy {over}"
    moved = f"The protocol alone moves the base from {worst} to {best}, {told}."
    if bounds[0] <= 0:
        moved = f"The base stands between {worst} and {best}, {told}: {NO_MOVE}."
    own = _own_sentence(found, tried.confidence, templates - 1)
    return replace(found, sentence=f"{moved} {own}")


def _own_sentence(found: TemplateRange, confidence: float, others: int) -> str:
    own, bounds = percent(found.own_accuracy), found.lead_interval_points
    if bounds is None:
        return f"The plan's template is the best of them, at {own}."
    told = (
        f"The plan's template stands at {own}, {found.lead_points:.1f} points below the best "
        f"({interval(bounds, confidence, 'questions')} and the {others} others)"
    )
    if found.verdict == "better exists":
        return f"{told}: a base under it is a straw man."
    return f"{told}: no evidence that another is better."
