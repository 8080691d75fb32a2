"""One completion of the validation at a checkpoint, with its outcomes."""

from __future__ import annotations

from typing import Literal

from ahalab.records.base import Record
from ahalab.records.terms import Finish, Outcome


class ValidationAnswer(Record, frozen=True, kw_only=True):
    """A greedy completion; (step, prompt_id) is unique within a run."""

    schema: Literal["validation/1"] = "validation/1"
    step: int  # optimizer steps done: the adapter of this checkpoint answered
    prompt_id: str
    completion: str
    completion_ids: tuple[int, ...]
    finish: Finish
    extracted: str | None  # by the lenient reading
    rule: str  # the rule that took it
    status: str  # of the lenient reading: "ok", or why there is no verdict on a value
    strict: Outcome
    lenient: Outcome
