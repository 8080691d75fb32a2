"""What the scorer took from a text, found again by the installed scorer, for the mark in it."""

from __future__ import annotations

from dataclasses import dataclass

from ahalab.records.plan import Plan
from ahalab.records.terms import Finish
from ahalab.scoring.answers import MAX_EXTRACTED, SCORER_VERSION, Asked, Reading, score_answer
from ahalab.tasks.questions import scoring_task
from ahalab.view.shown import Shown, shown
from ahalab.visible import plain


@dataclass(frozen=True, slots=True)
class Question:
    """What was asked, and its gold answer."""

    question: str | None  # None: the prompts were not read yet
    gold: str | None


@dataclass(frozen=True, slots=True)
class Taken:
    """A completion with what the evaluation scorer took from it."""

    completion: Shown
    extracted: str | None  # as recorded, made visible
    rule: str  # that took it; empty where no record says and the scorer differs
    note: str  # why nothing is marked although something was taken; empty where it is


def taken(
    plan: Plan, asked: Question, completion: str, finish: Finish, extracted: str | None
) -> Taken:
    """Mark what the lenient reading took, where the installed scorer takes the recorded text.

    Records keep the text that was taken, not its place. LaTeX is not compared here: the place does
    not depend on the verdict.
    """
    if extracted is None:
        return Taken(shown(completion), None, "", "")
    reading = _reading(plan, asked, completion, finish)
    if reading is None or reading.extracted != extracted[:MAX_EXTRACTED]:
        note = f"not marked: the installed scorer ({SCORER_VERSION}) does not take this text"
        return Taken(shown(completion), plain(extracted), "", note)
    return Taken(shown(completion, reading.span), plain(extracted), reading.rule, "")


def _reading(plan: Plan, asked: Question, completion: str, finish: Finish) -> Reading | None:
    if asked.gold is None:
        return None
    how = Asked(plan.answer_format, scoring_task(plan.task), asked.question)
    try:
        return score_answer(completion, asked.gold, finish, how).lenient
    except ValueError:  # an answer format that this version refuses
        return None
