"""The fields of TRL's GRPOConfig and PEFT's LoraConfig, so that a plan is checked without torch.

The tables under `fields/` are written by `python -m ahalab.plan.field_tables`, which needs the
[train] extra.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from ahalab.errors import PlanError

# What ahalab sets itself, and why a plan may not.
MANAGED = {
    "output_dir": "checkpoints live in .work/<study>",
    "run_name": "runs are named by arm and seed",
    "seed": "seeds are the plan's `seeds`",
    "data_seed": "seeds are the plan's `seeds`",
    "full_determinism": "runs are deterministic already",
    "num_train_epochs": "set max_steps, so that every arm takes the same number of steps",
    "reward_weights": "weights stand in the plan's arms",
    "remove_unused_columns": "the response logger needs the columns",
    "log_completions": "every completion is recorded by the response logger",
    "logging_strategy": "every step is recorded",
    "logging_steps": "every step is recorded",
    "save_strategy": "set save_steps",
    "save_total_limit": "the last sound checkpoint is kept",
    "save_only_model": "a resume needs the optimizer's state",
    "resume_from_checkpoint": "the same command resumes",
    "eval_strategy": "the evaluation stands apart from the trainer",
    "push_to_hub": "nothing leaves this machine",
    "trust_remote_code": "no code of a model's repository is run",
    "use_cpu": "set model.device",
    "bf16": "set model.dtype",
    "fp16": "set model.dtype",
    "model_init_kwargs": "the model is loaded by ahalab",
    "task_type": "ahalab trains causal language models",
    "inference_mode": "the adapter is trained",
}

# Fields that TRL renamed or dropped, and what a plan says instead.
FORMER = {
    "max_prompt_length": "TRL dropped it in 0.28, and a prompt is never cut. Remove the key.",
    "use_liger_loss": "TRL calls it use_liger_kernel now.",
    "vllm_guided_decoding_regex": "TRL calls it vllm_structured_outputs_regex now.",
    "wandb_log_unique_prompts": "TRL calls it log_unique_prompts now.",
    "warmup_ratio": "transformers dropped it: write the fraction as warmup_steps.",
}
SCALES = {True: "group", False: "none"}  # as `scale_rewards` was written until TRL 0.21


@cache
def field_table(package: str) -> dict[str, dict[str, Any]]:
    """Return {field: {"kinds": [...], "default": ...}} of `trl` or `peft`."""
    text = files("ahalab.plan").joinpath(f"fields/{package}.json").read_text("utf-8")
    table: dict[str, dict[str, Any]] = json.loads(text)["fields"]
    return table


def kind_of(value: object) -> str:
    """Return the JSON kind of a value: null, bool, int, float, str, list or dict."""
    return "null" if value is None else type(value).__name__


def check_block(block: Mapping[str, Any], package: str, name: str) -> None:
    """Check a plan's `grpo:` or `lora:` block against its field table.

    Raises:
        PlanError: An unknown field (the nearest is suggested), one that ahalab manages, or a
            wrong type.
    """
    table = field_table(package)
    for key, value in block.items():
        place = f"{name}.{key}"
        if key in MANAGED:
            raise PlanError(f"{place}: not a plan's to set: {MANAGED[key]}. Remove the key.")
        if key in FORMER and key not in table:
            raise PlanError(f"{place}: a field of older versions. {FORMER[key]}")
        if key not in table:
            raise PlanError(f"{place}: unknown field of {_class(package)}.{suggestion(key, table)}")
        kinds = table[key]["kinds"]
        found = kind_of(value)
        if found not in kinds and not (found == "int" and "float" in kinds):
            raise PlanError(
                f"{place}: expected {' or '.join(kinds)}, found {found} {value!r}. Mend the value."
            )


def in_todays_words(grpo: Mapping[str, Any]) -> dict[str, Any]:
    """Return a plan's `grpo:` block with the value that TRL now has for an older spelling."""
    scale = grpo.get("scale_rewards")
    return {**grpo, **({"scale_rewards": SCALES[scale]} if isinstance(scale, bool) else {})}


def as_declared(block: Mapping[str, Any], package: str) -> dict[str, Any]:
    """Return a checked block with `beta: 0` as the float that it means: both spell one plan.

    Fields named `..._steps` stay: there TRL takes a whole number for steps, a float for a fraction.
    """
    declared = dict(block)
    for key, value in block.items():
        kinds = field_table(package)[key]["kinds"]
        if kind_of(value) == "int" and "int" not in kinds and not key.endswith("_steps"):
            declared[key] = float(value)
    return declared


def ordered(tree: Any) -> Any:
    """Sort mapping keys: their order in the file must not change the digest."""
    if isinstance(tree, dict):
        return {key: ordered(tree[key]) for key in sorted(tree)}
    return [ordered(value) for value in tree] if isinstance(tree, list) else tree


def suggestion(key: str, known: Mapping[str, object] | list[str], count: int = 1) -> str:
    """Return ` Did you mean ...?` for the nearest known keys, at most `count`, or nothing."""
    near = difflib.get_close_matches(key, list(known), n=count, cutoff=0.5)
    return f" Did you mean {' or '.join(f'`{name}`' for name in near)}?" if near else ""


def _class(package: str) -> str:
    return {"trl": "TRL's GRPOConfig", "peft": "PEFT's LoraConfig"}[package]
