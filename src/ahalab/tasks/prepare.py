"""The first stage: from the plan's task to a row file of prompts for each split in `prompts/`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import UNSET

from ahalab.errors import InputError
from ahalab.plain_files import read_plain
from ahalab.plan.schedule import prompts_asked
from ahalab.plan.templates import template_arguments
from ahalab.records.base import decode_file, digest, encode_pretty
from ahalab.records.plan import Plan
from ahalab.records.prompt import Dropped, Overlap, Prompt, Selection
from ahalab.records.terms import Split
from ahalab.store.durable import replace_file
from ahalab.store.layout import StudyPaths
from ahalab.store.lock import WriterLock
from ahalab.store.reading import read_rows
from ahalab.store.rows import RowFile, finished, write_rows
from ahalab.tasks.chat_template import TemplateRefusedError
from ahalab.tasks.ngrams import measure_overlap
from ahalab.tasks.questions import (
    Question,
    check_golds,
    load_questions,
    question_origin,
    scoring_task,
)
from ahalab.tasks.render import load_tokenizer, render
from ahalab.tasks.selection import check_overlap, draw, prompt_id
from ahalab.tasks.validation import validation_questions


def prompt_file(plan: Plan, paths: StudyPaths, split: Split) -> RowFile:
    """Return the row file of a split's prompts."""
    return RowFile(paths.prompts(split), "prompt/1", digest(plan), f"prompts/{split}", paths.broken)


def prompts_ready(plan: Plan, paths: StudyPaths) -> bool:
    """Say whether every prompt set is complete."""
    done = [finished(prompt_file(plan, paths, split)) for split in prompts_asked(plan)]
    return all(done) and paths.prompt_report.is_file()


def select_questions(
    plan: Plan, pilot: StudyPaths | None = None
) -> tuple[dict[Split, list[Question]], dict[str, int]]:
    """Return the questions drawn for each split, and how many each split offers.

    A pilot's training prompts, where there is a pilot, take the place of the draw.

    Raises:
        InputError: A row is malformed, a gold can't be scored, or the splits overlap.
    """
    task, counts = plan.task, prompts_asked(plan)
    splits: tuple[Split, ...] = ("train", "eval")
    offered = {split: load_questions(task, split) for split in splits}
    drawn = {split: draw(offered[split], counts[split], task.seed, split) for split in splits}
    if pilot is not None:
        prompts = read_prompts(pilot, "train")
        drawn["train"] = [Question(p.question, p.gold, p.source) for p in prompts]
    if wanted := counts.get("validation"):
        offered["validation"] = validation_questions(task, wanted, drawn["train"])
        drawn["validation"] = draw(offered["validation"], wanted, task.seed, "validation")
    for questions in drawn.values():
        check_golds(questions, scoring_task(task))
    check_overlap(drawn["train"], drawn["eval"])
    validation = drawn.get("validation", [])
    check_overlap(drawn["train"], validation, ("training", "validation"))
    check_overlap(drawn["eval"], validation, ("evaluation", "validation"))
    return drawn, {split: len(questions) for split, questions in offered.items()}


@dataclass(frozen=True, slots=True)
class DrawnPrompts:
    """The prompts of a study before they are written."""

    prompts: dict[Split, list[Prompt]]
    selection: Selection


def draw_prompts(plan: Plan, model: Path, pilot: StudyPaths | None = None) -> DrawnPrompts:
    """Draw, check and render the prompts of a study; writes nothing.

    Raises:
        InputError: See `select_questions`; or every prompt is longer than the plan allows, or
            more evaluation questions share words with the training than it allows; or the model's
            chat template does not take the messages, or does not come to an end.
    """
    drawn, available = select_questions(plan, pilot)
    tokenizer = load_tokenizer(model)
    dropped: list[Dropped] = []
    limit = plan.task.max_prompt_tokens
    kept: dict[Split, list[Prompt]] = {}
    for split in drawn:
        prompts = []
        rendered = _rendered(tokenizer, plan, drawn[split], model)
        for position, (question, ids) in enumerate(zip(drawn[split], rendered, strict=True)):
            if limit is not None and len(ids) > limit:
                reason = f"{len(ids)} tokens, more than max_prompt_tokens={limit}"
                dropped.append(Dropped(split=split, source=question.source, reason=reason))
                continue
            prompts.append(_prompt(position, question, split, ids))
        if not prompts:
            raise InputError(
                f"task: every {split} prompt exceeds max_prompt_tokens={limit}. Raise it."
            )
        kept[split] = prompts
    overlap = measure_overlap(kept["train"], kept["eval"])
    _check_shared_words(plan, overlap)
    selection = Selection(
        plan_digest=digest(plan),
        available=available,
        drawn={split: len(questions) for split, questions in drawn.items()},
        dropped=tuple(dropped),
        origin=question_origin(plan.task),
        overlap=overlap,
    )
    return DrawnPrompts(kept, selection)


def _rendered(
    tokenizer: Any, plan: Plan, questions: list[Question], model: Path
) -> list[tuple[int, ...]]:
    try:
        asked = [question.question for question in questions]
        return render(tokenizer, plan.task, asked, template_arguments(plan))
    except TemplateRefusedError as error:
        raise InputError(
            f"{model}: expected a chat template that takes the task's messages, found: "
            f"{error.reason}. Use an instruction model; drop task.system if "
            "its template takes no system message."
        ) from error


def _check_shared_words(plan: Plan, overlap: Overlap) -> None:
    """Refuse what the plan refuses: a share of evaluation questions above its limit."""
    limit = plan.task.max_overlap_fraction
    if limit is UNSET or overlap.sharing <= limit * max(1, overlap.questions):
        return
    example = overlap.examples[0]
    raise InputError(
        f"task.max_overlap_fraction: expected at most {limit} of {overlap.questions} evaluation "
        f"questions to share {overlap.words} words in a row with a training question, found "
        f"{overlap.sharing}, such as {example.words[:80]!r} ({example.prompt_id}). Remove them "
        "from one of the two sets, or raise the limit."
    )


def prepare_prompts(
    plan: Plan, paths: StudyPaths, model: Path, pilot: StudyPaths | None = None
) -> None:
    """Draw, check, render and write the prompts of a study. Does nothing when they are there.

    Raises:
        InputError: See `draw_prompts`.
    """
    if prompts_ready(plan, paths):
        return
    drawn = draw_prompts(plan, model, pilot)
    with WriterLock(paths.lock("prompts")):
        for split in drawn.prompts:
            file = prompt_file(plan, paths, split)
            if not finished(file):
                write_rows(file, drawn.prompts[split])
        replace_file(paths.prompt_report, encode_pretty(drawn.selection))


def present_prompts(
    plan: Plan, paths: StudyPaths, model: Path, pilot: StudyPaths | None = None
) -> DrawnPrompts:
    """Return the prompts that lie in the study, or those that it would begin with.

    Raises:
        InputError: See `draw_prompts`.
        RecordError: A record is malformed.
    """
    if not prompts_ready(plan, paths):
        return draw_prompts(plan, model, pilot)
    report = paths.prompt_report
    selection = decode_file(read_plain(report), Selection, str(report))
    return DrawnPrompts({s: read_prompts(paths, s) for s in prompts_asked(plan)}, selection)


def _prompt(position: int, question: Question, split: Split, ids: tuple[int, ...]) -> Prompt:
    return Prompt(
        prompt_id=prompt_id(position, question),
        question=question.question,
        gold=question.gold,
        source=question.source,
        split=split,
        prompt_ids=ids,
        prompt_tokens=len(ids),
    )


def read_prompts(paths: StudyPaths, split: Split) -> list[Prompt]:
    """Return the prompts of a split, in order.

    Raises:
        InputError: They are not there yet.
        RecordError: A row is malformed, with `file:line`.
    """
    return [prompt for _, prompt in read_rows(paths.prompts(split), Prompt)]
