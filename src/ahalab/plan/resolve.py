"""Checks a plan as a whole and makes every meaningful default explicit."""

from __future__ import annotations

import math
import re
from typing import Any

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from ahalab.errors import PlanError
from ahalab.plan.endpoint import check_backend
from ahalab.plan.fields import as_declared, check_block, field_table, in_todays_words, ordered
from ahalab.plan.tasks import resolve_task
from ahalab.plan.templates import check_templates
from ahalab.records.base import to_plain
from ahalab.records.plan import ArmSpec, EvaluationSpec, Plan, ValidationSpec
from ahalab.scoring.answers import Asked, score_answer
from ahalab.scoring.arms import resolve_arm, unknown_name
from ahalab.scoring.attacks import ATTACKS
from ahalab.scoring.own import own_names
from ahalab.statistics.alarms import ALARMS

NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
RESERVED = {"con", "prn", "aux", "nul", *(f"{p}{n}" for p in ("com", "lpt") for n in range(1, 10))}

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
# Adapters that PEFT refuses to apply to some rows of a batch only.
ONE_SIDE_A_BATCH = ("use_dora", "trainable_token_indices")
COUNTS = (
    "per_device_train_batch_size",
    "gradient_accumulation_steps",
    "steps_per_generation",
    "generation_batch_size",
    "num_iterations",
)
EXPLICIT_LORA: dict[str, Any] = {
    "r": 16,
    "lora_alpha": 32,
    "lora_dropout": 0.0,
    "target_modules": "all-linear",
    "bias": "none",
}


def resolve(plan: Plan) -> Plan:
    """Return the plan with every default written out.

    Raises:
        PlanError: The plan contradicts itself; the message starts with the key.
    """
    _check_finite(to_plain(plan), "")
    _check_names(plan)
    _check_arms(plan)
    plan = replace(plan, grpo=in_todays_words(plan.grpo))
    check_block(plan.grpo, "trl", "grpo")
    check_block(plan.lora, "peft", "lora")
    _check_evaluation(plan)
    check_backend(plan)
    plan = replace(plan, evaluation=_in_order(_with_floor(plan.evaluation)))
    validation = _resolve_validation(plan)
    grpo = _resolve_grpo(plan)
    _check_stop_on(plan)
    _check_answer_format(plan)
    check_templates(plan)
    return replace(
        plan,
        task=resolve_task(plan.task),
        arms=tuple(replace(arm, components=ordered(arm.components)) for arm in plan.arms),
        grpo=ordered(as_declared(grpo, "trl")),
        rewards=ordered(plan.rewards),
        validation=validation,
        lora=ordered(as_declared({**EXPLICIT_LORA, **plan.lora}, "peft")),
    )


def _check_finite(tree: Any, place: str) -> None:
    """Refuse `.nan` and `.inf` anywhere: no record can hold them; and huge whole numbers."""
    if isinstance(tree, float) and not math.isfinite(tree):
        raise PlanError(f"{place}: expected a finite number, found {tree}. Mend the value.")
    if isinstance(tree, int) and abs(tree) >= 1 << 63:
        raise PlanError(
            f"{place}: expected a whole number of 64 bits, found one of {len(str(abs(tree)))} "
            "digits. Mend the value."
        )
    if isinstance(tree, list | tuple):
        tree = dict(enumerate(tree))
    if isinstance(tree, dict):
        for key, value in tree.items():
            _check_finite(value, f"{place}.{key}" if place else str(key))


def _check_names(plan: Plan) -> None:
    for key, name in [("name", plan.name), *(("arms", arm.name) for arm in plan.arms)]:
        if not NAME.fullmatch(name) or name.split(".")[0] in RESERVED:
            raise PlanError(
                f"{key}: expected a name of 1 to 64 characters a-z 0-9 . _ -, found {name[:80]!r}. "
                "Names become folders; choose another."
            )


def _check_arms(plan: Plan) -> None:
    names = [arm.name for arm in plan.arms]
    if not names:
        raise PlanError("arms: expected at least one arm, found none.")
    if len(set(names)) < len(names):
        raise PlanError(f"arms: expected different names, found {', '.join(sorted(names))}.")
    for number, arm in enumerate(plan.arms):
        try:
            resolve_arm(arm.name, arm.components)
        except ValueError as error:
            raise PlanError(f"arms.{number}: {error}") from error
        _check_accepted(number, arm)
    _check_rewards(plan)
    if plan.control not in names:
        raise PlanError(
            f"control: expected one of the arms ({', '.join(names)}), found {plan.control!r}. "
            "Add the arm `random`, the placebo, and name it here."
        )
    if not plan.seeds or len(set(plan.seeds)) < len(plan.seeds):
        raise PlanError(f"seeds: expected different whole numbers, found {list(plan.seeds)}.")
    if any(not 0 <= seed < 2**32 for seed in plan.seeds):
        raise PlanError(f"seeds: expected numbers from 0 to 2^32-1, found {list(plan.seeds)}.")


def _check_rewards(plan: Plan) -> None:
    """Check the digests of own rewards, where the plan holds some: a frozen one does."""
    own = {name for arm in plan.arms for name in own_names(arm.components or {})}
    for name, digest in plan.rewards.items():
        if name not in own:
            raise PlanError(f"rewards.{name}: {unknown_name('own reward', name, sorted(own))}")
        if not DIGEST.fullmatch(digest):
            raise PlanError(
                f"rewards.{name}: expected sha256: and 64 hex digits, found {digest[:80]!r}. "
                "Drop the key; it is filled in when the study is frozen."
            )


def _check_stop_on(plan: Plan) -> None:
    for name in plan.training.stop_on:
        if name not in ALARMS:
            raise PlanError(f"training.stop_on: {unknown_name('alarm', name, ALARMS)}")


def _check_accepted(number: int, arm: ArmSpec) -> None:
    """Refuse an attack that is unknown or named twice."""
    known = [attack.name for attack in ATTACKS]
    for at, name in enumerate(arm.accept):
        place = f"arms.{number}.accept.{at}"
        if name not in known:
            raise PlanError(f"{place}: {unknown_name('attack', name, known)}")
        if name in arm.accept[:at]:
            raise PlanError(f"{place}: expected different attacks, found {name} twice.")


def _check_answer_format(plan: Plan) -> None:
    try:
        score_answer("", "0", asked=Asked(answer_format=plan.answer_format))
    except ValueError as error:
        raise PlanError(f"answer_format: {error}") from error


def _resolve_grpo(plan: Plan) -> dict[str, Any]:
    table = field_table("trl")
    grpo = {k: v for k, v in EXPLICIT_GRPO.items() if k in table} | dict(plan.grpo)
    steps = grpo.get("max_steps")
    if not isinstance(steps, int) or steps < 1:
        raise PlanError(f"grpo.max_steps: expected a number of steps from 1 on, found {steps}.")
    group = grpo["num_generations"]
    if group is None or group < 2:
        raise PlanError(
            f"grpo.num_generations: expected a group of 2 or more, found {group}. "
            "An advantage is a comparison within the group; 8 is usual, below 4 is coarse."
        )
    default = table["per_device_train_batch_size"]["default"]
    per_device = grpo.setdefault("per_device_train_batch_size", default)
    for key in COUNTS:
        if grpo.get(key) is not None and grpo[key] < 1:
            raise PlanError(f"grpo.{key}: expected a number from 1 on, found {grpo[key]}.")
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
            f"grpo.save_steps: expected a multiple of {boundary}, where a generation batch "
            "begins (a "
            f"resume is exact only there), found {asked}. Nearest: {below} or {below + boundary}."
        )
    return asked


def _check_evaluation(plan: Plan) -> None:
    evaluation, analysis = plan.evaluation, plan.analysis
    for key, value in (
        ("evaluation.max_new_tokens", evaluation.max_new_tokens),
        ("evaluation.batch_size", evaluation.batch_size),
        ("evaluation.floor_batch_size", evaluation.floor_batch_size),
        ("evaluation.cells_per_batch", evaluation.cells_per_batch),
        ("evaluation.samples", evaluation.samples),
        ("task.train_prompts", plan.task.train_prompts),
        ("task.eval_prompts", plan.task.eval_prompts),
        ("model.threads", plan.model.threads),
        ("training.processes", plan.training.processes),
    ):
        if value is not None and value < 1:
            raise PlanError(f"{key}: expected a number from 1 on, found {value}.")
    for key in ONE_SIDE_A_BATCH:
        if plan.lora.get(key) and evaluation.cells_per_batch > 1:
            raise PlanError(
                f"evaluation.cells_per_batch: expected 1 with lora.{key}, since PEFT puts no "
                f"rows of such an adapter beside others, found {evaluation.cells_per_batch}."
            )
    if evaluation.temperature == 0 and evaluation.samples > 1:
        raise PlanError(
            f"evaluation.samples: expected 1 with greedy decoding (temperature 0), found "
            f"{evaluation.samples}. Set a temperature, or one sample."
        )
    if evaluation.temperature < 0 or not 0 < evaluation.top_p <= 1:
        raise PlanError("evaluation.temperature: expected temperature >= 0 and top_p in (0, 1].")
    if evaluation.batch_size is None and evaluation.floor_batch_size is not None:
        raise PlanError(
            "evaluation.floor_batch_size: expected none while batch_size is chosen by memory, "
            f"found {evaluation.floor_batch_size}. Give both, or neither."
        )
    if None is not evaluation.floor_batch_size == evaluation.batch_size:
        raise PlanError(
            "evaluation.floor_batch_size: expected another value than batch_size; the noise "
            "floor is "
            "the base under a second batch plan."
        )
    for k in () if analysis.pass_at is UNSET else analysis.pass_at:
        if not 1 <= k <= evaluation.samples:
            raise PlanError(
                f"analysis.pass_at: expected numbers from 1 to evaluation.samples="
                f"{evaluation.samples}, found {k}. pass@k from fewer than k answers is biased; "
                "sample more, or ask for a smaller k."
            )
    if not 0 < analysis.alpha < 1:
        raise PlanError(
            f"analysis.alpha: expected a fraction between 0 and 1, found {analysis.alpha}."
        )
    if analysis.margin_points <= 0:
        raise PlanError(
            f"analysis.margin_points: expected points above 0, found {analysis.margin_points}."
        )
    if "{question}" not in plan.task.template:
        raise PlanError("task.template: expected {question} in the template, found none.")


def _with_floor(evaluation: EvaluationSpec) -> EvaluationSpec:
    size, floor = evaluation.batch_size, evaluation.floor_batch_size
    if size is None or floor is not None:
        return evaluation
    return replace(evaluation, floor_batch_size=floor_size(size))


def _in_order(evaluation: EvaluationSpec) -> EvaluationSpec:
    if evaluation.templates is UNSET:
        return evaluation
    return replace(evaluation, templates=ordered(evaluation.templates))


def floor_size(batch_size: int) -> int:
    """Return the questions per batch of the noise floor, where the plan leaves it open."""
    return max(1, batch_size * 3 // 4) if batch_size > 1 else 2


def _resolve_validation(plan: Plan) -> ValidationSpec | UnsetType:
    asked = plan.validation
    if asked is UNSET:
        return UNSET
    limit = asked.max_new_tokens
    found = replace(
        asked, max_new_tokens=plan.evaluation.max_new_tokens if limit is None else limit
    )
    for key in ("prompts", "max_new_tokens", "batch_size"):
        value = getattr(found, key)
        if value < 1:
            raise PlanError(f"validation.{key}: expected a number from 1 on, found {value}.")
    return found
