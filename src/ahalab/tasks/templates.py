"""Puts the same questions under every template of a set; a training-free choice of questions."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from msgspec import UNSET
from msgspec.structs import replace

from ahalab.errors import InputError, RecordError
from ahalab.plain_files import read_plain
from ahalab.plan.templates import NAME, SET_VERSION, asked_templates, template_arguments
from ahalab.records.base import decode_file, digest, encode_pretty
from ahalab.records.plan import Plan
from ahalab.records.prompt import Prompt
from ahalab.records.templates import AskedTemplate, TemplateSet
from ahalab.records.terms import Split
from ahalab.store.durable import replace_file
from ahalab.store.layout import StudyPaths
from ahalab.store.lock import WriterLock
from ahalab.store.reading import read_rows
from ahalab.store.rows import RowFile, finished, write_rows
from ahalab.tasks.chat_template import TemplateRefusedError
from ahalab.tasks.prepare import read_prompts
from ahalab.tasks.render import render

QUESTIONS = 100  # unless more or fewer are asked for


def template_split(plan: Plan) -> Split:
    """Return where the questions come from: a plan's validation, else its training.

    Never the evaluation: whoever takes the best template would have chosen it on the test
    questions. The base was not trained on any of them by us.
    """
    return "train" if plan.validation is UNSET else "validation"


def draw_for_templates(prompts: Sequence[Prompt], count: int, seed: int) -> list[Prompt]:
    """Return `count` prompts drawn by seed, in their order."""
    chosen = random.Random(f"{seed}|templates").sample(range(len(prompts)), count)  # noqa: S311
    return [prompts[at] for at in sorted(chosen)]


def template_file(plan: Plan, paths: StudyPaths, name: str) -> RowFile:
    """Return the row file of one template's prompts."""
    path = paths.template_prompts(name)
    return RowFile(path, "prompt/1", digest(plan), f"templates/{name}/prompts", paths.broken)


def prepare_templates(
    plan: Plan, paths: StudyPaths, tokenizer: object, limit: int | None
) -> tuple[TemplateSet, dict[str, list[Prompt]]]:
    """Fix the set, render its prompts and write both; a later call reads what stands there.

    Args:
        plan: The plan; its prompts are written.
        paths: The study.
        tokenizer: Of the base, from `load_tokenizer`.
        limit: Questions; None: as many as before, or `QUESTIONS`.

    Returns:
        The set, and the prompts by the template's name.

    Raises:
        InputError: More questions are asked for than there are, another number than before, or the
            chat template refuses a template of the plan.
    """
    offered = read_prompts(paths, template_split(plan))
    with WriterLock(paths.lock("templates")):
        count = _questions(paths, len(offered), limit)
        chosen = draw_for_templates(offered, count, plan.evaluation.seed)
        prompts: dict[str, list[Prompt]] = {}
        left_out = []
        for template in asked_templates(plan):
            rendered = _rendered(plan, tokenizer, template, chosen)
            if rendered is None:
                left_out.append(template.name)
            else:
                prompts[template.name] = rendered
        asked = TemplateSet(
            plan_digest=digest(plan),
            source="built-in" if plan.evaluation.templates is UNSET else "plan",
            version=SET_VERSION,
            split=template_split(plan),
            questions=count,
            available=len(offered),
            templates=tuple(t for t in asked_templates(plan) if t.name in prompts),
            left_out=tuple(left_out),
        )
        _write(plan, paths, asked, prompts)
    return asked, prompts


def read_template_set(paths: StudyPaths) -> TemplateSet | None:
    """Return the set that a study's base is tried under; None before there is one.

    Raises:
        RecordError: It is malformed, or names a template as no plan may: a name becomes a folder,
            and whoever wrote the record chose it.
    """
    path = paths.template_set
    if not path.is_file():
        return None
    found = decode_file(read_plain(path), TemplateSet, str(path))
    for template in found.templates:
        if not NAME.fullmatch(template.name):
            raise RecordError(
                f"{path}: expected names of 1 to 32 characters a-z 0-9 _ -, found "
                f"{template.name[:80]!r}. Restore the file."
            )
    return found


def _questions(paths: StudyPaths, available: int, limit: int | None) -> int:
    before = read_template_set(paths)
    if before is not None and limit in (None, before.questions):
        return before.questions
    if before is not None:
        raise InputError(
            f"--limit: expected {before.questions}, the questions that {paths.template_set.parent} "
            f"was begun with, found {limit}. Leave it out, or remove that folder to begin again."
        )
    if limit is None:
        return min(QUESTIONS, available)
    if not 0 < limit <= available:
        raise InputError(
            f"--limit: expected 1 to {available}, the questions that templates may be tried on, "
            f"found {limit}."
        )
    return limit


def _rendered(
    plan: Plan, tokenizer: object, template: AskedTemplate, prompts: Sequence[Prompt]
) -> list[Prompt] | None:
    """Return the prompts under a template; None for a built-in one that the model refuses."""
    task = replace(plan.task, template=template.template, system=template.system)
    try:
        asked = [prompt.question for prompt in prompts]
        ids = render(tokenizer, task, asked, template_arguments(plan))
    except TemplateRefusedError as error:  # some chat templates take no system message
        if plan.evaluation.templates is UNSET and template.system is not None:
            return None
        raise InputError(
            f"template {template.name}: expected messages that the model's chat template takes, "
            f"found: {error.reason}. Drop its system message."
        ) from error
    return [
        replace(prompt, prompt_ids=own, prompt_tokens=len(own))
        for prompt, own in zip(prompts, ids, strict=True)
    ]


def _write(
    plan: Plan, paths: StudyPaths, asked: TemplateSet, prompts: dict[str, list[Prompt]]
) -> None:
    """Write the set first, then its prompts; refuse to go on with others than stand there."""
    place = paths.template_set.parent
    before = read_template_set(paths)
    if before not in (None, asked):
        raise _begun_otherwise(paths.template_set, "the templates of this version")
    if before is None:
        replace_file(paths.template_set, encode_pretty(asked))
    for name, rows in prompts.items():
        file = template_file(plan, paths, name)
        if not finished(file):
            write_rows(file, rows)
        elif [row for _, row in read_rows(file.path, Prompt)] != rows:
            raise _begun_otherwise(file.path, "the prompts as they are rendered now")
    odd = sorted(p.name for p in place.iterdir() if p.is_dir() and p.name not in prompts)
    if odd:
        raise _begun_otherwise(place, "the folders of its templates", odd[0])


def _begun_otherwise(place: Path, expected: str, found: str = "others") -> InputError:
    return InputError(
        f"{place}: expected {expected}, found {found}. Remove the folder templates/ to try them "
        "again."
    )
