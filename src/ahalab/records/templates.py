"""The base under several prompt templates: what was asked, and how far the template moves it."""

from __future__ import annotations

from typing import Literal

from ahalab.records.base import Record
from ahalab.records.terms import Metric, Outcome, Split

BetterTemplate = Literal["own is best", "better exists", "no evidence"]


class AskedTemplate(Record, frozen=True, kw_only=True):
    """One way to put a question to the base."""

    name: str  # `plan` for the task's own; its folder
    template: str  # user message
    system: str | None


class TemplateSet(Record, frozen=True, kw_only=True):
    """What the base is tried under, fixed before its first answer."""

    schema: Literal["ahalab.template_set/1"] = "ahalab.template_set/1"
    plan_digest: str
    source: Literal["plan", "built-in"]  # where the templates beside the task's own come from
    version: str  # of the built-in set
    split: Split  # never the evaluation: the best template would be chosen on the test questions
    questions: int  # drawn by the evaluation's seed ...
    available: int  # ... of so many prompts of the split
    templates: tuple[AskedTemplate, ...]  # the task's own first
    left_out: tuple[str, ...]  # built-in ones whose system message the chat template refuses


class TemplateResult(Record, frozen=True, kw_only=True):
    """What the base answers under one template, greedily."""

    name: str
    template: str
    system: str | None
    n: int  # questions
    strict: dict[Outcome, int]  # answers by outcome
    lenient: dict[Outcome, int]
    strict_accuracy: float  # fraction
    lenient_accuracy: float
    mean_tokens: float | None  # None: an endpoint that tells no token ids


class TemplateRange(Record, frozen=True, kw_only=True):
    """How far the template alone moves the base, under one reading.

    The best one is chosen on the same questions. So each interval holds for every comparison that
    could have been told in its place (Bonferroni): all pairs, or each template with the plan's.
    """

    metric: Metric
    worst: str  # name of a template
    best: str
    worst_accuracy: float  # fraction
    best_accuracy: float
    own_accuracy: float  # under the task's own template
    spread_points: float  # best minus worst
    spread_interval_points: tuple[float, float] | None  # over questions; None: best is worst
    lead_points: float  # best minus the task's own
    lead_interval_points: tuple[float, float] | None  # None: the task's own is the best
    verdict: BetterTemplate
    sentence: str


class TemplateComparison(Record, frozen=True, kw_only=True):
    """The base under every template of the set; exploratory, and never on evaluation questions."""

    schema: Literal["ahalab.templates/1"] = "ahalab.templates/1"
    plan_digest: str
    split: Split
    questions: int
    confidence: float
    templates: tuple[TemplateResult, ...]  # in the order of the set
    ranges: tuple[TemplateRange, ...]  # strict and lenient
