"""Checks a plan's task: which keys go with which task, and what each leaves to a default."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET
from msgspec.structs import replace

from ahalab.errors import PlanError
from ahalab.plan.fields import ordered
from ahalab.records.plan import TaskSpec
from ahalab.records.terms import Split

HUB_SPLITS: dict[Split, str] = {"train": "train", "eval": "test"}
# Keys that only some tasks read; elsewhere they would be passed over in silence.
READ_BY = {
    "path": ("gsm8k", "jsonl", "csv", "hub"),
    "dataset": ("hub", "reasoning_gym"),
    "subset": ("gsm8k", "hub"),
    "revision": ("gsm8k", "hub"),
    "splits": ("hub",),
    "config": ("reasoning_gym",),
}


def default_scoring(task: TaskSpec) -> Literal["gsm8k", "math", "countdown"]:
    """Return how golds are read where a plan does not say."""
    if task.name == "reasoning_gym" and task.dataset == "countdown":
        return "countdown"
    return "gsm8k" if task.name in ("arithmetic", "gsm8k") else "math"


def resolve_task(task: TaskSpec) -> TaskSpec:
    """Return a task with its defaults written out.

    Raises:
        PlanError: A key is missing, goes with another task, or is empty; it comes first.
    """
    for key, names in READ_BY.items():
        if getattr(task, key) not in (None, UNSET) and task.name not in names:
            raise PlanError(
                f"task.{key}: a key of the tasks {', '.join(names)}, found with {task.name}. "
                "Remove it, or mend task.name."
            )
    _check_dataset(task)
    limit = task.max_overlap_fraction
    if limit is not UNSET and not 0 <= limit < 1:
        raise PlanError(
            f"task.max_overlap_fraction: expected a fraction from 0 to below 1, found {limit}."
        )
    filled: dict[str, Any] = {"scoring": task.scoring or default_scoring(task)}
    if task.name == "hub":
        given = {} if task.splits is UNSET else task.splits
        merged = {**HUB_SPLITS, **given}
        filled["splits"] = {split: merged[split] for split in sorted(merged)}
    if task.config is not UNSET:
        filled["config"] = ordered(task.config)
    return replace(task, **filled)


def _check_dataset(task: TaskSpec) -> None:
    if task.name in ("hub", "reasoning_gym") and task.dataset is UNSET and task.path is None:
        example = (
            "owner/name, or a local copy in task.path" if task.name == "hub" else "chain_sum, say"
        )
        raise PlanError(f"task.dataset: expected a dataset ({example}), found none. Add the key.")
    if task.path is not None:
        for key in ("dataset", "revision"):
            if getattr(task, key) is not UNSET:
                raise PlanError(
                    f"task.{key}: of the hub's datasets, found beside task.path, which is read in "
                    "its place. Remove one of the two."
                )
    for key in ("dataset", "subset", "revision"):
        if getattr(task, key) == "":
            raise PlanError(f"task.{key}: expected text, found an empty one. Remove the key.")
