"""A saved pair of answers, as the packaged demo holds them: texts, and the recorded outcomes."""

from __future__ import annotations

from typing import Literal

from ahalab.records.base import Record
from ahalab.records.terms import Finish, Outcome


class RecordedOutcomes(Record, frozen=True, kw_only=True):
    """What the study's own scoring said of one answer."""

    strict: Outcome
    lenient: Outcome


class SavedPair(Record, frozen=True, kw_only=True):
    """What base and adapter answered to one question; both are scored again when it is shown."""

    schema: Literal["saved-pair/2"] = "saved-pair/2"
    study: str  # name of its plan
    arm: str
    seed: int
    answer_format: str
    task: str
    scorer_version: str  # that recorded the outcomes
    question: str
    gold: str
    base_completion: str
    base_finish: Finish
    base_recorded: RecordedOutcomes
    adapter_completion: str
    adapter_finish: Finish
    adapter_recorded: RecordedOutcomes
