"""One prompt of a study, as the model sees it."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

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


class SharedWords(Record, frozen=True, kw_only=True):
    """An evaluation question that shares words with a training question."""

    prompt_id: str  # of the evaluation
    train_prompt_id: str
    fraction: float  # of the question's n-grams that stand in training questions
    words: str  # the first of them, normalised


class Overlap(Record, frozen=True, kw_only=True):
    """Word n-grams that the evaluation shares with the training; a finding, no fault by itself."""

    words: int  # n
    least_words: int  # a question of this many words up to n is one n-gram by itself
    most_questions: int  # an n-gram of more training questions is boilerplate, and left out
    questions: int  # evaluation questions that something is left of
    sharing: int  # of those, with an n-gram that stands in a training question
    mostly: int  # with at least half of their n-grams
    examples: tuple[SharedWords, ...]  # the largest fractions first


class Selection(Record, frozen=True, kw_only=True):
    """How the prompts were drawn from the task."""

    schema: Literal["ahalab.selection/1"] = "ahalab.selection/1"
    plan_digest: str
    available: dict[str, int]  # questions in each split of the task
    drawn: dict[str, int]
    dropped: tuple[Dropped, ...]
    origin: dict[str, str] | UnsetType = UNSET  # what the questions depend on and no file here
    # shows: the hub's dataset and commit, or the version of the generator
    overlap: Overlap | UnsetType = UNSET  # absent from studies made before it was measured
