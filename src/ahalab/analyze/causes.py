"""What reflecting causes: answers as they were written, beside what they are without it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from ahalab.analyze.answers import Answers, FloatArray, read_record
from ahalab.analyze.reflection_sentences import arm_sentence, effect_sentence, floor_sentence, who
from ahalab.errors import ProtocolError, RecordError
from ahalab.records.answer import Answer
from ahalab.records.base import decode_file, digest
from ahalab.records.plan import Plan
from ahalab.records.prompt import Prompt
from ahalab.records.reflection import (
    ArmReflection,
    Continuation,
    Ending,
    ReflectionEffect,
    ReflectionProtocol,
    ReflectionVerdict,
    SideReflection,
)
from ahalab.records.terms import METRICS, Metric
from ahalab.scoring.reflection import first_marker
from ahalab.statistics.difference import Difference, detectable, difference_over_questions
from ahalab.statistics.interval import Interval
from ahalab.statistics.multiplicity import holm
from ahalab.statistics.seeds import reward_claim
from ahalab.statistics.verdict import VerdictName, decide
from ahalab.store.journal import read_journal
from ahalab.store.layout import AnswerPaths
from ahalab.store.reading import journal_path, read_rows
from ahalab.tasks.text import normalised

WORDS: Mapping[VerdictName, ReflectionVerdict] = {
    "improved": "caused right answers",
    "worse": "caused wrong answers",
}


@dataclass(frozen=True, slots=True)
class Setting:
    """What every side shares."""

    plan: Plan
    prompts: list[Prompt]

    @property
    def clusters(self) -> list[str]:
        """One label per question, in order."""
        return [normalised(prompt.question) for prompt in self.prompts]


@dataclass(frozen=True, slots=True)
class Checked:
    """One side whose answers with a marker were finished without it."""

    answers: Answers
    rows: tuple[Continuation, ...]

    @property
    def usable(self) -> list[tuple[Answer, Continuation]]:
        """Answers and continuations that can be compared: the latter do not reflect."""
        return [(self.written(row), row) for row in self.rows if not row.reflects]

    def written(self, row: Continuation) -> Answer:
        """Return the answer that a row continues."""
        return self.answers.rows[row.prompt_id, row.sample]


def load_checked(answers: Answers, target: AnswerPaths) -> Checked | None:
    """Return a side's continuations; None when they are not finished.

    Raises:
        ProtocolError: They continue answers under another protocol than today's.
        RecordError: A row is malformed, doubled or missing.
    """
    if read_journal(journal_path(target.answers)).seal is None:
        return None
    path = target.protocol
    protocol = decode_file(read_record(path), ReflectionProtocol, str(path))
    if protocol.answers != digest(answers.protocol):
        raise ProtocolError(
            f"{path}: expected continuations of the answers under {digest(answers.protocol)}, "
            f"found those of {protocol.answers}. Remove {path.parent} to generate them again."
        )
    wanted = [k for k, row in answers.rows.items() if first_marker(row.completion) is not None]
    rows = [row for _, row in read_rows(target.answers, Continuation)]
    if [(row.prompt_id, row.sample) for row in rows] != wanted:
        raise RecordError(
            f"{target.answers}: expected the {len(wanted)} answers of {answers.name} with a "
            f"marker, each once and in order, found {len(rows)} rows, or others. Remove "
            f"{path.parent} to generate them again."
        )
    return Checked(answers, tuple(rows))


def side_effects(setting: Setting, sides: Sequence[Checked]) -> list[SideReflection]:
    """Return the causal check of every side; Holm runs over the sides, by metric."""
    effects = {
        metric: _adjusted(setting, sides, [_effect(setting, one, metric) for one in sides])
        for metric in METRICS
    }
    found = []
    for at, one in enumerate(sides):
        strict, lenient = (
            sum(_right(row.kept, m) != _right(one.written(row), m) for row in one.rows)
            for m in METRICS
        )
        same = sum(row.kept.completion_ids == one.written(row).completion_ids for row in one.rows)
        usable = one.usable
        found.append(
            SideReflection(
                answers=one.answers.name,
                n=len(one.answers.rows),
                marked=len(one.rows),
                still=len(one.rows) - len(usable),
                truncated_with=sum(answer.finish == "length" for answer, _ in usable),
                truncated_without=sum(row.without.finish == "length" for _, row in usable),
                kept_same=same,
                kept_strict=strict,
                kept_lenient=lenient,
                floor=floor_sentence(len(one.rows), same, strict, lenient),
                effects=tuple(effects[metric][at] for metric in METRICS),
            )
        )
    return found


def _right(row: Answer | Ending, metric: Metric) -> int:
    return int((row.strict if metric == "strict" else row.lenient) == "correct")


def _by_question(
    setting: Setting, pairs: Sequence[tuple[str, int, int]]
) -> tuple[list[float], list[str]]:
    """Return mean differences of the questions that have pairs, and their clusters.

    Args:
        setting: The questions, in order.
        pairs: (prompt_id, right with, right without).
    """
    by_id: dict[str, list[int]] = {}
    for prompt, one, other in pairs:
        by_id.setdefault(prompt, []).append(one - other)
    there = [p for p in setting.prompts if p.prompt_id in by_id]
    means = [sum(by_id[p.prompt_id]) / len(by_id[p.prompt_id]) for p in there]
    return means, [normalised(p.question) for p in there]


def _tested(setting: Setting, pairs: Sequence[tuple[str, int, int]]) -> Difference | None:
    means, clusters = _by_question(setting, pairs)
    if not means:
        return None
    return difference_over_questions(means, clusters, setting.plan.analysis.confidence)


def _effect(setting: Setting, side: Checked, metric: Metric) -> ReflectionEffect:
    """Return one side's effect, before Holm."""
    usable = side.usable
    pairs = [
        (row.prompt_id, _right(answer, metric), _right(row.without, metric))
        for answer, row in usable
    ]
    free = [
        (row.prompt_id, _right(row.kept, metric), _right(row.without, metric)) for _, row in usable
    ]
    found, kept = _tested(setting, pairs), _tested(setting, free)
    alpha = setting.plan.analysis.alpha
    seen = None if found is None else detectable(found, alpha)
    return ReflectionEffect(
        metric=metric,
        pairs=len(pairs),
        questions=len({prompt for prompt, _, _ in pairs}),
        correct_with=sum(one for _, one, _ in pairs),
        correct_without=sum(other for _, _, other in pairs),
        gained=sum(one > other for _, one, other in pairs),
        lost=sum(one < other for _, one, other in pairs),
        difference_points=None if found is None else 100 * found.difference,
        interval_points=_points(found),
        p_value=None if found is None else found.p_value,
        p_holm=None,
        kept_difference_points=None if kept is None else 100 * kept.difference,
        kept_p_value=None if kept is None else kept.p_value,
        only_as_written=False,
        detectable_points=None if seen is None else 100 * seen,
        verdict="not measured" if side.rows else "no answer reflected",
        sentence="",
    )


def _points(found: Difference | None) -> tuple[float, float] | None:
    return None if found is None else (100 * found.interval.low, 100 * found.interval.high)


def _adjusted(
    setting: Setting, sides: Sequence[Checked], effects: list[ReflectionEffect]
) -> list[ReflectionEffect]:
    """Return the effects after Holm, with verdict and sentence."""
    analysis, done = setting.plan.analysis, []
    adjusted = holm([effect.p_value for effect in effects])
    for side, effect, p_holm in zip(sides, effects, adjusted, strict=True):
        found = replace(effect, p_holm=p_holm)
        if effect.interval_points is not None:
            verdict = _verdict(effect.interval_points, effect.p_value, p_holm, analysis.alpha)
            free = _holds_against_kept(effect, analysis.alpha)
            held = verdict if free or verdict == "no evidence" else "no evidence"
            found = replace(found, verdict=held, only_as_written=held != verdict)
        counts = (len(side.answers.rows), len(side.rows), len(side.rows) - len(side.usable))
        name = who(side.answers.name)
        told = effect_sentence(found, name, counts, analysis.confidence)
        done.append(replace(found, sentence=told))
    return done


def _verdict(
    bounds: tuple[float, float], p_value: float | None, p_holm: float | None, alpha: float
) -> ReflectionVerdict:
    between = Interval(bounds[0] / 100, bounds[1] / 100)
    return WORDS.get(decide(p_holm, between, alpha=alpha, p_value=p_value).name, "no evidence")


def _holds_against_kept(effect: ReflectionEffect, alpha: float) -> bool:
    """Say whether the free continuations differ from the others too, and in the same direction."""
    kept, change = effect.kept_difference_points, effect.difference_points
    if kept is None or change is None or effect.kept_p_value is None:
        return False
    return effect.kept_p_value <= alpha and (kept > 0) == (change > 0)


def arm_effects(setting: Setting, sides: Mapping[tuple[str, int], Checked]) -> list[ArmReflection]:
    """Return what reflecting is worth to each arm whose every seed was checked."""
    plan = setting.plan
    arms = [a.name for a in plan.arms if all((a.name, seed) in sides for seed in plan.seeds)]
    found: list[ArmReflection] = []
    for metric in METRICS:
        family = [_arm(setting, arm, [sides[arm, s] for s in plan.seeds], metric) for arm in arms]
        adjusted = holm([one.p_value for one in family])
        for one, p_holm in zip(family, adjusted, strict=True):
            done = replace(one, p_holm=p_holm)
            if one.interval_points is not None:
                word = _verdict(one.interval_points, one.p_value, p_holm, plan.analysis.alpha)
                done = replace(done, verdict=word)
            found.append(replace(done, sentence=arm_sentence(done, plan.analysis.confidence)))
    return found


def _arm(setting: Setting, arm: str, sides: Sequence[Checked], metric: Metric) -> ArmReflection:
    """Return one arm's effect, before Holm: over all questions, shape (S, N)."""
    values = np.array([_contribution(setting, side, metric) for side in sides])
    estimate = reward_claim(values, setting.clusters, setting.plan.analysis.confidence)
    bounds, seen = estimate.interval, estimate.detectable()
    verdict: ReflectionVerdict = "no evidence"
    if not any(side.usable for side in sides):
        verdict = "not measured" if any(side.rows for side in sides) else "no answer reflected"
    return ArmReflection(
        arm=arm,
        metric=metric,
        seeds=len(sides),
        difference_points=100 * estimate.difference,
        seed_differences_points=tuple(100 * one for one in estimate.by_seed),
        interval_points=None if bounds is None else (100 * bounds.low, 100 * bounds.high),
        p_value=estimate.p_value,
        p_holm=None,
        detectable_points=None if seen is None else 100 * seen,
        verdict=verdict,
        sentence="",
    )


def _contribution(setting: Setting, side: Checked, metric: Metric) -> FloatArray:
    """Return right as written minus right without, by question, shape (N,), over all samples."""
    samples = setting.plan.evaluation.samples
    change: dict[str, float] = {}
    for answer, row in side.usable:
        moved = _right(answer, metric) - _right(row.without, metric)
        change[row.prompt_id] = change.get(row.prompt_id, 0.0) + moved / samples
    return np.array([change.get(prompt.prompt_id, 0.0) for prompt in setting.prompts])
