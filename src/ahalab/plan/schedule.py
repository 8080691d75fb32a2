"""How many steps, batches and completions a plan asks for."""

from __future__ import annotations

from ahalab.records.plan import Plan


def expected_rollouts(plan: Plan) -> int:
    """Return how many completions a run generates: whole generation batches over all steps."""
    grpo = plan.grpo
    slices = int(grpo["steps_per_generation"])
    batch = int(grpo["per_device_train_batch_size"]) * slices
    micro_batches = int(grpo["max_steps"]) * int(grpo["gradient_accumulation_steps"])
    window = slices * int(grpo["num_iterations"])
    return -(-micro_batches // window) * batch
