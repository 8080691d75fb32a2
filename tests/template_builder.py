"""Adds to an invented study the base under the templates of the built-in set."""

from __future__ import annotations

from pathlib import Path

from msgspec import UNSET
from msgspec.structs import replace

from ahalab.plan.cells import BASE, Cell
from ahalab.plan.load import load_plan
from ahalab.plan.templates import OWN, asked_templates
from ahalab.records.answer import Answer, Protocol
from ahalab.records.base import digest, encode_pretty
from ahalab.records.plan import Plan
from ahalab.records.prompt import Prompt
from ahalab.records.templates import AskedTemplate, TemplateSet
from ahalab.store.layout import StudyPaths
from ahalab.store.rows import RowFile, RowWriter, write_rows
from ahalab.tasks.prepare import read_prompts
from ahalab.tasks.templates import draw_for_templates, template_file, template_split
from study_builder import TOKENIZER, answer, finish, protocol_for

LEFT_OUT = ("system_question", "system_format")  # as if the chat template took no system message


def add_templates(root: Path, questions: int = 4) -> Path:
    """Write templates/, then analyse, report and seal the study again."""
    paths = StudyPaths(root)
    plan = load_plan(paths.plan)
    write_templates(plan, paths, questions)
    finish(plan, paths)
    return root


def write_templates(plan: Plan, paths: StudyPaths, questions: int) -> None:
    """Write the base under the plan's own templates, or under the built-in set."""
    offered = read_prompts(paths, template_split(plan))
    chosen = draw_for_templates(offered, questions, plan.evaluation.seed)
    built_in = plan.evaluation.templates is UNSET
    left_out = LEFT_OUT if built_in else ()
    tried = tuple(t for t in asked_templates(plan) if t.name not in left_out)
    asked = TemplateSet(
        plan_digest=digest(plan), source="built-in" if built_in else "plan", version="1",
        split=template_split(plan), questions=questions, available=len(offered),
        templates=tried, left_out=left_out,
    )  # fmt: skip
    paths.template_set.parent.mkdir()
    paths.template_set.write_bytes(encode_pretty(asked))
    for template in tried:
        prompts = [under(template, prompt) for prompt in chosen]
        write_rows(template_file(plan, paths, template.name), prompts)
        write_template(plan, paths, template, prompts)


def under(template: AskedTemplate, prompt: Prompt) -> Prompt:
    """Return a prompt as a template puts it; the plan's own is that of the study."""
    if template.name == OWN:
        return prompt
    system = f"system {template.system} " if template.system else ""
    text = f"{system}user {template.template.replace('{question}', prompt.question)} model"
    ids = tuple(TOKENIZER.encode(text).ids)
    return replace(prompt, prompt_ids=ids, prompt_tokens=len(ids))


def write_template(
    plan: Plan, paths: StudyPaths, template: AskedTemplate, prompts: list[Prompt]
) -> None:
    """Write the base's answers under one template, in the batch plan's order."""
    target = paths.template_answers(template.name)
    protocol = template_protocol(plan, paths, prompts)
    target.protocol.write_bytes(encode_pretty(protocol))
    file = RowFile(target.answers, "answer/1", digest(plan), target.name, paths.broken)
    order = sorted(range(len(prompts)), key=lambda i: (prompts[i].prompt_tokens, i))
    cell = Cell(f"templates/{template.name}")
    rows = [answer(plan, protocol, cell, prompts[i], 0) for i in order]
    with RowWriter[Answer](file) as writer:
        for at in range(0, len(rows), protocol.batch_size):
            writer.append(rows[at : at + protocol.batch_size])
        writer.seal()


def template_protocol(plan: Plan, paths: StudyPaths, prompts: list[Prompt]) -> Protocol:
    """Return the base's protocol, but for its prompts: some of the split's questions."""
    base = protocol_for(plan, paths, prompts, BASE)
    greedy = {**base.generation, "do_sample": False, "temperature": 1.0, "top_p": 1.0}
    return replace(
        base, generation=greedy, samples=1, cells_per_batch=1, companions=(), limit=len(prompts),
    )  # fmt: skip
