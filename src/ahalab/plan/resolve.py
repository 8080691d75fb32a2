"""Checks a plan as a whole and makes every meaningful default explicit."""

from __future__ import annotations

import math
import re
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from ahalab.errors import PlanError
from ahalab.plan.counts import MOST_SAMPLES, require_count
from ahalab.plan.endpoint import check_backend
from ahalab.plan.evaluation import check_evaluation, resolve_evaluation, resolve_validation
from ahalab.plan.fields import as_declared, check_block, in_todays_words, ordered
from ahalab.plan.grpo import resolve_grpo
from ahalab.plan.tasks import resolve_task
from ahalab.plan.templates import check_templates
from ahalab.records.base import FURTHEST, to_plain
from ahalab.records.plan import LEAST_ALPHA, MOST_ALPHA, ArmSpec, Plan
from ahalab.scoring.answers import Asked, score_answer
from ahalab.scoring.arms import resolve_arm, unknown_name
from ahalab.scoring.attacks import ATTACKS
from ahalab.scoring.own import own_names
from ahalab.statistics.alarms import ALARMS

NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
RESERVED = {"con", "prn", "aux", "nul", *(f"{p}{n}" for p in ("com", "lpt") for n in range(1, 10))}

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
    _check_counts(plan)
    check_evaluation(plan)
    _check_analysis(plan)
    _check_template(plan)
    check_backend(plan)
    plan = replace(plan, evaluation=resolve_evaluation(plan.evaluation))
    validation = resolve_validation(plan)
    grpo = resolve_grpo(plan)
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
    """Refuse what no record can hold, anywhere: `.nan`, `.inf`, and numbers beyond all reason."""
    if isinstance(tree, float) and not math.isfinite(tree):
        raise PlanError(f"{place}: expected a finite number, found {tree}. Mend the value.")
    if isinstance(tree, float) and abs(tree) > FURTHEST:
        raise PlanError(
            f"{place}: expected a number up to {FURTHEST:g}, found {tree}. Mend the value."
        )
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


def _check_counts(plan: Plan) -> None:
    evaluation = plan.evaluation
    for key, value in (
        ("evaluation.max_new_tokens", evaluation.max_new_tokens),
        ("evaluation.batch_size", evaluation.batch_size),
        ("evaluation.floor_batch_size", evaluation.floor_batch_size),
        ("evaluation.cells_per_batch", evaluation.cells_per_batch),
        ("task.train_prompts", plan.task.train_prompts),
        ("task.eval_prompts", plan.task.eval_prompts),
        ("model.threads", plan.model.threads),
        ("training.processes", plan.training.processes),
    ):
        if value is not None:
            require_count(key, value)
    require_count("evaluation.samples", evaluation.samples, MOST_SAMPLES)


def _check_analysis(plan: Plan) -> None:
    evaluation, analysis = plan.evaluation, plan.analysis
    for k in () if analysis.pass_at is UNSET else analysis.pass_at:
        if not 1 <= k <= evaluation.samples:
            raise PlanError(
                f"analysis.pass_at: expected numbers from 1 to evaluation.samples="
                f"{evaluation.samples}, found {k}. pass@k from fewer than k answers is biased; "
                "sample more, or ask for a smaller k."
            )
    if not LEAST_ALPHA <= analysis.alpha <= MOST_ALPHA:
        raise PlanError(
            f"analysis.alpha: expected a fraction from {LEAST_ALPHA:g} to {MOST_ALPHA:g}, found "
            f"{analysis.alpha}."
        )
    if analysis.margin_points <= 0:
        raise PlanError(
            f"analysis.margin_points: expected points above 0, found {analysis.margin_points}."
        )


def _check_template(plan: Plan) -> None:
    if "{question}" not in plan.task.template:
        raise PlanError("task.template: expected {question} in the template, found none.")
