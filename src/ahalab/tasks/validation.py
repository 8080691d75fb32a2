"""The validation questions of a study: a split of its own, apart from training and evaluation."""

from __future__ import annotations

from pathlib import Path

from ahalab.errors import InputError
from ahalab.records.plan import TaskSpec
from ahalab.tasks.arithmetic import arithmetic_questions
from ahalab.tasks.questions import FILES, Question, load_questions
from ahalab.tasks.selection import normalised


def validation_questions(task: TaskSpec, count: int, training: list[Question]) -> list[Question]:
    """Return the questions that validation is drawn from.

    The embedded task has some of its own. Another task's stand in `validation.jsonl`, where its
    folder has one, and are otherwise the training file's rows that the training draw left.

    Args:
        task: The task.
        count: Questions wanted.
        training: The training questions, as drawn.

    Raises:
        InputError: Too few training rows are left; see `load_questions` too.
    """
    if task.name == "arithmetic":
        drawn = arithmetic_questions("validation", count, task.seed)
        return [Question(q, gold, "arithmetic:validation") for q, gold in drawn]
    if _has_file(task):
        return load_questions(task, "validation")
    taken = {normalised(q.question) for q in training}
    offered = load_questions(task, "train")
    # By the question, not by the row: a file may hold a question twice.
    left = [q for q in offered if normalised(q.question) not in taken]
    if len(left) < count:
        raise InputError(
            f"validation.prompts: expected {count} training questions that the training draw did "
            f"not take, found {len(left)} of {len(offered)}. Lower task.train_prompts or "
            f"validation.prompts, or add {FILES['validation'][0]} to the task's folder."
        )
    return left


def _has_file(task: TaskSpec) -> bool:
    if task.path is None:
        return False
    return any((Path(task.path).expanduser() / name).is_file() for name in FILES["validation"])
