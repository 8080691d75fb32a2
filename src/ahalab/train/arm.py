"""Trains one arm under one seed, or says that it is done."""

from __future__ import annotations

from ahalab.errors import PlanError
from ahalab.plain_files import read_plain
from ahalab.plan.cells import Cell
from ahalab.records.base import decode_file, digest
from ahalab.records.plan import Plan
from ahalab.records.run import RunRecord
from ahalab.scoring.arms import ArmDefinition, resolve_arm
from ahalab.store.layout import StudyPaths
from ahalab.store.lock import WriterLock
from ahalab.tasks.places import run_paths
from ahalab.tasks.rewards import with_own_rewards
from ahalab.train.finish import finish
from ahalab.train.pilot import Pilot
from ahalab.train.ranks import ALONE, Ranks
from ahalab.train.session import Progress, Session
from ahalab.train.trl_compat import check_trl


def arm_of(plan: Plan, name: str) -> ArmDefinition:
    """Return the definition of one of the plan's arms.

    Raises:
        PlanError: The plan has no such arm.
    """
    for arm in plan.arms:
        if arm.name == name:
            return resolve_arm(arm.name, arm.components)
    names = ", ".join(arm.name for arm in plan.arms)
    raise PlanError(f"--arm: expected one of the plan's arms ({names}), found {name!r}.")


def run_complete(plan: Plan, paths: StudyPaths, cell: Cell) -> bool:
    """Say whether a run is finished: its record exists, under this plan.

    Raises:
        PlanError: It was made under another plan.
        RecordError: Its record is malformed.
    """
    run = run_paths(paths, cell)
    if not run.record.is_file():
        return False
    record = decode_file(read_plain(run.record), RunRecord, str(run.record))
    if record.plan_digest != digest(plan):
        raise PlanError(
            f"{run.record}: expected plan {digest(plan)[:19]}..., found "
            f"{record.plan_digest[:19]}.... "
            "This run belongs to another plan; use a new --out."
        )
    return True


def train_arm(
    plan: Plan,
    paths: StudyPaths,
    cell: Cell,
    *,
    pilot: Pilot | None,
    on_step: Progress,
    ranks: Ranks = ALONE,
) -> RunRecord | None:
    """Train one arm under one seed, resuming from the last sound checkpoint.

    Args:
        plan: The resolved plan.
        paths: The study.
        cell: One arm and seed of the plan.
        pilot: The run whose prompts, order and configuration this one reuses.
        on_step: Called after every optimizer step.
        ranks: This process among those of the run.

    Returns:
        The run's record; None when the run was complete already, and in all processes but the
        first.

    Raises:
        AhaLabError: See the stages below; whatever was committed is kept and the same command
            resumes.
    """
    if run_complete(plan, paths, cell):
        return None
    check_trl()
    arm, seed = cell.run
    definition = with_own_rewards(plan, arm_of(plan, arm), (paths.rewards,))
    if not ranks.first:
        session = Session(plan, paths, definition, seed, ranks)
        session.train(on_step)
        ranks.wait()  # the first one has the record to write
        return None
    with WriterLock(paths.lock(cell.name)):
        if run_complete(plan, paths, cell):  # by whoever held the lock until now
            return None
        session = Session(plan, paths, definition, seed, ranks)
        if pilot is not None:
            pilot.require_same_configuration(plan, seed)
            pilot.require_same_prompts(session.prompts)
        session.train(on_step)
        record = finish(session, pilot)
        ranks.wait()
        return record
