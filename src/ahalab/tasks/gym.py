"""Questions that reasoning-gym generates ([tasks] extra): any of its data sets, by name.

Source: Stojanovski et al. 2025, "Reasoning Gym", arXiv:2505.24760.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Set as AbstractSet
from importlib.metadata import version
from typing import Any

from msgspec import UNSET

from ahalab.errors import InputError, MissingError
from ahalab.plan.fields import suggestion
from ahalab.plan.tasks import default_scoring
from ahalab.records.plan import TaskSpec
from ahalab.records.terms import Split
from ahalab.tasks.files import Row
from ahalab.tasks.text import normalised

PACKAGE = "reasoning-gym"
SPLITS: tuple[Split, ...] = ("eval", "train", "validation")
# An item is drawn from seed + index, so that neighbouring seeds share nearly all their items: each
# split of each task.seed has a range of its own.
RANGE = 1_000_000
TRIES = 20  # items looked at for each question wanted, before a data set counts as exhausted
OURS = {"seed": "task.seed", "size": "task.train_prompts and task.eval_prompts"}


def gym_rows(task: TaskSpec, split: Split) -> list[Row]:
    """Return the rows of a split, `question` and `answer`, each question once in the study.

    The evaluation is drawn first, so that it does not depend on the training.

    Raises:
        InputError: No such data set, settings that it refuses, or its questions run out.
        MissingError: reasoning-gym is not installed.
    """
    evaluation = _drawn(task, "eval", task.eval_prompts, frozenset())
    if split == "eval":
        return evaluation
    taken = {normalised(row["question"]) for row, _ in evaluation}
    return _drawn(task, "train", task.train_prompts, taken)


def gym_validation(task: TaskSpec, count: int, training: AbstractSet[str]) -> list[Row]:
    """Return rows for validation: `count` questions that neither evaluate nor train.

    Args:
        task: The task.
        count: Questions wanted.
        training: The training questions, normalised.

    Raises:
        InputError, MissingError: See `gym_rows`.
    """
    evaluation = {normalised(row["question"]) for row, _ in gym_rows(task, "eval")}
    return _drawn(task, "validation", count, evaluation | training)


def gym_origin(task: TaskSpec) -> dict[str, str]:
    """Return what generated the questions: another version may generate others.

    Raises:
        InputError, MissingError: See `gym_rows`.
    """
    return {"dataset": _dataset(task), PACKAGE: version(PACKAGE)}


def scores_by_itself(task: TaskSpec) -> bool:
    """Say whether a data set would accept more than its recorded answer, by code of its own.

    Raises:
        InputError, MissingError: See `gym_rows`.
    """
    from reasoning_gym.dataset import ProceduralDataset

    kind, _ = _registry()[_dataset(task)]
    return kind.score_answer is not ProceduralDataset.score_answer


def _registry() -> dict[str, tuple[Any, Any]]:
    try:
        import reasoning_gym  # noqa: F401 - registers its data sets
        from reasoning_gym.factory import DATASETS
    except ImportError as error:
        raise MissingError(
            "task reasoning_gym: the package is not installed here. Type: pip install "
            "'ahalab[tasks]'"
        ) from error
    found: dict[str, tuple[Any, Any]] = DATASETS
    return found


def _dataset(task: TaskSpec) -> str:
    name = "" if task.dataset is UNSET else task.dataset
    known = _registry()
    if name not in known:
        near = suggestion(name, list(known), count=3)
        raise InputError(
            f"task.dataset: expected one of reasoning-gym's {len(known)} data sets, found "
            f"{name[:80]!r}.{near or ' Its GALLERY.md lists them.'}"
        )
    return name


def _created(task: TaskSpec, seed: int, size: int) -> Any:
    name = _dataset(task)
    kind, settings = _registry()[name]
    asked = {} if task.config is UNSET else task.config
    fields = [f.name for f in dataclasses.fields(settings) if f.name not in OURS]
    for key in asked:
        if key in OURS:
            raise InputError(f"task.config.{key}: not to be set here: set {OURS[key]}.")
        if key not in fields:
            raise InputError(
                f"task.config.{key}: unknown setting of {name} ({', '.join(fields)})."
                f"{suggestion(key, fields)}"
            )
    try:
        return kind(settings(**asked, seed=seed, size=size))
    except (AssertionError, TypeError, ValueError, KeyError, AttributeError) as error:
        raise InputError(f"task.config: {name} refuses it: {_one_line(error)}.") from error


def _drawn(task: TaskSpec, split: Split, count: int, taken: AbstractSet[str]) -> list[Row]:
    name, seed = _dataset(task), (len(SPLITS) * task.seed + SPLITS.index(split)) * RANGE
    size = min(RANGE, TRIES * count)
    items = _created(task, seed, size)
    rows: list[Row] = []
    seen = set(taken)
    for index in range(size):
        if len(rows) == count:
            break
        place = f"reasoning_gym/{name}:{seed + index}"
        item = _item(items, index, place)
        text = normalised(item["question"])
        if text not in seen:
            seen.add(text)
            rows.append(({"question": item["question"], "answer": _gold(task, item, place)}, place))
    if len(rows) < count:
        raise InputError(
            f"task: expected {count} distinct {split} questions of {name}, found {len(rows)} among "
            f"{size} drawn. Ask for fewer, or widen task.config."
        )
    return rows


def _item(items: Any, index: int, place: str) -> dict[str, Any]:
    try:
        item: dict[str, Any] = items[index]
    except (ArithmeticError, AssertionError, LookupError, RuntimeError, TypeError, ValueError) as e:
        raise InputError(f"{place}: no item for this task.config: {_one_line(e)}.") from e
    return item


def _gold(task: TaskSpec, item: dict[str, Any], place: str) -> str:
    if (task.scoring or default_scoring(task)) == "countdown":
        kept = item.get("metadata", {})
        gold = {key: kept[key] for key in ("numbers", "target") if key in kept}
        return json.dumps(gold)  # an incomplete one is refused with the golds, by its place
    answer = item["answer"]
    if answer is None:
        raise InputError(
            f"{place}: expected a recorded answer, found none: {task.dataset} only scores by code "
            "of its own. Take another data set."
        )
    return str(answer)


def _one_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")[:200]
