"""Questions with gold answers, from the embedded arithmetic, GSM8K, or JSONL files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ahalab.errors import InputError, MissingError
from ahalab.records.plan import TaskSpec
from ahalab.records.terms import Split
from ahalab.scoring.answers import Asked, check_gold
from ahalab.scoring.worker import row_decider
from ahalab.tasks.arithmetic import arithmetic_questions

FILES: dict[Split, tuple[str, ...]] = {
    "train": ("train.jsonl",),
    "eval": ("eval.jsonl", "test.jsonl"),
    "validation": ("validation.jsonl",),
}
SURROGATE = re.compile("[\ud800-\udfff]")  # JSON can write one, no file can hold it
HUB_GSM8K = ("openai/gsm8k", "main")


@dataclass(frozen=True, slots=True)
class Question:
    """One question before it is drawn and rendered."""

    question: str
    gold: str
    source: str  # `file:line`, or the generator


def scoring_task(task: TaskSpec) -> str:
    """Return the kind of gold that a task has, as the scorer names it."""
    return task.scoring or ("math" if task.name == "jsonl" else "gsm8k")


def asked_of(task: TaskSpec, answer_format: str) -> Asked:
    """Return how a plan asks for answers, as the scorer wants it."""
    return Asked(answer_format=answer_format, task=scoring_task(task))


def load_questions(task: TaskSpec, split: Split) -> list[Question]:
    """Return every question that a split of the task offers, in file order.

    Raises:
        InputError: A file is missing, empty, or has a row without question or answer (named by
        line). MissingError: The task lives on a hub that can't be reached.
    """
    if task.name == "arithmetic":
        count = task.train_prompts if split == "train" else task.eval_prompts
        drawn = arithmetic_questions(split, count, task.seed)
        return [Question(q, gold, f"arithmetic:{split}") for q, gold in drawn]
    if task.name == "gsm8k":
        if task.path is None:
            rows = _hub_rows(split)
            source = HUB_GSM8K[0]
            return [_gsm8k_question(row, f"{source}:{n}") for n, row in enumerate(rows, start=1)]
        return _read_jsonl(_split_file(task.path, split), _gsm8k_question)

    def field_question(row: dict[str, Any], place: str) -> Question:
        return _question(row, place, task.question_field, task.gold_field)

    if task.path is None:
        raise InputError(
            "task.path: expected a folder with train.jsonl and eval.jsonl, found none."
        )
    return _read_jsonl(_split_file(task.path, split), field_question)


def _split_file(path: str, split: Split) -> Path:
    folder = Path(path).expanduser()
    for name in FILES[split]:
        if (folder / name).is_file():
            return folder / name
    found = sorted(p.name for p in folder.iterdir())[:8] if folder.is_dir() else []
    raise InputError(
        f"{folder}: expected {' or '.join(FILES[split])} for the {split} split, found "
        f"{', '.join(found) if found else 'no such folder' if not folder.exists() else 'nothing'}."
    )


def _read_jsonl(path: Path, read: Callable[[dict[str, Any], str], Question]) -> list[Question]:
    questions = []
    for number, line in enumerate(path.read_bytes().split(b"\n"), start=1):
        if not line.strip():
            continue
        place = f"{path}:{number}"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{place}: expected a JSON object, found: {error}.") from error
        if not isinstance(row, dict):
            raise InputError(f"{place}: expected a JSON object, found {type(row).__name__}.")
        questions.append(read(row, place))
    if not questions:
        raise InputError(f"{path}: expected at least one question, found an empty file.")
    return questions


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


def _hub_rows(split: Split) -> list[dict[str, Any]]:
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise MissingError(
            "task gsm8k: reading it from the hub needs `pip install 'ahalab[train]'`; or set "
            "task.path to "
            "a folder with train.jsonl and test.jsonl."
        ) from error
    try:
        rows = load_dataset(*HUB_GSM8K, split="train" if split == "train" else "test")
    except (OSError, ValueError, RuntimeError) as error:
        raise MissingError(
            f"task gsm8k: {HUB_GSM8K[0]} can't be reached ({str(error).splitlines()[0]}). Set "
            "task.path "
            "to a folder with train.jsonl and test.jsonl, or go online."
        ) from error
    return [dict(row) for row in rows]


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
                f"{question.gold[:80]!r} ({fault}). Mend the row."
            )
