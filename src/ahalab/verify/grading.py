"""Scores completions again, as training and evaluation did: the same text is scored once."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ahalab.records.terms import Finish, Outcome
from ahalab.scoring.answers import Asked, Score, score_answer
from ahalab.scoring.components import Origin, Response
from ahalab.scoring.reflection import reflection_markers
from ahalab.scoring.training_parser import historical_outcome
from ahalab.scoring.worker import row_decider

TIMEOUT = "error: timeout"
KEPT = 40_000  # completions whose grade is remembered; then all are forgotten


@dataclass(frozen=True, slots=True)
class Grade:
    """What both scorers say of one completion."""

    score: Score  # evaluation scorer
    historical: Outcome  # training parser
    reflection: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Put:
    """One completion as it was put to the scorers."""

    completion: str
    gold: str
    question: str
    finish: Finish


class Grader:
    """Both scorers under one answer format."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self._kept: dict[Put, Grade] = {}
        self._asked: dict[str, Asked] = {}  # by question

    def _asked_of(self, question: str) -> Asked:
        asked = self._asked.get(question)
        if asked is None:
            asked = self._asked[question] = replace(self.asked, prompt=question)
        return asked

    def grade(self, put: Put) -> Grade:
        """Score one completion.

        Raises:
            ValueError: The plan's answer format is not one that the scorer knows.
        """
        grade = self._kept.get(put)
        if grade is None:
            asked = self._asked_of(put.question)
            grade = Grade(
                score_answer(put.completion, put.gold, put.finish, asked, row_decider(asked.task)),
                historical_outcome(put.completion, put.gold),
                reflection_markers(put.completion),
            )
            if len(self._kept) >= KEPT:
                self._kept.clear()
            self._kept[put] = grade
        return grade

    def response(self, put: Put, origin: Origin) -> Response:
        """Return what reward components look at.

        Raises:
            ValueError: See `grade`.
        """
        grade = self.grade(put)
        return Response(
            completion=put.completion,
            gold=put.gold,
            finish=put.finish,
            origin=origin,
            asked=self._asked_of(put.question),
            score=grade.score,
            historical=grade.historical,
        )


def clock_decided(score: Score, recorded_status: str) -> bool:
    """Say whether the clock, and not the text, decided, here or there: that need not repeat."""
    statuses = (score.strict.status, score.lenient.status, recorded_status)
    return TIMEOUT in statuses
