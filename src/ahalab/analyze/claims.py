"""Every number that the report prints, with an id, a unit, its inputs and its method."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ahalab.records.base import Record
from ahalab.records.comparison import Ablation, AdapterComparison, ArmComparison, Comparison
from ahalab.records.manifest import Claim, Claims
from ahalab.records.replay import Replay
from ahalab.records.templates import TemplateComparison

ARM_FIELDS = {
    "accuracy": "fraction",
    "reference_accuracy": "fraction",
    "gained_mean": "answers per seed",
    "lost_mean": "answers per seed",
    "difference_points": "points",
    "p_value": "probability",
    "p_holm": "probability",
    "minimal_detectable_points": "points",
    "verdict": "verdict",
    "sentence": "text",
}
ADAPTER_FIELDS = {
    "n": "questions",
    "base_correct": "questions",
    "adapter_correct": "questions",
    "gained": "questions",
    "lost": "questions",
    "difference_points": "points",
    "p_value": "probability",
    "p_exact": "probability",
    "verdict": "verdict",
    "sentence": "text",
}
FLOOR_FIELDS = {
    "n": "answers",
    "changed_completions": "answers",
    "strict_gained": "answers",
    "strict_lost": "answers",
    "lenient_gained": "answers",
    "lenient_lost": "answers",
    "sentence": "text",
}
ABLATION_FIELDS = {
    "strict_difference_points": "points",
    "lenient_difference_points": "points",
    "strict_seed_spread_points": "points",
    "lenient_seed_spread_points": "points",
    "own_score_difference": "reward",
}
REPLAY_FIELDS = {
    "n": "answers",
    "equal": "answers",
    "strict_gained": "answers",
    "strict_lost": "answers",
    "lenient_gained": "answers",
    "lenient_lost": "answers",
    "verdicts": "verdicts",
    "conclusion": "text",
}
TEMPLATE_FIELDS = {
    "n": "questions",
    "strict_accuracy": "fraction",
    "lenient_accuracy": "fraction",
    "mean_tokens": "tokens",
}
RANGE_FIELDS = {
    "worst_accuracy": "fraction",
    "best_accuracy": "fraction",
    "own_accuracy": "fraction",
    "spread_points": "points",
    "lead_points": "points",
    "verdict": "verdict",
    "sentence": "text",
}
BASE = "base/answers.jsonl"
PROMPTS = "prompts/eval.jsonl"


def collect_claims(
    comparison: Comparison,
    ablation: Ablation,
    replay: Replay | None = None,
    templates: TemplateComparison | None = None,
) -> Claims:
    """Return the claims of a study, in a fixed order."""
    claims = [
        *(c for arm in comparison.arms for c in _arm_claims(comparison, arm)),
        *(c for adapter in comparison.adapters for c in _adapter_claims(adapter)),
        *_floor_claims(comparison),
        *_ablation_claims(ablation),
        *_replay_claims(replay),
        *_exception_claims(comparison),
        *(_template_claims(templates) if templates else ()),
    ]
    return Claims(plan_digest=comparison.plan_digest, claims=tuple(claims))


def _answers(arm: str, seed: int) -> str:
    return f"arms/{arm}/seed-{seed}/answers.jsonl"


def _arm_claims(comparison: Comparison, arm: ArmComparison) -> Iterator[Claim]:
    seeds = [(a.arm, a.seed) for a in comparison.adapters if a.metric == arm.metric]
    named = {arm.arm, comparison.control} if arm.against == "control" else {arm.arm}
    wanted = [_answers(a, s) for a, s in seeds if a in named]
    source = _Source(
        prefix=f"arm.{arm.arm}.{arm.against}.{arm.metric}",
        inputs=(PROMPTS, BASE, *wanted),
        method="mean over seeds of paired differences by question; two-way error over questions "
        "and seeds; Holm over the planned comparisons of the metric",
    )
    yield from source.fields(arm, ARM_FIELDS)
    yield from source.bounds(arm.interval_points)


def _adapter_claims(adapter: AdapterComparison) -> Iterator[Claim]:
    source = _Source(
        prefix=f"adapter.{adapter.arm}.{adapter.seed}.{adapter.metric}",
        inputs=(PROMPTS, BASE, _answers(adapter.arm, adapter.seed)),
        method="paired by question; mid-p McNemar, Tango's interval (by question when k > 1)",
    )
    yield from source.fields(adapter, ADAPTER_FIELDS)
    yield from source.bounds(adapter.interval_points)
    yield from source.concordant(adapter)


def _floor_claims(comparison: Comparison) -> Iterator[Claim]:
    if comparison.floor is None:
        return
    source = _Source(
        prefix="floor",
        inputs=(BASE, "base/floor.jsonl"),
        method="the base against itself under the second batch plan",
    )
    yield from source.fields(comparison.floor, FLOOR_FIELDS)


def _ablation_claims(ablation: Ablation) -> Iterator[Claim]:
    for arm in ablation.arms:
        answers = tuple(_answers(c.arm, c.seed) for c in ablation.cells if c.arm == arm.arm)
        source = _Source(
            prefix=f"ablation.{arm.arm}",
            inputs=(PROMPTS, BASE, *answers),
            method="mean and standard deviation over seeds",
        )
        yield from source.fields(arm, ABLATION_FIELDS)


def _replay_claims(replay: Replay | None) -> Iterator[Claim]:
    if replay is None:
        return
    sets = [f"{replayed.answers}.jsonl" for replayed in replay.sets]
    source = _Source(
        prefix="replay",
        inputs=(PROMPTS, *sets, *(f"replay/{name}" for name in sets)),
        method="the evaluation against itself generated again, paired by prompt and sample",
    )
    yield from source.fields(replay, REPLAY_FIELDS)


def _exception_claims(comparison: Comparison) -> Iterator[Claim]:
    """Yield one claim for each field in which the protocols were allowed to differ."""
    for field in sorted({allowed.field for allowed in comparison.allowed or ()}):
        sets = [a.answers for a in comparison.allowed or () if a.field == field]
        names = ["base/answers", *sets]
        yield Claim(
            id=f"exception.{field}",
            value=len(sets),
            unit="answer sets",
            inputs=tuple(f"{name}.protocol.json" for name in names),
            method="answer sets whose protocol differs in this field from the base's, by exception",
        )


def _template_claims(templates: TemplateComparison) -> Iterator[Claim]:
    answers = tuple(f"templates/{t.name}/answers.jsonl" for t in templates.templates)
    for template, own in zip(templates.templates, answers, strict=True):
        method = "the base's greedy answers under one template"
        source = _Source(f"template.{template.name}", (own,), method)
        yield from source.fields(template, TEMPLATE_FIELDS)
    for found in templates.ranges:
        prefix = f"templates.{found.metric}"
        method = "the base paired by question under two templates; Bonferroni over those tried"
        yield from _Source(prefix, answers, method).fields(found, RANGE_FIELDS)
        spread, lead = found.spread_interval_points, found.lead_interval_points
        for name, bounds in (("spread", spread), ("lead", lead)):
            yield from _Source(f"{prefix}.{name}", answers, method).bounds(bounds)


@dataclass(frozen=True, slots=True)
class _Source:
    """Where a group of claims comes from."""

    prefix: str  # of their ids
    inputs: tuple[str, ...]
    method: str

    def fields(self, record: Record, units: Mapping[str, str]) -> Iterator[Claim]:
        """Yield one claim per named field of a record."""
        for field, unit in units.items():
            yield self._claim(field, getattr(record, field), unit)

    def bounds(self, interval: tuple[float, float] | None) -> Iterator[Claim]:
        """Yield the two ends of an interval; None where there is none."""
        for side, bound in zip(("low", "high"), interval or (None, None), strict=True):
            yield self._claim(f"interval_{side}_points", bound, "points")

    def concordant(self, adapter: AdapterComparison) -> Iterator[Claim]:
        """Yield how many pairs agree, both right and both wrong; none where pairs are undefined."""
        if adapter.gained is None or adapter.lost is None:
            return
        right = round(adapter.base_correct) - adapter.lost
        yield self._claim("both_right", right, "questions")
        yield self._claim(
            "both_wrong", adapter.n - right - adapter.gained - adapter.lost, "questions"
        )

    def _claim(self, field: str, value: float | int | str | None, unit: str) -> Claim:
        claim_id = f"{self.prefix}.{field}"
        return Claim(id=claim_id, value=value, unit=unit, inputs=self.inputs, method=self.method)
