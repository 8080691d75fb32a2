"""Says in words what a plan will run."""

from __future__ import annotations

from pathlib import Path

from msgspec import UNSET

from ahalab.plan.load import dump_plan
from ahalab.plan.schedule import checkpoint_count, expected_rollouts
from ahalab.records.base import digest
from ahalab.records.plan import Plan
from ahalab.scoring.arms import resolve_arm


def describe(plan: Plan, root: Path) -> str:
    """Return what a plan will run, the resolved plan, and its digest."""
    runs = len(plan.arms) * len(plan.seeds)
    rollouts = expected_rollouts(plan)
    answers = plan.task.eval_prompts * plan.evaluation.samples
    lines = [
        f"Study {plan.name}: {len(plan.arms)} arms x {len(plan.seeds)} seeds on {plan.model.id}, "
        f"results in {root}",
        "",
        *(f"  arm {arm}" for arm in _arms(plan)),
        "",
        f"  training    {runs} runs of {plan.grpo['max_steps']} steps, {rollouts} rollouts each "
        f"({runs * rollouts} in all)",
        *_validation(plan),
        f"  evaluation  {runs + 2} answer sets of up to {answers} answers: the base, its noise "
        "floor, "
        f"{runs} adapters",
        f"  decides     {plan.analysis.primary} accuracy, alpha {plan.analysis.alpha}, Holm over "
        f"every arm against {' and '.join(plan.analysis.comparisons)}",
        "",
        *_warnings(plan),
        dump_plan(plan).rstrip(),
        "",
        f"Digest: {digest(plan)}",
    ]
    return "\n".join(lines)


def _validation(plan: Plan) -> list[str]:
    if plan.validation is UNSET:
        return []
    times = checkpoint_count(plan)
    return [
        f"  validation  {plan.validation.prompts} prompts, greedy, at {times} checkpoint"
        f"{'s' * (times > 1)} of each run"
    ]


def _arms(plan: Plan) -> list[str]:
    described = []
    for arm in plan.arms:
        parts = resolve_arm(arm.name, arm.components).components
        formula = " + ".join(f"{weight:g} {name}" for name, weight in parts.items())
        control = "  (control)" if arm.name == plan.control else ""
        described.append(f"{arm.name}: {formula}{control}")
    return described


def _warnings(plan: Plan) -> list[str]:
    found = []
    if len(plan.seeds) < 3:
        found.append(
            f"  note: {len(plan.seeds)} seed{'s' * (len(plan.seeds) > 1)}; a claim about the "
            "reward needs "
            "at least two, and three or more to be worth much"
        )
    if plan.grpo["num_generations"] < 4:
        found.append("  note: groups below 4 give coarse advantages")
    return [*found, ""] if found else []
