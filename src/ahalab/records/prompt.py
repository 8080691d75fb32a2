"""One prompt of a study, as the model sees it."""

from __future__ import annotations

from typing import Literal

from ahalab.records.base import Record
from ahalab.records.terms import Split


class Prompt(Record, frozen=True, kw_only=True):
    """A question, its gold answer, and its rendered token ids."""

    schema: Literal["prompt/1"] = "prompt/1"
    prompt_id: str  # position in the set and digest of question and gold
    question: str
    gold: str
    source: str  # where it came from: generator or file:line
    split: Split
    prompt_ids: tuple[int, ...]  # rendered through the chat template, shape (T,)
    prompt_tokens: int  # T


class Dropped(Record, frozen=True, kw_only=True):
    """A question that the study does not use, and why."""

    split: Split
    source: str
    reason: str


class Selection(Record, frozen=True, kw_only=True):
    """How the prompts were drawn from the task."""

    schema: Literal["ahalab.selection/1"] = "ahalab.selection/1"
    plan_digest: str
    available: dict[str, int]  # questions in each split of the task
    drawn: dict[str, int]
    dropped: tuple[Dropped, ...]
