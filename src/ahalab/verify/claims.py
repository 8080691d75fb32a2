"""Claims: every printed number is a field of comparison or ablation, under a fixed name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ahalab.records.base import Record
from ahalab.records.comparison import Ablation, AdapterComparison, Comparison
from ahalab.records.manifest import Claims
from ahalab.records.replay import Replay
from ahalab.records.templates import TemplateComparison
from ahalab.verify.reading import Study, close

FILE = "claims.json"
ARM = (
    "accuracy", "reference_accuracy", "gained_mean", "lost_mean", "difference_points", "p_value",
    "p_holm", "minimal_detectable_points", "verdict", "sentence",
)  # fmt: skip
ADAPTER = (
    "n", "base_correct", "adapter_correct", "gained", "lost", "difference_points", "p_value",
    "p_exact", "verdict", "sentence",
)  # fmt: skip
FLOOR = (
    "n", "changed_completions", "strict_gained", "strict_lost", "lenient_gained", "lenient_lost",
    "sentence",
)  # fmt: skip
ABLATION = (
    "strict_difference_points", "lenient_difference_points", "strict_seed_spread_points",
    "lenient_seed_spread_points", "own_score_difference",
)  # fmt: skip
REPLAY = (
    "n", "equal", "strict_gained", "strict_lost", "lenient_gained", "lenient_lost", "verdicts",
    "conclusion",
)  # fmt: skip
TEMPLATE = ("n", "strict_accuracy", "lenient_accuracy", "mean_tokens")
RANGE = (
    "worst_accuracy", "best_accuracy", "own_accuracy", "spread_points", "lead_points", "verdict",
    "sentence",
)  # fmt: skip
UNITS = {
    "conclusion": "text",
    "strict_accuracy": "fraction",
    "lenient_accuracy": "fraction",
    "worst_accuracy": "fraction",
    "best_accuracy": "fraction",
    "own_accuracy": "fraction",
    "mean_tokens": "tokens",
    "accuracy": "fraction",
    "reference_accuracy": "fraction",
    "p_value": "probability",
    "p_holm": "probability",
    "p_exact": "probability",
    "verdict": "verdict",
    "sentence": "text",
}
METHODS = {
    "arm": "mean over seeds of paired differences by question; two-way error over questions and "
    "seeds; Holm over the planned comparisons of the metric",
    "adapter": "paired by question; mid-p McNemar, Tango's interval (by question when k > 1)",
    "floor": "the base against itself under the second batch plan",
    "replay": "the evaluation against itself generated again, paired by prompt and sample",
    "exception": "answer sets whose protocol differs in this field from the base's, by exception",
    "template": "the base's greedy answers under one template",
    "templates": "the base paired by question under two templates; Bonferroni over those tried",
    "ablation": "mean and standard deviation over seeds",
}
"""The method that a claim must name, by the first part of its id."""

Value = float | int | str | None


@dataclass(frozen=True, slots=True)
class _Expected:
    """What one claim must say."""

    value: Value
    unit: str | None  # None: not fixed by the field's name
    inputs: frozenset[str]


def check_claims(
    study: Study,
    comparison: Comparison | None,
    ablation: Ablation | None,
    replay: Replay | None,
    templates: TemplateComparison | None = None,
) -> Claims | None:
    """Check claims.json; return it when it could be read."""
    path, tally = study.paths.claims, study.ledger["claims"]
    found = study.record(path, Claims)
    if not path.exists():
        tally.incomplete(f"{FILE}: not written yet")
    elif found is not None and comparison is not None and ablation is not None:
        study.match_plan(path, found.plan_digest)
        expected = dict(_expected(comparison, ablation))
        expected |= dict(_expected_replay(replay)) | dict(_expected_exceptions(comparison))
        expected |= dict(_expected_templates(templates))
        _compare(study, found, expected)
    study.ledger.close(("claims",))
    return found


def _compare(study: Study, found: Claims, expected: dict[str, _Expected]) -> None:
    tally = study.ledger["claims"]
    left = dict(expected)
    for claim in found.claims:
        wanted = left.pop(claim.id, None)
        if wanted is None:
            tally.fail(FILE, None, "claims on the comparison, each once", claim.id)
            continue
        if close(wanted.value, claim.value, 0.0):
            tally.passed()
        else:
            tally.fail(FILE, None, f"{claim.id}: {wanted.value!r}", claim.value)
        if wanted.unit is not None:
            tally.expect(FILE, None, f"{claim.id}: unit", wanted.unit, claim.unit)
        tally.expect(FILE, None, f"{claim.id}: inputs", sorted(wanted.inputs), sorted(claim.inputs))
        method = METHODS[claim.id.partition(".")[0]]
        tally.expect(FILE, None, f"{claim.id}: method", method, claim.method)
    for name in left:
        tally.fail(FILE, None, f"the claim {name}", "none")


def _expected(comparison: Comparison, ablation: Ablation) -> Iterator[tuple[str, _Expected]]:
    answered = {(a.arm, a.seed) for a in comparison.adapters}
    shared = {"prompts/eval.jsonl", "base/answers.jsonl"}

    def inputs(*arms: str) -> frozenset[str]:
        own = {f"arms/{a}/seed-{s}/answers.jsonl" for a, s in answered if a in arms}
        return frozenset(shared | own)

    for arm in comparison.arms:
        named = (arm.arm, comparison.control) if arm.against == "control" else (arm.arm,)
        stem = f"arm.{arm.arm}.{arm.against}.{arm.metric}"
        yield from _fields(stem, arm, ARM, inputs(*named))
        yield from _bounds(stem, arm.interval_points, inputs(*named))
    for adapter in comparison.adapters:
        stem = f"adapter.{adapter.arm}.{adapter.seed}.{adapter.metric}"
        own = frozenset(shared | {f"arms/{adapter.arm}/seed-{adapter.seed}/answers.jsonl"})
        yield from _fields(stem, adapter, ADAPTER, own)
        yield from _bounds(stem, adapter.interval_points, own)
        yield from _agreeing(stem, adapter, own)
    if comparison.floor is not None:
        floor = frozenset({"base/answers.jsonl", "base/floor.jsonl"})
        yield from _fields("floor", comparison.floor, FLOOR, floor)
    for row in ablation.arms:
        yield from _fields(f"ablation.{row.arm}", row, ABLATION, inputs(row.arm))


def _expected_replay(replay: Replay | None) -> Iterator[tuple[str, _Expected]]:
    if replay is None:
        return
    own = {f"{under}{s.answers}.jsonl" for s in replay.sets for under in ("", "replay/")}
    yield from _fields("replay", replay, REPLAY, frozenset({"prompts/eval.jsonl", *own}))


def _expected_exceptions(comparison: Comparison) -> Iterator[tuple[str, _Expected]]:
    sets: dict[str, list[str]] = {}
    for allowed in comparison.allowed or ():
        sets.setdefault(allowed.field, []).append(allowed.answers)
    for name, answers in sets.items():
        files = frozenset(f"{one}.protocol.json" for one in ("base/answers", *answers))
        yield f"exception.{name}", _Expected(len(answers), "answer sets", files)


def _expected_templates(found: TemplateComparison | None) -> Iterator[tuple[str, _Expected]]:
    if found is None:
        return
    answers = {t.name: f"templates/{t.name}/answers.jsonl" for t in found.templates}
    for template in found.templates:
        own = frozenset({answers[template.name]})
        yield from _fields(f"template.{template.name}", template, TEMPLATE, own)
    for one in found.ranges:
        stem, every = f"templates.{one.metric}", frozenset(answers.values())
        yield from _fields(stem, one, RANGE, every)
        yield from _bounds(f"{stem}.spread", one.spread_interval_points, every)
        yield from _bounds(f"{stem}.lead", one.lead_interval_points, every)


def _fields(
    stem: str, record: Record, names: tuple[str, ...], inputs: frozenset[str]
) -> Iterator[tuple[str, _Expected]]:
    for name in names:
        unit = "points" if name.endswith("_points") else UNITS.get(name)
        yield f"{stem}.{name}", _Expected(getattr(record, name), unit, inputs)


def _agreeing(
    stem: str, adapter: AdapterComparison, inputs: frozenset[str]
) -> Iterator[tuple[str, _Expected]]:
    """Yield the pairs that no test counts: both answers right, both wrong."""
    gained, lost = adapter.gained, adapter.lost
    if gained is not None and lost is not None:
        wrong = adapter.n - int(adapter.base_correct) - gained
        for name, value in (("right", int(adapter.base_correct) - lost), ("wrong", wrong)):
            yield f"{stem}.both_{name}", _Expected(value, "questions", inputs)


def _bounds(
    stem: str, bounds: tuple[float, float] | None, inputs: frozenset[str]
) -> Iterator[tuple[str, _Expected]]:
    for side, value in zip(("low", "high"), bounds or (None, None), strict=True):
        yield f"{stem}.interval_{side}_points", _Expected(value, "points", inputs)
