"""Replays of the synthetic study as another machine would leave them, flips counted by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace as with_fields
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ahalab.plan.cells import BASE, training_cells
from ahalab.plan.load import load_plan
from ahalab.records.answer import Answer, Protocol
from ahalab.records.base import decode_file, digest, encode_pretty
from ahalab.records.plan import Plan
from ahalab.records.prompt import Prompt
from ahalab.scoring.answers import score_answer
from ahalab.store.layout import AnswerPaths, StudyPaths
from ahalab.store.reading import read_rows
from ahalab.store.rows import RowFile, RowWriter
from ahalab.tasks.places import answer_paths
from ahalab.tasks.prepare import read_prompts
from ahalab.tasks.questions import asked_of
from study_builder import END, TOKENIZER, VERSIONS, Written, finish

ELSEWHERE = {**VERSIONS, "torch": "another"}
RIGHT, STATED, WRONG = "#### {gold}", "The answer is {gold}.", "I say so.\n#### {gold}9"
Rewrite = Callable[[Answer], str | None]  # the text that the other machine wrote; None: the same


def replay_elsewhere(root: Path, rewrite: dict[str, Rewrite], **protocol: Any) -> None:
    """Write every replay again as made on another machine; analyse, report and seal.

    Args:
        root: A whole study, changed in place.
        rewrite: By cell, what becomes of its answers.
        protocol: Fields of the replays' protocols; other versions by default.
    """
    paths = StudyPaths(root)
    plan = load_plan(paths.plan)
    prompts = {prompt.prompt_id: prompt for prompt in read_prompts(paths, "eval")}
    for cell in (BASE, *training_cells(plan)):
        target = answer_paths(paths, cell, "replay/")
        made = read_protocol(target)
        again = replace(made, **(protocol or {"versions": ELSEWHERE}))
        rows = []
        for _, row in read_rows(answer_paths(paths, cell).answers, Answer):
            text = rewrite.get(cell.name, lambda _: None)(row)
            told = replace(row, protocol=digest(again))
            if text is not None:
                told = rewritten(plan, told, prompts[row.prompt_id], text)
            rows.append(told)
        put_rows(plan, paths, target, rows, again)
    finish(plan, paths)


def read_protocol(target: AnswerPaths) -> Protocol:
    return decode_file(target.protocol.read_bytes(), Protocol, str(target.protocol))


def put_rows(
    plan: Plan, paths: StudyPaths, target: AnswerPaths, rows: list[Answer], protocol: Protocol
) -> None:
    """Write an answer set in place of the one that is there."""
    for old in target.answers.parent.glob(f"{target.answers.stem}.*jsonl*"):
        old.unlink()
    target.protocol.write_bytes(encode_pretty(protocol))
    file = RowFile(target.answers, "answer/1", digest(plan), target.name, paths.broken)
    with RowWriter[Answer](file) as writer:
        for at in range(0, len(rows), protocol.batch_size):
            writer.append(rows[at : at + protocol.batch_size])
        writer.seal()


def rewritten(plan: Plan, row: Answer, prompt: Prompt, text: str) -> Answer:
    """Return a row with another completion, scored by the real scorer."""
    text = text.format(gold=prompt.gold)
    written = Written(text, (*TOKENIZER.encode(text).ids, END), "eos")
    asked = with_fields(asked_of(plan.task, plan.answer_format), prompt=prompt.question)
    score = score_answer(written.text, prompt.gold, written.finish, asked)
    return replace(
        row, completion=written.text, completion_ids=written.ids, finish=written.finish,
        extracted=score.lenient.extracted, rule=score.lenient.rule, status=score.lenient.status,
        strict=score.strict.outcome, lenient=score.lenient.outcome,
    )  # fmt: skip


def first_with(strict: str, lenient: str, text: str, skip: int = 0) -> Rewrite:
    """Rewrite one answer: the first with these outcomes, after so many others of them."""
    left = skip

    def rewrite(row: Answer) -> str | None:
        nonlocal left
        if (row.strict, row.lenient) != (strict, lenient):
            return None
        left -= 1
        return text if left == -1 else None

    return rewrite


def each_of(*rewrites: Rewrite) -> Rewrite:
    """Apply all of these; no two may rewrite one answer."""

    def rewrite(row: Answer) -> str | None:
        found = [text for one in rewrites if (text := one(row)) is not None]
        assert len(found) <= 1
        return found[0] if found else None

    return rewrite
