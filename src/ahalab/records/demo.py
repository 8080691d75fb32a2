"""A saved pair of answers, as the packaged demo holds them: texts only, no verdict."""

from __future__ import annotations

from typing import Literal

from ahalab.records.base import Record
from ahalab.records.terms import Finish


class SavedPair(Record, frozen=True, kw_only=True):
    """What base and adapter answered to one question; outcomes are scored when it is shown."""

    schema: Literal["saved-pair/1"] = "saved-pair/1"
    arm: str
    seed: int
    answer_format: str
    task: str
    question: str
    gold: str
    base_completion: str
    base_finish: Finish
    adapter_completion: str
    adapter_finish: Finish
