"""The end of a run: its adapter, its summary, and the run's own record, written last."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime

from ahalab.errors import InputError
from ahalab.plan.schedule import checkpoint_count, checkpoint_steps, expected_rollouts
from ahalab.records.base import encode_pretty
from ahalab.records.plan import Plan
from ahalab.records.run import Attempt, RunRecord
from ahalab.records.validation import ValidationAnswer
from ahalab.scoring.answers import SCORER_VERSION
from ahalab.scoring.training_parser import TRAINING_PARSER_VERSION
from ahalab.statistics.diagnostics import diagnose
from ahalab.store.adapters import adapter_effect_norm
from ahalab.store.durable import replace_file
from ahalab.store.fingerprint import adapter_fingerprint, tokenizer_fingerprint
from ahalab.store.journal import read_journal
from ahalab.store.layout import RunPaths, StudyPaths
from ahalab.store.reading import journal_path, read_rows
from ahalab.store.versions import git_commit, versions
from ahalab.tasks.prepare import read_prompts
from ahalab.tasks.render import template_fingerprint
from ahalab.train.adapter import save_adapter
from ahalab.train.checkpoints import folder_of
from ahalab.train.pilot import Pilot
from ahalab.train.session import Session
from ahalab.train.trl_compat import effective_config, effective_lora, lora_config


def finish(session: Session, pilot: Pilot | None) -> RunRecord:
    """Save the adapter, summarise, and write the run's record, last.

    Raises:
        InputError: The rows are not those that the trainer made, or not in the pilot's order.
    """
    plan, run, arm = session.plan, session.run, session.arm
    save_adapter(folder_of(session.checkpoints, session.steps_planned), run.adapter, plan)
    attempts = _attempts(run)
    steps, rollouts = session.reconciled(session.steps_planned)
    validation = _validation_rows(plan, session.paths, run)
    if pilot is not None:
        pilot.require_same_order(rollouts, run.rollouts)
    norm = adapter_effect_norm(run.adapter)
    diagnostics = diagnose(arm.name, session.seed, steps, rollouts, norm, validation)
    replace_file(run.diagnostics, encode_pretty(diagnostics))
    record = RunRecord(
        plan_digest=session.plan_digest,
        arm=arm.name,
        control=arm.name == plan.control,
        components=dict(arm.components),
        rewards={name: plan.rewards[name] for name in arm.own},
        seed=session.seed,
        like=pilot.name if pilot else None,
        requested_grpo=plan.grpo,
        effective_grpo=effective_config(session.config),
        lean_step=session.lean_step,
        effective_lora=effective_lora(lora_config(plan)),
        model_id=plan.model.id,
        model_revision=plan.model.revision,
        base_digest=session.base_digest,
        tokenizer_digest=tokenizer_fingerprint(session.model),
        template_digest=template_fingerprint(session.tokenizer),
        scorer_version=SCORER_VERSION,
        training_parser_version=TRAINING_PARSER_VERSION,
        versions=versions(),
        device=plan.model.device,
        dtype=plan.model.dtype,
        threads=plan.model.threads,
        git_commit=git_commit(),
        started_utc=attempts[0].started_utc,
        finished_utc=datetime.now(UTC).isoformat(timespec="seconds"),
        attempts=attempts,
        steps_done=len(steps),
        rollouts_written=len(rollouts),
        rollouts_expected=expected_rollouts(plan),
        adapter_digest=adapter_fingerprint(run.adapter),
        alarms=diagnostics.alarms,
    )
    replace_file(run.record, encode_pretty(record))
    shutil.rmtree(session.checkpoints, ignore_errors=True)
    return record


def _attempts(run: RunPaths) -> tuple[Attempt, ...]:
    journal = read_journal(journal_path(run.steps))
    return tuple(
        Attempt(number=line.number, started_utc=line.utc, steps_found=line.rows)
        for line in journal.attempts
    )


def _validation_rows(plan: Plan, paths: StudyPaths, run: RunPaths) -> list[ValidationAnswer]:
    """Return the validation answers, after checking that each is there once.

    Raises:
        InputError: One is missing or doubled.
    """
    if not plan.validation:
        return []
    rows = [row for _, row in read_rows(run.validation, ValidationAnswer)]
    prompts = read_prompts(paths, "validation")
    expected = {(s, p.prompt_id) for s in checkpoint_steps(plan) for p in prompts}
    if not len(rows) == len(expected) or {(r.step, r.prompt_id) for r in rows} != expected:
        raise InputError(
            f"{run.validation}: expected an answer to each of {len(prompts)} prompts at "
            f"{checkpoint_count(plan)} checkpoints, found {len(rows)} rows."
        )
    return rows
