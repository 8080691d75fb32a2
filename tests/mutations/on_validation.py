# ruff: noqa: E501 (a table of mutations, a line each)
"""Tampering with the validation of a run, all digests mended: only what is recomputed tells."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ahalab.store.reading import journal_path
from mutations.kinds import ANY_LINE, RUN, Mutation, record, remove, row, rows, swap
from tampering import Row, chain, edit_row, read_lines

ROWS = f"{RUN}/validation.jsonl"
JOURNAL = f"{RUN}/validation.journal.jsonl"
PROMPTS = "prompts/validation.jsonl"
DIAGNOSTICS = f"{RUN}/diagnostics.json"


def another_step(rows_: list[Row]) -> None:
    for entry in rows_[5:]:
        entry["step"] = 3


def as_the_other_split(split: str) -> Any:
    def tamper(root: Path) -> None:
        known = json.loads(read_lines(root / f"prompts/{split}.jsonl")[0])["question"]
        edit_row(root / PROMPTS, 2, question=known)

    return tamper


def finish_the_first_cut(rows_: list[Row]) -> None:
    next(entry for entry in rows_ if entry["finish"] == "length")["finish"] = "eos"


def as_rollouts(root: Path) -> None:
    path = journal_path(root / ROWS)
    entries = [json.loads(line) for line in read_lines(path)]
    entries[0]["rows_schema"] = "rollout/1"
    chain(path, entries)


def all_right(points: list[Row]) -> list[Row]:
    return [{**point, "strict_fraction": 1.0} for point in points]


VALIDATION = [
    Mutation("a validation answer is doubled", rows(ROWS, lambda x: [*x, x[-1]]), "row.unique", ROWS, 11),
    Mutation("a validation answer is deleted", rows(ROWS, lambda x: x[:-1]), "cover", ROWS),
    Mutation("a checkpoint's validation is deleted", rows(ROWS, lambda x: x[:5]), "cover", ROWS),
    Mutation("a validation stands at a step without a checkpoint", rows(ROWS, another_step), "cover", ROWS, 6),
    Mutation("validation answers are reordered", rows(ROWS, swap), "cover", ROWS, 3),
    Mutation("a validation answer is to a question of the evaluation", row(ROWS, 2, prompt_id="00000-000000000000"), "cover", ROWS, 2),
    Mutation("the validation of a run is removed", remove(ROWS, JOURNAL), "arms.all", ROWS),
    Mutation("validation rows are called rollouts", as_rollouts, "chain.run", JOURNAL, 1),
    Mutation("a validation row has an unknown field", row(ROWS, 2, score=1), "schema.type", ROWS, 2),
    Mutation("a validation outcome is raised, strict", row(ROWS, 4, strict="correct"), "regrade", ROWS, 4),
    Mutation("a validation outcome is raised, lenient", row(ROWS, 4, lenient="correct"), "regrade", ROWS, 4),
    Mutation("an extracted answer of the validation is edited", row(ROWS, 2, extracted="77"), "extract", ROWS, 2),
    Mutation("a rule of the validation is edited", row(ROWS, 2, rule="guess"), "extract", ROWS, 2),
    Mutation("a status of the validation is edited", row(ROWS, 2, status="fine"), "grade.status", ROWS, 2),
    Mutation("a validation answer is edited", row(ROWS, 2, completion="I add the parts!\n#### 85"), "tokens.text", ROWS, 2),
    Mutation("a cut validation answer is called finished", rows(ROWS, finish_the_first_cut), "finish", ROWS, ANY_LINE),
    Mutation("ids of the validation go on after the end token", row(ROWS, 2, completion_ids=[1, 6, 1]), "finish", ROWS, 2),
    Mutation("a validation answer is longer than allowed", row(ROWS, 1, completion_ids=[9] * 49), "tokens", ROWS, 1),
    Mutation("the validation in the summary is raised", record(DIAGNOSTICS, "validation", to=all_right), "diagnostics", DIAGNOSTICS),
    Mutation("a gold answer of the validation is edited", row(PROMPTS, 3, gold="1"), "dataset.hash", PROMPTS, 3),
    Mutation("a validation question is edited", row(PROMPTS, 1, question="1 + 1 = ?"), "dataset.source", PROMPTS, 1),
    Mutation("a validation question is dropped from the prompts", rows(PROMPTS, lambda x: x[:-1]), "cover", PROMPTS),
    Mutation("a training question validates", as_the_other_split("train"), "split", PROMPTS, 2),
    Mutation("a question of the evaluation validates", as_the_other_split("eval"), "split", PROMPTS, 2),
    Mutation("a selection hides the validation", record("prompts/selection.json", "drawn", to=lambda d: {k: d[k] for k in ("train", "eval")}), "cover", "prompts/selection.json"),
]  # fmt: skip
