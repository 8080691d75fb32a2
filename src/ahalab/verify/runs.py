"""The grid of training runs: every cell there, trained as planned, labelled rightly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ahalab.plan.cells import Cell, pilot_of, training_cells
from ahalab.plan.schedule import expected_rollouts
from ahalab.records.plan import Plan
from ahalab.records.rollout import Rollout
from ahalab.records.run import Attempt, RunRecord
from ahalab.scoring.arms import ArmDefinition
from ahalab.scoring.own import own_names
from ahalab.tasks.places import run_paths
from ahalab.tasks.unplanned import unplanned
from ahalab.verify.adapters import check_adapter, check_shared_weights
from ahalab.verify.base import check_base
from ahalab.verify.checks import ABSENT, Tally
from ahalab.verify.journals import JournalFacts
from ahalab.verify.own import check_own, own_arm
from ahalab.verify.protocols import end_ids_of
from ahalab.verify.reading import Study
from ahalab.verify.rollouts import RunRows, check_rollouts, training_digest
from ahalab.verify.shares import Share
from ahalab.verify.steps import check_diagnostics, check_steps
from ahalab.verify.validation import check_validation

NAMES = (
    "plan.n", "reward.source", "reward.own", "arm.config", "arm.order", "adapter.config",
    "adapter.arm", "tensor.finite", "adapter.effect", "reward.sum", "advantage", "steps",
    "diagnostics", "attempts",
)  # fmt: skip
OWN_TO_A_RUN = ("seed", "data_seed")  # the only fields of the configuration that may differ
NOT_COMPARED = ("report_to",)  # TRL rewrites it, and it changes no number


@dataclass(frozen=True, slots=True)
class Trained:
    """What the comparison of runs needs of one whose rows were checked."""

    file: str  # of the rollouts, relative to the study
    seen: list[tuple[int, tuple[int, int, str]]]  # line; step, group and prompt, once a group
    digest: str  # of what made the gradient


def runs_to_check(study: Study, journals: Mapping[str, JournalFacts]) -> list[Share]:
    """Return every run that was begun, after saying which are not there."""
    shares = []
    for cell in training_cells(study.plan) if study.plan is not None else ():
        paths, tally = run_paths(study.paths, cell), study.ledger["arms.all"]
        there = study.present(paths.rollouts)
        if not paths.record.exists():
            tally.incomplete(f"{cell.name}: training is not finished")
        elif there:
            tally.passed()
        else:
            name = study.relative(paths.rollouts)
            tally.fail(name, None, "the run's completions", "none")
        if there:
            journal = journals.get(study.relative(paths.rollouts))
            shares.append(Share("run", cell, journal=journal))
    return shares


def check_run(study: Study, share: Share) -> Trained | None:
    """Check the rows and the summary of one run; needs nothing of the others."""
    plan, cell = study.plan, share.cell
    if plan is None:
        return None
    end_ids, arm = end_ids_of(study), own_arm(study, plan, cell.run[0])
    run = _open(study, plan, cell, arm)
    run.rows = list(study.rows(run.paths.rollouts, Rollout))
    check_rollouts(study, run, end_ids)
    validation = check_validation(study, run, end_ids)
    check_diagnostics(study, run, check_steps(study, run), validation or [])
    seen = [(n, (row.step, row.group, row.prompt_id)) for n, row in run.rows if row.sample == 0]
    return Trained(run.file, seen, training_digest(run))


def check_runs(
    study: Study, journals: Mapping[str, JournalFacts], trained: Mapping[Cell, Trained]
) -> None:
    """Check the grid of runs, and one run against another; `trained` by cell."""
    plan = study.plan
    if plan is not None:
        _check_grid(study, plan)
        arms = check_own(study, plan)
        orders: dict[int, tuple[str, list[tuple[int, int, str]]]] = {}
        weights: dict[str, tuple[str, str]] = {}
        first: RunRecord | None = None
        for cell, rows in trained.items():
            run = _open(study, plan, cell, arms[cell.run[0]])
            _check_order(study, run, rows, orders)
            if run.record is not None:
                first = first or run.record
                _check_record(study, run, run.record, journals)
                _check_config(study, run, run.record, first)
                check_adapter(study, run)
                check_shared_weights(study, run, rows.digest, weights)
        check_base(study, plan, first)
    study.ledger.close(NAMES)


def _open(study: Study, plan: Plan, cell: Cell, arm: ArmDefinition) -> RunRows:
    """Return a run without its rows."""
    paths = run_paths(study.paths, cell)
    return RunRows(
        cell=cell,
        paths=paths,
        file=study.stored_name(paths.rollouts),
        arm=arm,
        plan=plan,
        record=study.record(paths.record, RunRecord),
        prompts={p.prompt_id: p for _, p in study.prompts("train")},
    )


def _check_grid(study: Study, plan: Plan) -> None:
    """Refuse runs that the plan does not know."""
    planned = {cell.name for cell in training_cells(plan)}
    for under in ("", "replay/"):
        for folder in sorted((study.root / f"{under}arms").glob("*/*")):
            name = study.relative(folder).removeprefix(under)
            if name not in planned and folder.is_dir() and any(folder.iterdir()):
                study.ledger["arms.all"].fail(
                    study.relative(folder), None, "a run of the plan", "another one"
                )
    for name in unplanned(plan, study.paths):
        what = "only answers, runs and adapters that the plan has"
        study.ledger["arms.all"].fail(name, None, what, "another look")


def _check_record(
    study: Study, run: RunRows, record: RunRecord, journals: Mapping[str, JournalFacts]
) -> None:
    """Compare the run's record with the plan, with its place, and with the rows."""
    plan, ledger = run.plan, study.ledger
    name = study.relative(run.paths.record)
    study.match_plan(run.paths.record, record.plan_digest)
    ledger["plan.match"].expect(name, None, "seed", run.cell.seed, record.seed)
    pilot = pilot_of(plan, run.cell)
    ledger["plan.match"].expect(name, None, "like", pilot.name if pilot else None, record.like)
    ledger["adapter.arm"].expect(name, None, "arm", run.cell.arm, record.arm)
    ledger["adapter.arm"].expect(
        name, None, "components", dict(run.arm.components), record.components
    )
    rewards = {own: plan.rewards.get(own) for own in own_names(run.arm.components)}
    ledger["reward.source"].expect(name, None, "rewards", rewards, record.rewards)
    ledger["adapter.arm"].expect(
        name, None, "control", run.cell.arm == plan.control, record.control
    )
    expected = expected_rollouts(plan)
    for field, value, found in (
        ("steps_done", int(plan.grpo["max_steps"]), record.steps_done),
        ("rollouts_expected", expected, record.rollouts_expected),
        ("rollouts_written", expected, record.rollouts_written),
    ):
        ledger["plan.n"].expect(name, None, field, value, found)
    facts = journals.get(study.relative(run.paths.steps))
    if facts is not None:
        attempts = tuple(
            Attempt(number=a.number, started_utc=a.utc, steps_found=a.rows) for a in facts.attempts
        )
        ledger["attempts"].expect(name, None, "attempts of the journal", attempts, record.attempts)


def _check_config(study: Study, run: RunRows, record: RunRecord, first: RunRecord) -> None:
    """Compare configuration and surroundings with the plan and with the first run's."""
    plan, name, tally = run.plan, study.relative(run.paths.record), study.ledger["arm.config"]
    tally.expect(name, None, "requested_grpo", plan.grpo, record.requested_grpo)
    for key, value in plan.grpo.items():
        if key not in NOT_COMPARED:
            found = record.effective_grpo.get(key)
            _expect_value(tally, name, f"effective_grpo.{key}", value, found)
    for key in OWN_TO_A_RUN:
        tally.expect(
            name, None, f"effective_grpo.{key}", run.cell.seed, record.effective_grpo.get(key)
        )
    for key in sorted({*first.effective_grpo, *record.effective_grpo} - set(OWN_TO_A_RUN)):
        ours, theirs = (one.effective_grpo.get(key, ABSENT) for one in (first, record))
        tally.expect(name, None, f"effective_grpo.{key} as in the other runs", ours, theirs)
    tally.expect(
        name,
        None,
        "effective_lora as in the other runs",
        first.effective_lora,
        record.effective_lora,
    )
    for key, expected in (
        ("dtype", plan.model.dtype), ("device", plan.model.device), ("threads", plan.model.threads),
        ("versions", first.versions), ("scorer_version", first.scorer_version),
        ("training_parser_version", first.training_parser_version), ("lean_step", first.lean_step),
    ):  # fmt: skip
        tally.expect(name, None, key, expected, getattr(record, key))
    _check_model(study, run, record, first)


def _expect_value(tally: Tally, name: str, what: str, expected: object, found: object) -> None:
    """Compare a planned value with what TRL held; `0` and `0.0` are one value there."""
    if expected == found and isinstance(expected, bool) == isinstance(found, bool):
        tally.passed()
    else:
        tally.fail(name, None, f"{what}: {expected!r}", found)


def _check_model(study: Study, run: RunRows, record: RunRecord, first: RunRecord) -> None:
    """Compare the base with the plan's, and its files with those of the first run."""
    ledger, name, model = study.ledger, study.relative(run.paths.record), run.plan.model
    ledger["base.pin"].expect(name, None, "base_digest", first.base_digest, record.base_digest)
    ledger["base.pin"].expect(name, None, "model_id", model.id, record.model_id)
    ledger["base.pin"].expect(name, None, "model_revision", model.revision, record.model_revision)
    for key in ("tokenizer_digest", "template_digest"):
        ledger["prompt.hash"].expect(name, None, key, getattr(first, key), getattr(record, key))


def _check_order(
    study: Study,
    run: RunRows,
    trained: Trained,
    orders: dict[int, tuple[str, list[tuple[int, int, str]]]],
) -> None:
    """Compare the prompts a run saw with those of the first arm under the same seed."""
    if run.record is None:
        return
    seen = [place for _, place in trained.seen]
    _, seed = run.cell.run
    other, expected = orders.setdefault(seed, (run.cell.name, seen))
    tally = study.ledger["arm.order"]
    for at, (ours, (line, theirs)) in enumerate(zip(expected, trained.seen, strict=False)):
        if ours != theirs:
            tally.fail(run.file, line, f"group {at} as in {other}: {ours[2]}", theirs[2])
            return
    tally.passed(len(seen))
