"""Accuracy on the validation split at each checkpoint, from its answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from ahalab.records.diagnostics import ValidationPoint
from ahalab.records.validation import ValidationAnswer


def validation_points(answers: Iterable[ValidationAnswer]) -> tuple[ValidationPoint, ...]:
    """Return one point per checkpoint, in the order of the steps.

    Args:
        answers: Rows of validation.jsonl.
    """
    by_step: dict[int, list[ValidationAnswer]] = defaultdict(list)
    for answer in answers:
        by_step[answer.step].append(answer)
    return tuple(_point(step, by_step[step]) for step in sorted(by_step))


def _point(step: int, answers: list[ValidationAnswer]) -> ValidationPoint:
    count = len(answers)
    return ValidationPoint(
        step=step,
        prompts=count,
        strict_fraction=sum(a.strict == "correct" for a in answers) / count,
        lenient_fraction=sum(a.lenient == "correct" for a in answers) / count,
        truncated_fraction=sum(a.finish == "length" for a in answers) / count,
    )
