"""Questions with gold answers: embedded, from files, from the hub, or generated."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import UNSET, UnsetType

from ahalab.errors import InputError
from ahalab.plan.tasks import default_scoring
from ahalab.records.plan import TaskSpec
from ahalab.records.terms import Split
from ahalab.scoring.answers import Asked, check_gold
from ahalab.scoring.worker import row_decider
from ahalab.tasks.arithmetic import arithmetic_questions
from ahalab.tasks.files import Row, csv_rows, find_file, jsonl_rows, missing_file
from ahalab.tasks.gym import gym_origin, gym_rows
from ahalab.tasks.hub import COPY, GSM8K, hub_origin, hub_rows, is_copy

SURROGATE = re.compile("[\ud800-\udfff]")  # JSON can write one, no file can hold it


@dataclass(frozen=True, slots=True)
class Question:
    """One question before it is drawn and rendered."""

    question: str
    gold: str
    source: str  # `file:line`, `dataset/split:row`, or the generator


def scoring_task(task: TaskSpec) -> str:
    """Return the kind of gold that a task has, as the scorer names it."""
    return task.scoring or default_scoring(task)


def asked_of(task: TaskSpec, answer_format: str) -> Asked:
    """Return how a plan asks for answers, as the scorer wants it."""
    return Asked(answer_format=answer_format, task=scoring_task(task))


def load_questions(task: TaskSpec, split: Split) -> list[Question]:
    """Return every question that a split of the task offers, in its own order.

    Raises:
        InputError: A file is missing, empty, or has a row without question or answer (named by
            line); a dataset has no such split; a generator refuses its settings.
        MissingError: A package is not installed, or a hub can't be reached.
    """
    if task.name == "arithmetic":
        count = task.train_prompts if split == "train" else task.eval_prompts
        drawn = arithmetic_questions(split, count, task.seed)
        return [Question(q, gold, f"arithmetic:{split}") for q, gold in drawn]
    return read_questions(task, _rows(task, split))


def read_questions(task: TaskSpec, rows: Iterable[Row]) -> list[Question]:
    """Return the questions that rows of a task hold.

    Raises:
        InputError: A row has no question or no answer; or there is no row.
    """
    if task.name == "gsm8k":
        return [_gsm8k_question(row, place) for row, place in rows]
    fields = _fields(task)
    return [_question(row, place, *fields) for row, place in rows]


def offers_validation(task: TaskSpec) -> bool:
    """Say whether a task has validation questions apart from its training questions."""
    if task.splits is not UNSET and "validation" in task.splits:
        return True
    if task.path is None or task.name not in ("gsm8k", "jsonl", "csv"):
        return False
    return find_file(task.path, "validation", _ending(task)) is not None


def question_origin(task: TaskSpec) -> dict[str, str] | UnsetType:
    """Return what a task's questions depend on beyond its files, where there is such a thing.

    Raises:
        InputError, MissingError: See `load_questions`.
    """
    if task.name == "reasoning_gym":
        return gym_origin(task)
    return hub_origin(task) if on_hub(task) else UNSET


def on_hub(task: TaskSpec) -> bool:
    """Say whether a task's questions have to be fetched."""
    return task.name in ("gsm8k", "hub") and task.path is None


def _rows(task: TaskSpec, split: Split) -> list[Row]:
    if task.name == "reasoning_gym":
        return gym_rows(task, split)
    if on_hub(task) or task.name == "hub":
        return hub_rows(task, split)
    ending = _ending(task)
    if task.path is None:
        raise InputError(
            f"task.path: expected a folder with train.{ending} and eval.{ending}, found none."
        )
    file = find_file(task.path, split, ending)
    if file is None:
        if task.name == "gsm8k" and is_copy(Path(task.path).expanduser(), GSM8K[1]):
            return hub_rows(task, split)
        also = COPY if task.name == "gsm8k" else ""
        raise missing_file(task.path, split, ending, also)
    rows = list(csv_rows(file, _fields(task)) if ending == "csv" else jsonl_rows(file))
    if not rows:
        raise InputError(f"{file}: expected at least one question, found an empty file.")
    return rows


def _ending(task: TaskSpec) -> str:
    return "csv" if task.name == "csv" else "jsonl"


def _fields(task: TaskSpec) -> tuple[str, str]:
    if task.name == "reasoning_gym":
        return "question", "answer"
    return task.question_field, task.gold_field


def _question(row: dict[str, Any], place: str, question_field: str, gold_field: str) -> Question:
    question, gold = row.get(question_field), row.get(gold_field)
    for field, value in ((question_field, question), (gold_field, gold)):
        if value is None or value == "":
            raise InputError(
                f"{place}: expected a value in `{field}`, found "
                f"{'an empty one' if value == '' else 'none'} "
                f"(keys: {', '.join(list(row)[:8])}). Mend the row, or name the field in the "
                "plan's task."
            )
    if not isinstance(question, str) or not question.strip():
        raise InputError(f"{place}: expected text in `{question_field}`, found {question!r:.80}.")
    if isinstance(gold, bool) or not isinstance(gold, str | int | float | dict):
        raise InputError(
            f"{place}: expected text or a number in `{gold_field}`, found {gold!r:.80}."
        )
    text = gold if isinstance(gold, str) else json.dumps(gold)
    if SURROGATE.search(question + text):
        raise InputError(f"{place}: expected text, found half of a character (a lone surrogate).")
    return Question(question, text, place)


def _gsm8k_question(row: dict[str, Any], place: str) -> Question:
    """Read a GSM8K row, whose answer ends in a line `#### N`."""
    question = _question(row, place, "question", "answer")
    _, marker, gold = question.gold.rpartition("####")
    if not marker or not gold.strip():
        raise InputError(
            f"{place}: expected an answer that ends in `#### N`, found {question.gold[-40:]!r}."
        )
    return Question(question.question, gold.strip().replace(",", ""), place)


def check_golds(questions: list[Question], task: str) -> None:
    """Refuse a gold answer that the scorer can't read: every answer to it would be an error.

    Raises:
        InputError: The first such gold, with its line.
    """
    for question in questions:
        fault = check_gold(question.gold, task, row_decider(task))
        if fault is not None:
            raise InputError(
                f"{question.source}: expected a gold answer that can be scored, found "
                f"{question.gold[:80]!r} ({fault}). Mend the row, or name "
                "its kind in task.scoring."
            )
