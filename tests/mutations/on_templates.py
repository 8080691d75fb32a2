# ruff: noqa: E501 (a table of mutations, a line each)
"""Tampering with the base under templates, all digests mended: only what is recomputed tells."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from mutations.kinds import Mutation, half, record, remove, row, rows, swap
from tampering import Row

SET = "templates/templates.json"
FORMAT = "templates/format"
ROWS = f"{FORMAT}/answers.jsonl"  # line 2 is correct: `#### 268`; line 3 states its answer
PROMPTS = f"{FORMAT}/prompts.jsonl"
OWN = "templates/plan/prompts.jsonl"
PROTOCOL = f"{FORMAT}/answers.protocol.json"
FOUND = "analysis/templates.json"
CLAIMS = "claims.json"


def another_folder(root: Path) -> None:
    shutil.copytree(root / "templates/steps", root / "templates/other")


def without_system(templates: list[Row]) -> list[Row]:
    return [{**one, "system": "Be brief."} if one["name"] == "steps" else one for one in templates]


def of_strict(field: str, to: Any, at: int | None = None) -> Any:
    """Set a field of the range of strict accuracy."""
    place = (field,) if at is None else (field, at)
    return record(FOUND, "ranges", 0, *place, to=to)


def of_plan(field: str, to: Any) -> Any:
    """Set a field of what the plan's own template came to."""
    return record(FOUND, "templates", 0, field, to=to)


def claim(name: str, value: Any) -> Any:
    def edit(claims: list[Row]) -> list[Row]:
        assert any(one["id"] == name for one in claims)
        return [{**one, "value": value} if one["id"] == name else one for one in claims]

    return record(CLAIMS, "claims", to=edit)


def shuffled(sentence: str) -> str:
    return sentence.replace("no evidence that the protocol", "The protocol", 1)


TEMPLATES = [
    # What was tried.
    Mutation("which templates were tried is removed", remove(SET), "arms.all", SET),
    Mutation("the templates are of another plan", record(SET, "plan_digest", to="sha256:0"), "plan.match", SET),
    Mutation("the templates are called the plan's list", record(SET, "source", to="plan"), "plan.match", SET),
    Mutation("the templates' questions are called training", record(SET, "split", to="train"), "plan.match", SET),
    Mutation("the templates' questions are fewer than drawn", record(SET, "questions", to=3), "cover", PROMPTS),
    Mutation("the templates' questions are more than offered", record(SET, "questions", to=9), "cover", SET),
    Mutation("the templates were drawn from more", record(SET, "available", to=99), "cover", SET),
    Mutation("a template is edited in the set", record(SET, "templates", 2, "template", to="{question}"), "plan.match", SET),
    Mutation("a system message is added in the set", record(SET, "templates", to=without_system), "plan.match", SET),
    Mutation("a template is renamed in the set", record(SET, "templates", 2, "name", to="other"), "plan.match", SET),
    Mutation("a template is left out that needs no system message", record(SET, "left_out", to=["system_question", "system_format", "steps"]), "plan.match", SET),
    Mutation("a template that did badly is dropped", record(SET, "templates", to=lambda t: t[:-1]), "plan.match", SET),
    Mutation("a template is named out of its folder", record(SET, "templates", 2, "name", to="/etc"), "plan.match", SET),
    Mutation("a template stands in the set twice", record(SET, "templates", to=lambda t: [*t, t[1]]), "plan.match", SET),
    Mutation("the plan's own template is dropped", record(SET, "templates", to=lambda t: t[1:]), "plan.match", SET),
    Mutation("answers of another template lie there", another_folder, "arms.all", "templates/other"),
    Mutation("the answers under a template are removed", remove(ROWS, f"{FORMAT}/answers.journal.jsonl"), "arms.all", ""),
    Mutation("the protocol of a template is removed", remove(PROTOCOL), "arms.all", PROTOCOL),
    # Its prompts.
    Mutation("a question of a template is edited", row(PROMPTS, 2, question="1 + 1 = ?"), "prompt.hash", PROMPTS, 2),
    Mutation("a gold of a template is edited", row(PROMPTS, 2, gold="9"), "prompt.hash", PROMPTS, 2),
    Mutation("ids of a template do not hold its text", row(PROMPTS, 2, prompt_ids=[89, 87], prompt_tokens=2), "prompt.hash", PROMPTS, 2),
    Mutation("the plan's own prompt is another", row(OWN, 2, prompt_ids=[76, 432, 432, 51, 44, 105]), "prompt.hash", OWN, 2),
    Mutation("tokens of a template's prompt are miscounted", row(PROMPTS, 2, prompt_tokens=7), "tokens", PROMPTS, 2),
    Mutation("a template's question is dropped", rows(PROMPTS, lambda x: x[:-1]), "cover", PROMPTS),
    # Its protocol.
    Mutation("a template was sampled", record(PROTOCOL, "generation", "do_sample", to=True), "protocol", PROTOCOL),
    Mutation("a template had more tokens", record(PROTOCOL, "generation", "max_new_tokens", to=64), "protocol", PROTOCOL),
    Mutation("a template had another penalty", record(PROTOCOL, "generation", "repetition_penalty", to=1.1), "protocol", PROTOCOL),
    Mutation("a template had another batch size", record(PROTOCOL, "batch_size", to=4), "protocol", PROTOCOL),
    Mutation("a template had several samples", record(PROTOCOL, "samples", to=2), "protocol", PROTOCOL),
    Mutation("a template was for all questions", record(PROTOCOL, "limit", to=None), "protocol", PROTOCOL),
    Mutation("a template had another seed", record(PROTOCOL, "seed", to=1), "protocol", PROTOCOL),
    Mutation("a template ran elsewhere", record(PROTOCOL, "device", to="cuda"), "protocol", PROTOCOL),
    Mutation("a template asked for another format", record(PROTOCOL, "answer_format", to="boxed"), "protocol", PROTOCOL),
    Mutation("a template's base is another", record(PROTOCOL, "base_digest", to="sha256:0"), "base.pin", PROTOCOL),
    Mutation("an adapter answered under a template", record(PROTOCOL, "adapter_digest", to="sha256:0"), "adapter.fp", PROTOCOL),
    Mutation("a template's chat template is another", record(PROTOCOL, "template_digest", to="sha256:0"), "prompt.hash", PROTOCOL),
    Mutation("a template's prompts are others", record(PROTOCOL, "prompts_digest", to="sha256:0"), "prompt.hash", PROTOCOL),
    Mutation("a template's plan is another", record(PROTOCOL, "plan_digest", to="sha256:0"), "plan.match", PROTOCOL),
    # Its answers.
    Mutation("an answer under a template is doubled", rows(ROWS, lambda x: [*x, x[-1]]), "row.unique", ROWS, 5),
    Mutation("an answer under a template is deleted", rows(ROWS, lambda x: x[:-1]), "cover", ROWS),
    Mutation("answers under a template are reordered", rows(ROWS, swap), "pair.key", ROWS, 3),
    Mutation("an outcome under a template is raised, strict", row(ROWS, 3, strict="correct"), "regrade", ROWS, 3),
    Mutation("an outcome under a template is raised, lenient", row(ROWS, 3, lenient="correct"), "regrade", ROWS, 3),
    Mutation("an extracted answer under a template is edited", row(ROWS, 2, extracted="77"), "extract", ROWS, 2),
    Mutation("an answer under a template is edited", row(ROWS, 2, completion="I add the parts!\n#### 268"), "tokens.text", ROWS, 2),
    Mutation("a finish under a template is edited", row(ROWS, 2, finish="length"), "finish", ROWS, 2),
    Mutation("an answer under a template is an adapter's", row(ROWS, 2, side="adapter"), "pair.key", ROWS, 2),
    # What was concluded.
    Mutation("the comparison of templates is of another plan", record(FOUND, "plan_digest", to="sha256:0"), "plan.match", FOUND),
    Mutation("the comparison of templates tells of another split", record(FOUND, "split", to="eval"), "stat.method", FOUND),
    Mutation("the comparison of templates has more questions", record(FOUND, "questions", to=400), "stat.n", FOUND),
    Mutation("the comparison of templates is surer", record(FOUND, "confidence", to=0.99), "stat.method", FOUND),
    Mutation("a template is dropped from the comparison", record(FOUND, "templates", to=lambda t: t[1:]), "stat.n", FOUND),
    Mutation("a template is renamed in the comparison", of_plan("name", "mine"), "stat.n", FOUND),
    Mutation("a template is edited in the comparison", of_plan("template", "{question}!"), "stat.method", FOUND),
    Mutation("a system message is edited in the comparison", of_plan("system", "Be brief."), "stat.method", FOUND),
    Mutation("a template has more questions", of_plan("n", 8), "stat.n", FOUND),
    Mutation("outcomes of a template are edited, strict", of_plan("strict", {"correct": 4}), "stat.recompute", FOUND),
    Mutation("outcomes of a template are edited, lenient", of_plan("lenient", {"correct": 4}), "stat.recompute", FOUND),
    Mutation("accuracy of a template is raised, strict", of_plan("strict_accuracy", 0.5), "stat.recompute", FOUND),
    Mutation("accuracy of a template is raised, lenient", of_plan("lenient_accuracy", 0.5), "stat.recompute", FOUND),
    Mutation("tokens of a template are halved", of_plan("mean_tokens", half), "stat.recompute", FOUND),
    Mutation("the range of a reading is dropped", record(FOUND, "ranges", to=lambda r: r[:1]), "outcome.missing", FOUND),
    Mutation("a range is called that of the other reading", of_strict("metric", "lenient"), "outcome.missing", FOUND),
    Mutation("the worst template is another", of_strict("worst", "steps"), "stat.recompute", FOUND),
    Mutation("the best template is another", of_strict("best", "steps"), "stat.recompute", FOUND),
    Mutation("accuracy of the worst is raised", of_strict("worst_accuracy", 0.2), "stat.recompute", FOUND),
    Mutation("accuracy of the best is lowered", of_strict("best_accuracy", 0.2), "stat.recompute", FOUND),
    Mutation("accuracy of the plan's own is raised", of_strict("own_accuracy", 0.2), "stat.recompute", FOUND),
    Mutation("the spread of templates is halved", of_strict("spread_points", half), "stat.recompute", FOUND),
    Mutation("the lead of the best is halved", of_strict("lead_points", half), "stat.recompute", FOUND),
    Mutation("the interval of the spread is narrowed", of_strict("spread_interval_points", 1.0, 0), "stat.recompute", FOUND),
    Mutation("the interval of the lead is narrowed", of_strict("lead_interval_points", 1.0, 0), "stat.recompute", FOUND),
    Mutation("the interval of the lead is taken away", of_strict("lead_interval_points", None), "stat.recompute", FOUND),
    Mutation("the plan's template is called the best", of_strict("verdict", "own is best"), "stat.recompute", FOUND),
    Mutation("a figure in the sentence on templates is edited", of_strict("sentence", lambda s: s.replace("25.0 points", "5.0 points")), "stat.sentence", FOUND),
    Mutation("the sentence on templates claims more", of_strict("sentence", shuffled), "stat.sentence", FOUND),
    Mutation("the sentence on templates names another", of_strict("sentence", lambda s: s.replace("(format)", "(steps)")), "stat.sentence", FOUND),
    Mutation("a claim on a template is edited", claim("template.format.strict_accuracy", 0.9), "claims", CLAIMS),
    Mutation("a claim on the spread is edited", claim("templates.strict.spread.interval_low_points", 3.0), "claims", CLAIMS),
]  # fmt: skip
