"""The trainer's arguments: defaults written out, and a batch that fits groups, processes, steps."""

from __future__ import annotations

import math
from typing import Any

from ahalab.errors import PlanError
from ahalab.plan.counts import require_count
from ahalab.plan.fields import field_table
from ahalab.records.plan import Plan

# Defaults that changed between TRL versions, or that change what a run means: written out in
# every plan.
EXPLICIT_GRPO: dict[str, Any] = {
    "beta": 0.0,
    "loss_type": "dapo",
    "scale_rewards": "group",
    "importance_sampling_level": "token",
    "num_generations": 8,
    "num_iterations": 1,
    "epsilon": 0.2,
    "max_completion_length": 256,
    "temperature": 1.0,
    "top_p": 1.0,
    "top_k": 0,
    "min_p": None,
    "repetition_penalty": 1.0,
    "mask_truncated_completions": False,
    "shuffle_dataset": True,
    "disable_dropout": True,
    "gradient_checkpointing": False,
    "gradient_accumulation_steps": 1,
    "learning_rate": 1e-6,
    "lr_scheduler_type": "linear",
    "warmup_steps": 0,
    "weight_decay": 0.0,
    "max_grad_norm": 1.0,
    "optim": "adamw_torch",
}
COUNTS = (
    "per_device_train_batch_size",
    "gradient_accumulation_steps",
    "steps_per_generation",
    "generation_batch_size",
    "num_iterations",
)
# Arguments of apply_chat_template that are not the template's.
RENDERING = {
    "add_generation_prompt", "chat_template", "continue_final_message", "conversation",
    "conversations", "documents", "max_length", "messages", "padding", "processor_kwargs",
    "return_assistant_tokens_mask", "return_dict", "return_tensors", "tokenize",
    "tokenizer_kwargs", "tools", "truncation",
}  # fmt: skip


def resolve_grpo(plan: Plan) -> dict[str, Any]:
    """Return the trainer's arguments with every default that means something.

    Raises:
        PlanError: They contradict one another, or the task's number of training prompts.
    """
    table = field_table("trl")
    grpo = {k: v for k, v in EXPLICIT_GRPO.items() if k in table} | dict(plan.grpo)
    steps = grpo.get("max_steps")
    if not isinstance(steps, int):
        raise PlanError(f"grpo.max_steps: expected a number of steps from 1 on, found {steps}.")
    require_count("grpo.max_steps", steps)
    _check_template_arguments(grpo.get("chat_template_kwargs"))
    group = grpo["num_generations"]
    if group is None or group < 2:
        raise PlanError(
            f"grpo.num_generations: expected a group of 2 or more, found {group}. "
            "An advantage is a comparison within the group; 8 is usual, below 4 is coarse."
        )
    default = table["per_device_train_batch_size"]["default"]
    per_device = grpo.setdefault("per_device_train_batch_size", default)
    for key in COUNTS:
        if grpo.get(key) is not None:
            require_count(f"grpo.{key}", grpo[key])
    if grpo["beta"]:
        grpo.setdefault("use_bias_correction_kl", True)  # false until TRL 1.9
    accumulation = grpo["gradient_accumulation_steps"]
    slices = grpo.get("steps_per_generation") or accumulation
    processes = plan.training.processes
    batch = (grpo.get("generation_batch_size") or per_device * slices * processes) // processes
    if batch % group or batch % per_device or (grpo.get("generation_batch_size") or 0) % processes:
        key, asked, unit = "generation_batch_size", batch, math.lcm(group, per_device)
        if not grpo.get(key):  # then it is per_device * slices that must be a multiple of the group
            key, asked, unit = (
                "per_device_train_batch_size",
                per_device,
                group // math.gcd(group, slices),
            )
        whole = processes if key == "generation_batch_size" else 1
        raise PlanError(
            f"grpo.{key}: expected a generation batch (here {batch} completions"
            f"{' in each process' * (processes > 1)}) "
            f"that is a multiple of num_generations={group} and of per_device_train_batch_size="
            f"{per_device}. Nearest: {key}={max(unit, round(asked / unit) * unit) * whole}."
        )
    slices = batch // per_device
    grpo["steps_per_generation"] = slices
    grpo.pop("generation_batch_size", None)
    _check_window(slices, grpo["num_iterations"], accumulation)
    grpo["save_steps"] = _save_steps(grpo, slices, accumulation, steps)
    prompts = batch * processes // group
    if plan.task.train_prompts < prompts:
        raise PlanError(
            f"task.train_prompts: expected at least the {prompts} prompts of one generation "
            f"batch, found {plan.task.train_prompts}."
        )
    return grpo


def _check_template_arguments(found: object) -> None:
    """Refuse what the chat template can't be handed: it renders the prompts of every stage."""
    place = "grpo.chat_template_kwargs"
    if found is None:
        return
    if not isinstance(found, dict) or not all(str(name).isidentifier() for name in found):
        raise PlanError(f"{place}: expected a mapping of names to values, found {found!r:.80}.")
    for name in RENDERING & found.keys():
        raise PlanError(
            f"{place}.{name}: expected names of the model's own template, found one that says how "
            "it is rendered. Drop it."
        )


def _check_window(slices: int, iterations: int, accumulation: int) -> None:
    """Refuse an optimizer step that spans generation batches: its rollouts would share a step."""
    served = slices * iterations  # micro-batches that one generation batch serves
    if served % accumulation:
        raise PlanError(
            f"grpo.gradient_accumulation_steps: expected a divisor of steps_per_generation x "
            f"num_iterations = {served}, so that an optimizer step stays within one "
            f"generation batch, found {accumulation}. Nearest: "
            f"{math.gcd(served, accumulation)}."
        )


def _save_steps(grpo: dict[str, Any], slices: int, accumulation: int, steps: int) -> int:
    """Return how often to checkpoint; a resume is exact only where a generation batch begins."""
    boundary = slices * int(grpo["num_iterations"]) // accumulation  # in optimizer steps
    asked = grpo.get("save_steps")
    if asked is None:
        return boundary * max(1, min(10, steps // boundary))
    if not isinstance(asked, int) or asked < 1 or asked % boundary:
        below = max(boundary, int(asked) // boundary * boundary)
        raise PlanError(
            f"grpo.save_steps: expected a multiple of {boundary}, where a generation batch begins "
            f"(a resume is exact only there), found {asked}. Nearest: {below} or "
            f"{below + boundary}."
        )
    return asked
