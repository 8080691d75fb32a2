"""The validation questions of a study: a split of its own, apart from training and evaluation."""

from __future__ import annotations

from ahalab.errors import InputError
from ahalab.records.plan import TaskSpec
from ahalab.tasks.arithmetic import arithmetic_questions
from ahalab.tasks.gym import gym_validation
from ahalab.tasks.questions import Question, load_questions, offers_validation, read_questions
from ahalab.tasks.text import normalised


def validation_questions(task: TaskSpec, count: int, training: list[Question]) -> list[Question]:
    """Return the questions that validation is drawn from.

    The embedded task has some of its own, and a generator makes some. Another task's stand in its
    folder's `validation` file, or in the split that `task.splits` names, and are otherwise the
    training rows that the training draw left.

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
    if offers_validation(task):
        return load_questions(task, "validation")
    taken = {normalised(q.question) for q in training}
    if task.name == "reasoning_gym":
        return read_questions(task, gym_validation(task, count, taken))
    offered = load_questions(task, "train")
    # By the question, not by the row: a file may hold a question twice.
    left = [q for q in offered if normalised(q.question) not in taken]
    if len(left) < count:
        raise InputError(
            f"validation.prompts: expected {count} training questions that the training draw did "
            f"not take, found {len(left)} of {len(offered)}. Lower task.train_prompts or "
            f"validation.prompts, or {_remedy(task)}."
        )
    return left


def _remedy(task: TaskSpec) -> str:
    if task.name == "hub":
        return "name a validation split in task.splits"
    return f"add validation.{'csv' if task.name == 'csv' else 'jsonl'} to the task's folder"
