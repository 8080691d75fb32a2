"""Exports the answers that changed: gained and lost, and of which kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import UNSET

from ahalab.analyze.answers import StudyAnswers
from ahalab.records.answer import Answer
from ahalab.records.base import digest
from ahalab.records.comparison import ChangedAnswer, ChangedResponses
from ahalab.records.prompt import Prompt
from ahalab.records.terms import METRICS, Metric, Outcome

Kind = Literal["format", "arithmetic", "truncated", "extraction"]


def changed_responses(study: StudyAnswers) -> ChangedResponses:
    """Return every gained and lost answer of every adapter, strict and lenient."""
    prompts = {p.prompt_id: p for p in study.prompts}
    changed = [
        _changed(arm, seed, metric, prompts[key[0]], study.base.rows[key], adapter)
        for (arm, seed), answers in study.adapters.items()
        for metric in METRICS
        for key, adapter in sorted(answers.rows.items())
        if (_outcome(study.base.rows[key], metric) == "correct")
        != (_outcome(adapter, metric) == "correct")
    ]
    return ChangedResponses(
        plan_digest=digest(study.plan),
        allowed=study.exceptions or UNSET,
        changed=tuple(changed),
    )


def _outcome(answer: Answer, metric: Metric) -> Outcome:
    return answer.strict if metric == "strict" else answer.lenient


def _changed(
    arm: str, seed: int, metric: Metric, prompt: Prompt, base: Answer, adapter: Answer
) -> ChangedAnswer:
    gained = _outcome(adapter, metric) == "correct"
    return ChangedAnswer(
        arm=arm,
        seed=seed,
        prompt_id=prompt.prompt_id,
        sample=adapter.sample,
        metric=metric,
        change="gained" if gained else "lost",
        kind=_kind(metric, wrong=base if gained else adapter),
        question=prompt.question,
        gold=prompt.gold,
        base_completion=base.completion,
        adapter_completion=adapter.completion,
        base_extracted=base.extracted,
        adapter_extracted=adapter.extracted,
        base_outcome=_outcome(base, metric),
        adapter_outcome=_outcome(adapter, metric),
        base_rule=base.rule,
        adapter_rule=adapter.rule,
        parted_at=parted_at(base.completion_ids, adapter.completion_ids),
    )


def parted_at(ours: Sequence[int] | None, theirs: Sequence[int] | None) -> int | None:
    """Return how many tokens two completions share before they part.

    Args:
        ours: Token ids, shape (C,); None where an endpoint tells none.
        theirs: Those of the other.

    Returns:
        None where either is unknown, or where they are the same.
    """
    if ours is None or theirs is None:
        return None
    pairs = enumerate(zip(ours, theirs, strict=False))
    shorter = min(len(ours), len(theirs))
    end = None if len(ours) == len(theirs) else shorter
    return next((at for at, (one, other) in pairs if one != other), end)


def _kind(metric: Metric, wrong: Answer) -> Kind:
    """Say what stood between the answer that is not correct and a correct one."""
    if wrong.finish == "length":
        return "truncated"
    if metric == "strict" and wrong.lenient == "correct":
        return "format"
    return "arithmetic" if wrong.lenient == "wrong" else "extraction"
