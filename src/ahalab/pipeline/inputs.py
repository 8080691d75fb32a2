"""What can be checked of a plan's inputs without loading a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ahalab.errors import InputError
from ahalab.plan.schedule import generation_batch
from ahalab.records.plan import Plan
from ahalab.scoring.arms import resolve_arm
from ahalab.store.layout import StudyPaths
from ahalab.store.models import ORGANISM, resolve_model
from ahalab.tasks.prepare import prompts_ready, select_questions
from ahalab.tasks.questions import on_hub
from ahalab.tasks.rewards import with_own_rewards


def check_inputs(plan: Plan, paths: StudyPaths) -> list[str]:
    """Check that the model and the questions of a plan are there and sound; downloads nothing.

    A study whose prompts are drawn needs neither any more, so nothing is checked again.

    Returns:
        What could not be checked, as it lies on a hub.

    Raises:
        InputError: The model folder is missing; a task row is malformed; the splits overlap; there
            are fewer training questions than a generation batch needs.
    """
    if prompts_ready(plan, paths):
        return []
    unchecked = []
    if plan.model.id == ORGANISM or not _is_hub_id(plan.model.id):
        resolve_model(plan.model)
    else:
        unchecked.append(f"model {plan.model.id}: fetched from the hub when the study runs")
    if on_hub(plan.task):
        dataset = "gsm8k" if plan.task.name == "gsm8k" else plan.task.dataset
        unchecked.append(f"task {dataset}: read from the hub when the study runs")
        return unchecked
    drawn, _ = select_questions(plan)
    needed = generation_batch(plan) // int(plan.grpo["num_generations"])
    if len(drawn["train"]) < needed:
        raise InputError(
            f"task: expected at least the {needed} training questions of one generation batch, "
            f"found {len(drawn['train'])}. Add questions, or take a smaller batch."
        )
    return unchecked


def check_own_rewards(plan: Plan, code: Sequence[Path]) -> None:
    """Load every own reward of a plan, so that none is missing after an hour of training.

    Raises:
        InputError: One can't be loaded; see `with_own_rewards`.
    """
    for arm in plan.arms:
        with_own_rewards(plan, resolve_arm(arm.name, arm.components), code)


def _is_hub_id(name: str) -> bool:
    """Say whether a model id can only be a hub's `owner/name`."""
    local = name.startswith((".", "/", "~")) or Path(name).expanduser().is_dir()
    return name.count("/") == 1 and not local
