"""The prompt templates that the base is tried under: the plan's own, and its list or a common set.

How a question is put moves a base by more than most training does, so a baseline under a bad
template is a straw man.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from ahalab.errors import PlanError
from ahalab.records.plan import Plan
from ahalab.records.templates import AskedTemplate

OWN = "plan"  # name of the task's own template
SET_VERSION = "1"  # of the built-in set; raise it with any change below
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
SYSTEM = "You are a helpful assistant."  # where the task has no system message of its own
STEPS = "Let's think step by step."
INSTRUCTIONS = {
    "hashes": 'End with a line "#### N", where N is the answer.',
    "boxed": "Put the final answer in \\boxed{}.",
    "answer_tag": "Put the final answer between <answer> and </answer>.",
}


def template_arguments(plan: Plan) -> dict[str, Any]:
    """Return what the chat template is handed beside the messages, in every stage alike.

    TRL hands it to the prompts of training (`chat_template_kwargs`, as `enable_thinking: false`);
    an evaluation without it would ask otherwise than the training did.
    """
    return dict(plan.grpo.get("chat_template_kwargs") or {})


def own_template(plan: Plan) -> AskedTemplate:
    """Return the template of the plan's task."""
    return AskedTemplate(name=OWN, template=plan.task.template, system=plan.task.system)


def built_in_templates(plan: Plan) -> tuple[AskedTemplate, ...]:
    """Return the common templates that are not the plan's own.

    A format of one's own (`pattern:REGEX`) has no instruction that we could write.
    """
    instruction = INSTRUCTIONS.get(plan.answer_format)
    bodies = {
        "question": "{question}",
        "question_answer": "Question: {question}\nAnswer:",
        "steps": f"{{question}}\n{STEPS}",
    }
    if instruction is not None:
        bodies["format"] = f"{{question}}\n{instruction}"
        bodies["steps_format"] = f"{{question}}\n{STEPS} {instruction}"
    system = plan.task.system or SYSTEM
    plain = "format" if instruction is not None else "steps"
    found = [AskedTemplate(name=n, template=body, system=None) for n, body in bodies.items()]
    found += [
        AskedTemplate(name=f"system_{name}", template=bodies[name], system=system)
        for name in ("question", plain)
    ]
    return tuple(
        t for t in found if (t.template, t.system) != (plan.task.template, plan.task.system)
    )


def asked_templates(plan: Plan) -> tuple[AskedTemplate, ...]:
    """Return every template that a plan's base is tried under, its own first."""
    listed = plan.evaluation.templates
    if listed is UNSET:
        return own_template(plan), *built_in_templates(plan)
    others = (
        AskedTemplate(name=name, template=spec.template, system=spec.system)
        for name, spec in listed.items()
    )
    return own_template(plan), *others


def check_templates(plan: Plan) -> None:
    """Check the templates that a plan lists.

    Raises:
        PlanError: A name is no folder's, a template has no {question}, or stands there twice.
    """
    listed = plan.evaluation.templates
    if listed is UNSET:
        return
    if not listed:
        raise PlanError(
            "evaluation.templates: expected at least one template, found none. Drop the key for "
            "the built-in set."
        )
    known = {(plan.task.template, plan.task.system): "task.template, which is always tried"}
    for name, spec in listed.items():
        place = f"evaluation.templates.{name}"
        if not NAME.fullmatch(name) or name == OWN:
            raise PlanError(
                f"{place[:120]}: expected a name of 1 to 32 characters a-z 0-9 _ - other than "
                f"`{OWN}`, the task's own. Names become folders; choose another."
            )
        if "{question}" not in spec.template:
            raise PlanError(f"{place}: expected {{question}} in the template, found none.")
        same = known.setdefault((spec.template, spec.system), name)
        if same != name:
            raise PlanError(f"{place}: expected another template than that of {same}. Drop one.")


def greedy_plan(plan: Plan) -> Plan:
    """Return the plan with one greedy answer to a question: templates are compared without luck."""
    evaluation = replace(plan.evaluation, temperature=0.0, top_p=1.0, samples=1, cells_per_batch=1)
    return replace(plan, evaluation=evaluation)
