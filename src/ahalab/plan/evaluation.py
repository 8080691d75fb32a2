"""What an evaluation and the validation are asked for: checked, and defaults written out."""

from __future__ import annotations

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from ahalab.errors import PlanError
from ahalab.plan.counts import require_count
from ahalab.plan.fields import ordered
from ahalab.records.plan import EvaluationSpec, Plan, ValidationSpec

# Adapters that PEFT refuses to apply to some rows of a batch only.
ONE_SIDE_A_BATCH = ("use_dora", "trainable_token_indices")


def check_evaluation(plan: Plan) -> None:
    """Refuse an evaluation that contradicts itself.

    Raises:
        PlanError: The key is named.
    """
    evaluation = plan.evaluation
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
    same = evaluation.floor_batch_size == evaluation.batch_size
    if same and evaluation.floor_batch_size is not None:
        raise PlanError(
            "evaluation.floor_batch_size: expected another value than batch_size; the noise "
            "floor is the base under a second batch plan."
        )


def resolve_evaluation(evaluation: EvaluationSpec) -> EvaluationSpec:
    """Return it with the noise floor's batch size, and templates in the order of their names."""
    return _in_order(_with_floor(evaluation))


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


def resolve_validation(plan: Plan) -> ValidationSpec | UnsetType:
    """Return what is asked at each checkpoint, where the plan asks something.

    Raises:
        PlanError: A number is below 1, or beyond all use.
    """
    asked = plan.validation
    if asked is UNSET:
        return UNSET
    limit = asked.max_new_tokens
    found = replace(
        asked, max_new_tokens=plan.evaluation.max_new_tokens if limit is None else limit
    )
    for key in ("prompts", "max_new_tokens", "batch_size"):
        require_count(f"validation.{key}", getattr(found, key))
    return found
