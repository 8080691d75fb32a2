"""Users' own rewards: their code compared with the plan, and run only where a reader trusts it."""

from __future__ import annotations

import contextlib

from ahalab.errors import InputError
from ahalab.records.plan import Plan
from ahalab.scoring.arms import ArmDefinition, resolve_arm
from ahalab.scoring.own import own_names
from ahalab.store.rewards import find_reward
from ahalab.tasks.rewards import own_rewards, with_own_rewards
from ahalab.verify.reading import Study


def check_own(study: Study, plan: Plan) -> dict[str, ArmDefinition]:
    """Check the code of a plan's own rewards; return the arms by name, loaded where trusted."""
    for name in own_rewards(plan):
        _check_source(study, name, plan.rewards.get(name))
    arms = {}
    for spec in plan.arms:
        arm = resolve_arm(spec.name, spec.components)
        names = own_names(arm.components)
        tally = study.ledger["reward.own"]
        if not names:
            tally.passed()  # nothing but our own components: `grade.status` computes them again
        elif not study.trust_rewards:
            tally.not_checked(
                f"arm {arm.name}: {', '.join(names)} is the study's own code; read it in rewards/, "
                "then --trust-rewards runs it"
            )
        else:
            try:
                arm = with_own_rewards(plan, arm, (study.paths.rewards,))
            except InputError as error:
                tally.not_checked(f"arm {arm.name}: {error}")
        arms[spec.name] = arm
    return arms


def definition_of(plan: Plan, arm: str) -> ArmDefinition:
    """Return the components and weights of one of the plan's arms."""
    spec = next(a for a in plan.arms if a.name == arm)
    return resolve_arm(spec.name, spec.components)


def own_arm(study: Study, plan: Plan, name: str) -> ArmDefinition:
    """Return an arm; a user's own rewards are loaded where trusted and what was frozen."""
    arm = definition_of(plan, name)
    if own_names(arm.components) and study.trust_rewards:
        with contextlib.suppress(InputError):  # told by `check_own`
            return with_own_rewards(plan, arm, (study.paths.rewards,))
    return arm


def _check_source(study: Study, name: str, pinned: str | None) -> None:
    """Compare the code that the study holds, or the installed package, with the plan's digest."""
    tally = study.ledger["reward.source"]
    if pinned is None:
        tally.fail("study.yaml", None, f"the digest of {name} under `rewards`", "none")
        return
    try:
        source = find_reward(name, (study.paths.rewards,))
        found = source.digest
    except (InputError, OSError) as error:
        tally.not_checked(f"{name}: its code is neither in the study nor installed here ({error})")
        return
    if source.beside:
        tally.expect(f"rewards/{source.files[0]}", None, f"source of {name}", pinned, found)
    elif found == pinned:
        tally.passed()
    else:
        tally.not_checked(f"{name}: the installed package is not the one that the study used")
