"""How many steps, batches and completions a plan asks for."""

from __future__ import annotations

from ahalab.records.plan import Plan


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
