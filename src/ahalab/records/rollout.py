"""One completion of training, with everything that made its gradient."""

from __future__ import annotations

from typing import Literal

from ahalab.records.base import Record
from ahalab.records.terms import Finish, Outcome


class ComponentRow(Record, frozen=True, kw_only=True):
    """One reward component of one rollout."""

    value: float | None  # None: not scored; `status` says why
    status: str


class Rollout(Record, frozen=True, kw_only=True):
    """A completion with its rewards; (step, prompt_id, sample) is unique within a run."""

    schema: Literal["rollout/1"] = "rollout/1"
    step: int  # optimizer steps done when it was generated, counted from 0
    rank: int  # process that generated it
    group: int  # position of its group in the generation batch
    prompt_id: str
    sample: int  # position within the group, 0..G-1
    completion: str
    completion_ids: tuple[int, ...]
    finish: Finish
    components: dict[str, ComponentRow]
    reward: float | None  # weighted sum, as handed to the trainer; None: a component has no value,
    # and the trainer was handed the mean of its group's rewards, so that it had no advantage
    advantage: float  # as the trainer applied it
    historical: Outcome  # training parser
    strict: Outcome  # evaluation scorer, in the asked format
    lenient: Outcome  # evaluation scorer, wherever clearly stated
    status: str  # of the lenient reading: "ok", or why there is no verdict on a value
    extracted: str | None  # what the evaluation scorer took as the answer
    formatted: bool  # the asked answer format is met, whatever the value
    repetition: float  # repeated share of its sequences of four words
    reflection: tuple[str, ...]  # reflection markers found
