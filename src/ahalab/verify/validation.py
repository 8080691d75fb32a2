"""The validation answers of a run: every checkpoint and prompt once, in order, scored again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from ahalab.plan.schedule import checkpoint_count, checkpoint_steps, is_checkpoint
from ahalab.records.plan import Plan
from ahalab.records.prompt import Prompt
from ahalab.records.validation import ValidationAnswer
from ahalab.scoring.answers import SCORER_VERSION
from ahalab.verify.checks import LISTED
from ahalab.verify.completions import Placed, check_end, check_grade, count_version
from ahalab.verify.reading import Study
from ahalab.verify.rollouts import RunRows


def check_validation(
    study: Study, run: RunRows, end_ids: frozenset[int]
) -> list[ValidationAnswer] | None:
    """Check the validation of a run; return its rows, None when the plan asks for none."""
    path, tally = run.paths.validation, study.ledger["arms.all"]
    file, there = study.stored_name(path), study.present(path)
    if not run.plan.validation:
        if there:
            tally.fail(file, None, "no validation, as the plan asks for none", "some")
        return None
    if not there:
        if run.record is None:
            tally.incomplete(f"{file}: not validated yet")
        else:
            tally.fail(file, None, "the run's validation answers", "none")
        return []
    tally.passed()
    rows = list(study.rows(path, ValidationAnswer))
    prompts = [prompt for _, prompt in study.prompts("validation")]
    _check_cover(study, run, file, rows, prompts)
    _check_rows(study, run, file, rows, end_ids)
    return [row for _, row in rows]


def _check_cover(
    study: Study,
    run: RunRows,
    file: str,
    rows: list[tuple[int, ValidationAnswer]],
    prompts: list[Prompt],
) -> None:
    """Compare steps and prompts with the checkpoints and the order of the batches."""
    ledger = study.ledger
    order = sorted(prompts, key=lambda prompt: prompt.prompt_tokens)
    asked, seen, planned = {prompt.prompt_id for prompt in order}, set(), 0
    for line, row in rows:
        key = (row.step, row.prompt_id)
        wanted = row.prompt_id in asked and is_checkpoint(run.plan, row.step)
        if key in seen:
            ledger["row.unique"].fail(file, line, "each checkpoint and prompt once", key)
        elif not wanted:
            ledger["cover"].fail(file, line, "a checkpoint and a validation prompt", key)
        planned += wanted and key not in seen
        seen.add(key)
    ledger["row.unique"].passed(len(seen))
    ledger["cover"].passed(planned)
    if planned < checkpoint_count(run.plan) * len(asked):
        if run.record is not None:
            absent = (key for key in _planned(run.plan, order) if key not in seen)
            for step, prompt in islice(absent, LISTED):
                ledger["cover"].fail(file, None, f"an answer to {prompt} at step {step}", "none")
        else:
            ledger["cover"].incomplete(f"{file}: not every checkpoint is there yet")
    for expected, (line, row) in zip(_planned(run.plan, order), rows, strict=False):
        found = (row.step, row.prompt_id)
        if not ledger["cover"].expect(file, line, "step and prompt", expected, found):
            break  # everything after it is shifted


def _planned(plan: Plan, order: Sequence[Prompt]) -> Iterator[tuple[int, str]]:
    """Yield step and prompt of every answer, in order."""
    return ((step, p.prompt_id) for step in checkpoint_steps(plan) for p in order)


def _check_rows(
    study: Study,
    run: RunRows,
    file: str,
    rows: list[tuple[int, ValidationAnswer]],
    end_ids: frozenset[int],
) -> None:
    spec = run.plan.validation
    limit = (spec.max_new_tokens if spec else None) or run.plan.evaluation.max_new_tokens
    version = SCORER_VERSION if run.record is None else run.record.scorer_version
    prompts = {p.prompt_id: p for _, p in study.prompts("validation")}
    would_change = 0
    for line, row in rows:
        placed = Placed(file, line, f"step {row.step}, {row.prompt_id}", row)
        if end_ids:  # else told of the rollouts
            check_end(study.ledger, placed, end_ids, limit)
        study.check_text((file, line), row.completion_ids, row.completion)
        prompt = prompts.get(row.prompt_id)
        if prompt is not None:
            would_change += check_grade(study, placed, prompt, version)
    versions = (version, SCORER_VERSION)
    count_version(study, "validation answers", versions, would_change, len(rows))
