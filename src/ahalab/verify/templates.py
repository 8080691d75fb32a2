"""The base under several templates: the set is the plan's, its prompts and answers are sound."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from ahalab.plan.cells import Cell
from ahalab.plan.endpoint import backend_name
from ahalab.plan.templates import NAME, OWN, SET_VERSION, asked_templates, greedy_plan
from ahalab.records.answer import Answer, Protocol
from ahalab.records.base import to_plain
from ahalab.records.plan import Plan
from ahalab.records.prompt import Prompt
from ahalab.records.templates import AskedTemplate, TemplateComparison, TemplateSet
from ahalab.tasks.questions import scoring_task
from ahalab.tasks.templates import draw_for_templates, template_split
from ahalab.verify.answers import AnswerSet, Rows, check_rows
from ahalab.verify.journals import JournalFacts
from ahalab.verify.prompts import prompts_digest
from ahalab.verify.protocols import OWN_CHECK, device_of, generation_of
from ahalab.verify.reading import Study, differences
from ahalab.verify.template_verdicts import check_template_comparison

FILE = "templates/templates.json"
# What templates share with the base's protocol, whenever and on whichever machine each was made.
SHARED = ("base_digest", "tokenizer_digest", "template_digest", "batch_size")


def check_templates(
    study: Study, journals: Mapping[str, JournalFacts]
) -> TemplateComparison | None:
    """Check what lies under templates/, and its comparison; return that when it could be read."""
    plan, paths = study.plan, study.paths
    asked = study.record(paths.template_set, TemplateSet)
    if plan is None or asked is None:
        there = paths.template_set.parent.is_dir() or paths.template_comparison.is_file()
        if there and not paths.template_set.exists():
            study.ledger["arms.all"].fail(FILE, None, "which templates were tried", "none")
        return None
    if not _named_well(study, asked):
        return None
    _check_asked(study, plan, asked)
    chosen = _chosen(study, plan, asked)
    greedy = replace(plan, evaluation=replace(plan.evaluation, samples=1))
    sets: dict[str, AnswerSet] = {}
    measure: Protocol | None = None
    for template in asked.templates:
        prompts = _check_prompts(study, template, chosen)
        protocol = study.record(paths.template_answers(template.name).protocol, Protocol)
        if not _there(study, template, protocol) or protocol is None:
            continue
        _check_protocol(study, (template.name, greedy, asked), protocol, prompts)
        measure = measure or protocol
        _check_same(study, template.name, protocol, measure)
        answers = paths.template_answers(template.name)
        name, path = study.stored_name(answers.answers), answers.answers
        cell = Cell(f"templates/{template.name}")
        rows = Rows(cell, name, greedy, prompts, protocol, list(study.rows(path, Answer)))
        facts = journals.get(study.relative(path))
        sets[template.name] = check_rows(study, rows, answers.name, facts)
    _check_no_other(study, asked)
    return check_template_comparison(study, plan, asked, chosen, sets)


def _named_well(study: Study, asked: TemplateSet) -> bool:
    """Say whether the names are folders here, each once, the plan's own first."""
    names = [template.name for template in asked.templates]
    sound = names[:1] == [OWN] and len(set(names)) == len(names)
    if sound and all(NAME.fullmatch(name) for name in names):
        return True
    what = f"`{OWN}` first, and names of folders, each once"
    study.ledger["plan.match"].fail(FILE, None, what, ", ".join(names))
    return False


def _check_asked(study: Study, plan: Plan, asked: TemplateSet) -> None:
    """Compare the set with the plan's, or with the built-in one of this version."""
    study.match_plan(study.paths.template_set, asked.plan_digest)
    tally, split = study.ledger["plan.match"], template_split(plan)
    built_in = plan.evaluation.templates is UNSET
    tally.expect(FILE, None, "source", "built-in" if built_in else "plan", asked.source)
    tally.expect(FILE, None, "split", split, asked.split)
    offered = len(study.prompts(split))
    study.ledger["cover"].expect(FILE, None, "available", offered, asked.available)
    if not 1 <= asked.questions <= offered:
        study.ledger["cover"].fail(FILE, None, f"1 to {offered} questions", asked.questions)
    if built_in and asked.version != SET_VERSION:
        tally.not_checked(
            f"{FILE}: the built-in set of version {asked.version}, here is {SET_VERSION}"
        )
        return
    tally.expect(FILE, None, "version", SET_VERSION, asked.version)
    every = asked_templates(plan)
    may_lack = {t.name for t in every if built_in and t.system is not None and t.name != OWN}
    for name in asked.left_out:
        if name not in may_lack:
            tally.fail(FILE, None, "only built-in templates with a system message left out", name)
    expected = [t for t in every if t.name not in asked.left_out]
    for what, ours, theirs in differences(
        [to_plain(t) for t in expected], [to_plain(t) for t in asked.templates], 0.0, "templates"
    ):
        tally.fail(FILE, None, f"{what}: {ours}", theirs)
    tally.passed()


def _chosen(study: Study, plan: Plan, asked: TemplateSet) -> list[Prompt]:
    """Return the prompts whose questions are drawn; none when the set asks for too many."""
    offered = [prompt for _, prompt in study.prompts(template_split(plan))]
    if not 1 <= asked.questions <= len(offered):
        return []
    return draw_for_templates(offered, asked.questions, plan.evaluation.seed)


def _check_prompts(study: Study, template: AskedTemplate, chosen: list[Prompt]) -> list[Prompt]:
    """Compare a template's prompts with the questions drawn, and with what it makes of them."""
    path, ledger = study.paths.template_prompts(template.name), study.ledger
    name = study.stored_name(path)
    if not study.present(path):
        ledger["arms.all"].incomplete(f"{name}: no prompts yet")
        return []
    rows = list(study.rows(path, Prompt))
    ledger["cover"].expect(name, None, "prompts", len(chosen), len(rows))
    for (line, row), drawn in zip(rows, chosen, strict=False):
        expected = drawn
        if template.name != OWN:
            expected = replace(drawn, prompt_ids=row.prompt_ids, prompt_tokens=len(row.prompt_ids))
        wrong = list(differences(to_plain(expected), to_plain(row), 0.0))
        for what, ours, theirs in wrong:
            check = "tokens" if what == "prompt_tokens" else "prompt.hash"
            ledger[check].fail(name, line, f"{what}: {ours}", theirs)
        if not wrong and template.name != OWN:
            _check_text(study, (name, line), template, row)
    return [row for _, row in rows]


def _check_text(study: Study, place: tuple[str, int], template: AskedTemplate, row: Prompt) -> None:
    """Look for the template's own text in the token ids, where the tokenizer is at hand."""
    if study.decoder is None:  # told once, by `tokens.text`
        return
    file, line = place
    user = template.template.replace("{question}", row.question)
    for what, text in (("system", template.system or ""), ("user", user)):
        held = study.decoder.holds(row.prompt_ids, text)
        study.ledger["prompt.hash"].expect(file, line, f"{what} message in the ids", True, held)


def _there(study: Study, template: AskedTemplate, protocol: Protocol | None) -> bool:
    """Say whether a template has answers to check."""
    answers, tally = study.paths.template_answers(template.name), study.ledger["arms.all"]
    if not study.present(answers.answers):
        tally.incomplete(f"{study.relative(answers.answers)}: not answered yet")
        return False
    if protocol is None and not answers.protocol.exists():
        name = study.relative(answers.protocol)
        tally.fail(name, None, "the protocol of the answers", "none")
    tally.passed()
    return protocol is not None


def _check_protocol(
    study: Study,
    asked_by: tuple[str, Plan, TemplateSet],
    protocol: Protocol,
    prompts: list[Prompt],
) -> None:
    """Compare with what the plan fixes, greedy and one answer a question, and with the base's."""
    template, plan, asked = asked_by
    path = study.paths.template_answers(template).protocol
    name, ledger = study.relative(path), study.ledger
    study.match_plan(path, protocol.plan_digest)
    expected: dict[str, Any] = {
        "answer_format": plan.answer_format,
        "task": scoring_task(plan.task),
        "dtype": plan.model.dtype,
        "backend": backend_name(plan),
        "device": device_of(plan),
        "cells_per_batch": 1,
        "companions": (),
        "adapter_digest": None,
        "limit": None if asked.questions == asked.available else asked.questions,
        "seed": plan.evaluation.seed,
        "samples": 1,
    }
    generation = generation_of(greedy_plan(plan))
    if plan.evaluation.batch_size is not None:
        expected["batch_size"] = plan.evaluation.batch_size
    for key, value in expected.items():
        check = ledger[OWN_CHECK.get(key, "protocol")]
        check.expect(name, None, key, value, getattr(protocol, key))
    for key, value in generation.items():
        found = protocol.generation.get(key)
        ledger["protocol"].expect(name, None, f"generation.{key}", value, found)
    digest = prompts_digest(prompts)
    ledger["prompt.hash"].expect(name, None, "prompts_digest", digest, protocol.prompts_digest)
    base = study.record(study.paths.base_answers().protocol, Protocol)
    for key in SHARED if base is not None else ():
        what = f"{key} as in the base's protocol"
        check = ledger[OWN_CHECK.get(key, "protocol")]
        check.expect(name, None, what, getattr(base, key), getattr(protocol, key))


def _check_same(study: Study, template: str, protocol: Protocol, measure: Protocol) -> None:
    """Compare with the first template's: only the prompts may differ."""
    name = study.relative(study.paths.template_answers(template).protocol)
    expected = replace(measure, prompts_digest=protocol.prompts_digest)
    wrong = list(differences(to_plain(expected), to_plain(protocol), 0.0))
    for field, ours, theirs in wrong:
        check = study.ledger[OWN_CHECK.get(field, "protocol")]
        check.fail(name, None, f"{field} as under the other templates: {ours}", theirs)
    study.ledger["protocol"].passed(0 if wrong else 1)


def _check_no_other(study: Study, asked: TemplateSet) -> None:
    """Refuse answers under a template that the set does not name."""
    known = {template.name for template in asked.templates}
    folder = study.paths.template_set.parent
    for path in sorted(folder.iterdir()):
        if path.is_dir() and path.name not in known:
            what = "only the templates of the set"
            study.ledger["arms.all"].fail(study.relative(path), None, what, path.name)
