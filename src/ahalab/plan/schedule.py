"""How many prompts, steps, batches, completions and checkpoints a plan asks for."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from msgspec import UNSET

from ahalab.records.plan import Plan
from ahalab.records.terms import Split


def generation_batch(plan: Plan) -> int:
    """Return how many completions are generated at a time, over all processes."""
    grpo = plan.grpo
    local = int(grpo["per_device_train_batch_size"]) * int(grpo["steps_per_generation"])
    return local * plan.training.processes


def rollouts_after(plan: Plan, steps: int) -> int:
    """Return how many completions a run has generated after some optimizer steps."""
    grpo = plan.grpo
    micro_batches = steps * int(grpo["gradient_accumulation_steps"])
    window = int(grpo["steps_per_generation"]) * int(grpo["num_iterations"])
    return -(-micro_batches // window) * generation_batch(plan)


def expected_rollouts(plan: Plan) -> int:
    """Return how many completions a whole run generates."""
    return rollouts_after(plan, int(plan.grpo["max_steps"]))


def checkpoint_steps(plan: Plan) -> Iterator[int]:
    """Yield the steps done at each checkpoint: every `save_steps`, and the end."""
    every, last = int(plan.grpo["save_steps"]), int(plan.grpo["max_steps"])
    yield from range(every, last, every)
    yield last


def checkpoint_count(plan: Plan) -> int:
    """Return how many checkpoints a run has."""
    return -(-int(plan.grpo["max_steps"]) // int(plan.grpo["save_steps"]))


def is_checkpoint(plan: Plan, step: int) -> bool:
    """Say whether there is a checkpoint after so many steps."""
    every, last = int(plan.grpo["save_steps"]), int(plan.grpo["max_steps"])
    return 0 < step <= last and (step % every == 0 or step == last)


def prompts_asked(plan: Plan) -> dict[Split, int]:
    """Return how many prompts each split of the study has, at most."""
    asked: dict[Split, int] = {"train": plan.task.train_prompts, "eval": plan.task.eval_prompts}
    if plan.validation is not UNSET:
        asked["validation"] = plan.validation.prompts
    return asked


def step_buckets(plan: Plan, most: int = 10) -> list[tuple[int, int]]:
    """Return the first and last step, from 0, of up to `most` parts of a run, of about one size."""
    steps = int(plan.grpo["max_steps"])
    count = min(most, steps)
    edges = [steps * at // count for at in range(count + 1)]
    return [(first, last - 1) for first, last in pairwise(edges)]
