"""One configuration on every supported TRL: what is asked is what is used, or the run is refused.

Why it exists: fields come and go between versions, and defaults change the meaning of a run
(beta 0.04 to 0, loss bnpo to dapo, completion length 256 to 512). The plan writes those out
(plan/resolve.py); this module hands them over without losing one, and records what TRL then
really held.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ahalab.errors import MissingError, PlanError
from ahalab.records.plan import Plan, TrainingSpec

BROKEN_TRL = {
    "0.19.0": "it strips the chat template's special tokens from prompts",
    "0.22.0": "it scales rewards the wrong way round",
    "0.22.1": "it scales rewards the wrong way round",
}
OLDEST_TRL = (0, 24)

# How TRL normalises each kind of loss: over rows, over tokens, or by a number that comes with the
# batch and does not depend on the rows that are passed (GRPOTrainer._compute_loss, 0.24 to 1.16).
NORMALISED_BY = {
    "dapo": "batch",
    "cispo": "batch",
    "grpo": "rows",
    "dr_grpo": "rows",
    "luspo": "rows",
    "bnpo": "tokens",
}
NEEDS_EVERY_ROW: tuple[tuple[str, Callable[[Any], bool], str], ...] = (
    ("beta", bool, "the KL term has a gradient on every row"),
    ("entropy_coef", bool, "the entropy bonus has a gradient on every row"),
    ("use_adaptive_entropy", bool, "the entropy bonus has a gradient on every row"),
    ("top_entropy_quantile", lambda v: v < 1.0, "the quantile is taken over every row"),
    ("off_policy_mask_threshold", lambda v: v is not None, "the mask is taken over every row"),
    ("use_liger_kernel", bool, "the kernel computes the loss by itself"),
    ("use_liger_loss", bool, "the kernel computes the loss by itself"),
    ("use_vllm", bool, "importance statistics are taken over every row"),
)


def check_trl() -> None:
    """Refuse a TRL that is missing, too old, or known to train something else than it says.

    Raises:
        MissingError: Install or change TRL; the message says how.
    """
    try:
        found = version("trl")
    except PackageNotFoundError as error:
        raise MissingError("training needs TRL and torch: pip install 'ahalab[train]'") from error
    if found in BROKEN_TRL:
        raise MissingError(f"trl {found}: refused, {BROKEN_TRL[found]}. pip install -U trl")
    numbers = tuple(int(part) for part in found.split(".")[:2])
    if numbers < OLDEST_TRL:
        raise MissingError(f"trl {found}: expected 0.24 or newer. pip install -U trl")


def grpo_config(plan: Plan, seed: int, output: Path) -> Any:
    """Return TRL's GRPOConfig for one run.

    Raises:
        PlanError: The installed TRL lacks a field that the plan sets.
    """
    from trl import GRPOConfig

    managed = {
        "output_dir": str(output),
        "seed": seed,
        "data_seed": seed,
        "report_to": plan.grpo.get("report_to") or "none",  # None meant all of them, once
        "logging_strategy": "steps",
        "logging_steps": 1,
        "logging_nan_inf_filter": False,
        "save_strategy": "steps",
        "save_total_limit": None,  # ours to rotate: only after our marker is written
        "remove_unused_columns": False,
        "log_completions": False,
        "disable_tqdm": True,
        "use_cpu": plan.model.device == "cpu",
        "bf16": plan.model.dtype == "bfloat16" and plan.model.device == "cuda",
        "fp16": plan.model.dtype == "float16" and plan.model.device == "cuda",
        "dataloader_pin_memory": plan.model.device == "cuda",
    }
    wanted = {**plan.grpo, **managed}
    known = {field.name for field in dataclasses.fields(GRPOConfig)}
    lost = sorted(set(wanted) - known)
    if lost:
        raise PlanError(
            f"grpo.{lost[0]}: trl {version('trl')} has no such field ({', '.join(lost)}), so it "
            "would be "
            "dropped without a word. Remove it from the plan, or install another TRL."
        )
    return GRPOConfig(**wanted)


def lean_step_of(training: TrainingSpec, config: Any, *, experts: bool, processes: int) -> str:
    """Say whether rows without an advantage may be left out of the training pass.

    Args:
        training: What the plan asks for.
        config: TRL's GRPOConfig.
        experts: Whether the model's routers have a loss of their own.
        processes: Processes of the run: each has to take part in every collective call.

    Returns:
        "on", or "off: " and why every row has to enter the pass.
    """
    if not training.lean_step:
        return "off: training.lean_step is false"
    for name, needs, why in NEEDS_EVERY_ROW:
        value = getattr(config, name, None)
        if value is not None and needs(value):
            return f"off: grpo.{name}={value}, {why}"
    if experts:
        return "off: the routers' loss has a gradient on every row"
    if config.loss_type not in NORMALISED_BY:
        return f"off: grpo.loss_type={config.loss_type}, how it is normalised is not known here"
    return "on" if processes == 1 else f"off: {processes} processes take every step together"


def effective_config(config: Any) -> dict[str, Any]:
    """Return every field that TRL holds, as plain JSON values, paths apart."""
    skipped = {"output_dir", "logging_dir", "run_name", "hub_token"}
    return {
        field.name: _plain(getattr(config, field.name, None))
        for field in dataclasses.fields(config)
        if field.name not in skipped
    }


def _plain(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return value.value
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set):
        items = [_plain(v) for v in value]
        return sorted(items, key=str) if isinstance(value, set) else items
    return str(value)


def effective_lora(config: Any) -> dict[str, Any]:
    """Return every field that PEFT holds, as plain JSON values."""
    skipped = {"base_model_name_or_path", "runtime_config", "auto_mapping"}
    return {
        field.name: _plain(getattr(config, field.name))
        for field in dataclasses.fields(config)
        if field.name not in skipped and not field.name.startswith("_")
    }
