"""One configuration on every supported TRL: what is asked is what is used, or the run is refused.

Why it exists: fields come and go between versions, and defaults change the meaning of a run
(beta 0.04 to 0, loss bnpo to dapo, completion length 256 to 512). The plan writes those out
(plan/grpo.py), in the words of the newest TRL; this module hands them over in the words of the
installed one without losing any, refuses what the installed one computes differently, and records
what TRL then really held. `make test-compat` trains with each set of docs/compatibility.md.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
from collections.abc import Callable, Mapping
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
# Before, TRL takes a package that transformers 5 calls absent for installed, and imports it.
TRL_OF_TRANSFORMERS_5 = (0, 29)
SUPPORTED = "pip install 'trl>=0.24,<1.17' (docs/compatibility.md)"

# A field in the words of the newest TRL, which a plan uses, and its name before.
FORMER_NAMES = {
    "vllm_importance_sampling_clip_max": "vllm_importance_sampling_cap",  # until 1.5
    "use_transformers_continuous_batching": "use_transformers_paged",  # until 1.6
    "vllm_structured_outputs_regex": "vllm_guided_decoding_regex",  # until 0.26
    "log_unique_prompts": "wandb_log_unique_prompts",  # until 0.25
}
# What a TRL without the field computes: a plan that asks for just that loses nothing.
WITHOUT_FIELD: dict[str, Any] = {
    "use_bias_correction_kl": False,
    "multi_objective_aggregation": "sum_then_normalize",
    "off_policy_mask_threshold": None,
    "entropy_coef": 0.0,
    "use_adaptive_entropy": False,
}
# Fields that the newest TRL dropped, where an older one's default would change the run.
DROPPED = {"max_prompt_length": None}  # 512 until 0.25: it cut prompts
LOSS_SINCE = {"cispo": (0, 26), "sapo": (0, 26), "luspo": (0, 28), "vespo": (1, 0)}
BY_ALL_TOKENS = ("dapo", "cispo", "vespo")
# What TRL before a version computes differently, by the plan's own fields.
MEANT_OTHERWISE: tuple[tuple[tuple[int, int], Callable[[Mapping[str, Any]], bool], str], ...] = (
    (
        (1, 9),
        lambda grpo: (
            grpo["loss_type"] in BY_ALL_TOKENS
            and grpo["steps_per_generation"] != grpo["gradient_accumulation_steps"]
        ),
        "grpo.steps_per_generation: it divides the loss of every optimizer step by the tokens of "
        "the whole generation batch, so that steps are too small. Set it to "
        "gradient_accumulation_steps, or loss_type to grpo",
    ),
    (
        (1, 9),
        lambda grpo: (
            grpo["loss_type"] in BY_ALL_TOKENS and bool(grpo["mask_truncated_completions"])
        ),
        "grpo.mask_truncated_completions: it divides the loss by the masked tokens too. Set it to "
        "false, or loss_type to grpo",
    ),
    (
        (0, 26),
        lambda grpo: bool(grpo["beta"]) and bool(grpo.get("use_bias_correction_kl", True)),
        "grpo.beta: its KL term has no correction for the sampling policy. Set "
        "use_bias_correction_kl to false, or beta to 0",
    ),
)
# What RecordedTrainer overrides: its parameters, and TRL's method that has to call it.
OVERRIDDEN: dict[str, tuple[tuple[str, ...], str]] = {
    "_get_train_sampler": (("dataset",), "get_train_dataloader"),
    "_generate_and_score_completions": (("inputs",), "_prepare_inputs"),
    "_calculate_rewards": (
        ("inputs", "prompts", "completions", "completion_ids_list"),
        "_generate_and_score_completions",
    ),
    "_compute_loss": (("model", "inputs"), "compute_loss"),
}
SAMPLER = ("shuffle", "seed", "generator", "num_samples", "batch_size", "repeat_count")

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
        raise MissingError(f"trl {found}: refused, {BROKEN_TRL[found]}. {SUPPORTED}")
    if _numbers(found) < OLDEST_TRL:
        raise MissingError(f"trl {found}: expected 0.24 or newer. {SUPPORTED}")
    if _numbers(found) < TRL_OF_TRANSFORMERS_5 and _numbers(version("transformers")) >= (5, 0):
        raise MissingError(
            f"trl {found}: it does not start with transformers {version('transformers')}. "
            "pip install -U trl, or 'transformers>=4.57.6,<5'"
        )


def _numbers(found: str) -> tuple[int, int]:
    major, minor = found.split(".")[:2]
    return int(major), int(minor)


def check_trainer(trainer: type, sampler: type) -> None:
    """Refuse a TRL whose trainer no longer has, or no longer calls, what our trainer overrides.

    Args:
        trainer: TRL's GRPOTrainer.
        sampler: TRL's RepeatSampler.

    Raises:
        MissingError: Rows would be lost, or a run not resume; the message names the method.
    """
    for name, (parameters, caller) in OVERRIDDEN.items():
        method = getattr(trainer, name, None)
        found = () if method is None else tuple(inspect.signature(method).parameters)[1:]
        calling = inspect.unwrap(getattr(trainer, caller, check_trainer))
        if found[: len(parameters)] != parameters or name not in calling.__code__.co_names:
            raise MissingError(
                f"trl {version('trl')}: expected GRPOTrainer.{caller} to call "
                f"{name}({', '.join(parameters)}), on which the records hang, found "
                f"{name}({', '.join(found)}). {SUPPORTED}"
            )
    lacking = sorted(set(SAMPLER) - set(sampler.__init__.__code__.co_names))  # type: ignore[misc]
    if lacking:
        raise MissingError(
            f"trl {version('trl')}: expected RepeatSampler to hold {', '.join(SAMPLER)}, from "
            f"which a resumed run finds its place, found no {', '.join(lacking)}. {SUPPORTED}"
        )


def _check_meaning(grpo: Mapping[str, Any]) -> None:
    """Refuse a plan that the installed TRL would train, but not as the newest one does.

    Raises:
        PlanError: The field, what would happen, and the remedy.
    """
    found = version("trl")
    since = LOSS_SINCE.get(grpo["loss_type"])
    if since is not None and _numbers(found) < since:
        raise PlanError(
            f"grpo.loss_type: trl {found} has no {grpo['loss_type']}. Choose another loss, or "
            "install a newer TRL."
        )
    for right_since, concerned, what in MEANT_OTHERWISE:
        if _numbers(found) < right_since and concerned(grpo):
            field, _, told = what.partition(": ")
            raise PlanError(f"{field}: refused with trl {found}: {told}, or install a newer TRL.")


def _as_installed(wanted: Mapping[str, Any], known: set[str]) -> dict[str, Any]:
    """Return what is wanted in the words of the installed TRL; what it can't say stays."""
    told = {}
    for name, value in wanted.items():
        former = FORMER_NAMES.get(name, name)
        if name in known or name not in WITHOUT_FIELD or WITHOUT_FIELD[name] != value:
            told[former if name not in known and former in known else name] = value
    share = told.get("warmup_steps", 0)
    if _numbers(version("transformers")) < (5, 0) and 0 < share < 1:
        told |= {"warmup_steps": 0, "warmup_ratio": share}
    return told | {name: value for name, value in DROPPED.items() if name in known}


def grpo_config(plan: Plan, seed: int, output: Path) -> Any:
    """Return TRL's GRPOConfig for one run.

    Raises:
        PlanError: The installed TRL lacks a field that the plan sets, or means something else by
            one.
    """
    from trl import GRPOConfig

    _check_meaning(plan.grpo)

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
    known = {field.name for field in dataclasses.fields(GRPOConfig)}
    wanted = _as_installed({**plan.grpo, **managed}, known)
    lost = sorted(set(wanted) - known)
    if lost:
        raise PlanError(
            f"grpo.{lost[0]}: trl {version('trl')} has no such field ({', '.join(lost)}), so it "
            "would be dropped without a word. Remove it from the plan, or install another TRL."
        )
    return GRPOConfig(**wanted)


def lora_config(plan: Plan) -> Any:
    """Return PEFT's LoraConfig for the plan's adapters.

    Raises:
        PlanError: The installed PEFT lacks a field that the plan sets.
    """
    from peft import LoraConfig

    lost = sorted(set(plan.lora) - {field.name for field in dataclasses.fields(LoraConfig)})
    if lost:
        raise PlanError(
            f"lora.{lost[0]}: peft {version('peft')} has no such field ({', '.join(lost)}). Remove "
            "it from the plan, or install another PEFT."
        )
    return LoraConfig(**plan.lora, task_type="CAUSAL_LM")


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
    """Return every field that TRL holds, as plain JSON values, paths apart.

    What an older TRL calls otherwise, or does without a field, stands under the newest's name too.
    """
    skipped = {"output_dir", "logging_dir", "run_name", "hub_token"}
    held = {
        field.name: _plain(getattr(config, field.name, None))
        for field in dataclasses.fields(config)
        if field.name not in skipped
    }
    held |= {
        name: held[old] for name, old in FORMER_NAMES.items() if name not in held and old in held
    }
    if held.get("warmup_ratio") and not held["warmup_steps"]:
        held["warmup_steps"] = held["warmup_ratio"]
    return WITHOUT_FIELD | held


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
