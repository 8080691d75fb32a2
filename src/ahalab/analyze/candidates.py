"""The arms that saved rollouts are scored with: the plan's, the built-in ones, and drafts."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from ahalab.analyze.saved_rollouts import RunsStudy
from ahalab.errors import InputError
from ahalab.plan.load import load_plan
from ahalab.records.counterfactual import LeftOut
from ahalab.records.plan import Plan
from ahalab.scoring.arms import BUILT_IN_ARMS, ArmDefinition, resolve_arm, unknown_name
from ahalab.scoring.components import COMPONENTS
from ahalab.scoring.own import OWN_NAME, own_names
from ahalab.tasks.rewards import pin_rewards, reward_folders, with_own_rewards

_TERM = re.compile(r"(?:(?P<weight>[+-]?\d[\d.]*(?:[eE][+-]?\d+)?)\s*\*?\s*)?(?P<name>\S+)")


@dataclass(frozen=True, slots=True)
class Draft:
    """An arm that no run was trained with, and where the code of its own rewards lies."""

    arm: ArmDefinition
    plan_name: str  # of the plan that declares it; "" for one from the command line
    folders: tuple[Path, ...]
    digests: Mapping[str, str]  # own reward -> digest of its source, where it is known


@dataclass(frozen=True, slots=True)
class Candidates:
    """The arms of one source of rollouts."""

    arms: tuple[ArmDefinition, ...]  # the recorded arm first; with `not_loaded` own rewards where
    # what the run recorded of them is all there is
    left_out: tuple[LeftOut, ...]


def drafts_of_plan(path: Path) -> list[Draft]:
    """Return the arms that another plan declares, running none of their code.

    Raises:
        InputError: The plan is malformed, or a reward can't be found.
    """
    folders = reward_folders(path)
    plan = pin_rewards(load_plan(path / "study.yaml" if path.is_dir() else path), folders)
    return [
        Draft(resolve_arm(spec.name, spec.components), plan.name, folders, plan.rewards)
        for spec in plan.arms
    ]


def draft_of(text: str, known: Collection[str]) -> Draft | None:
    """Return the arm that a formula names, as `correct_strict + 0.2 length_cosine`.

    Args:
        text: Weights (1 where none stands) and components, joined by `+`; or one reward of one's
            own, in the working folder.
        known: Names of arms that are scored anyhow.

    Returns:
        The arm, named by its formula; None for a known name.

    Raises:
        InputError: It is neither, or a component is unknown or named twice.
    """
    if text in known:
        return None
    weights: dict[str, float] = {}
    for term in re.split(r"\s\+\s", text.strip()):
        found = _TERM.fullmatch(term.strip())
        name = found["name"] if found else ""
        if found is None or name in weights:
            raise InputError(
                "--arm: expected the name of an arm, or weights and components such as "
                f"`correct_strict + 0.2 format`, each once; found {text[:80]!r}."
            )
        if name == text and name not in COMPONENTS and not OWN_NAME.fullmatch(name):
            raise InputError(
                f"--arm: {unknown_name('arm', name, sorted(known))} Or give a formula, as "
                "`correct_strict + 0.2 format`."
            )
        try:
            weights[name] = float(found["weight"] or 1)
            resolve_arm(text[:80], {name: weights[name]})
        except ValueError as error:
            raise InputError(f"--arm: {error}") from error
    formula = " + ".join(f"{weight:g} {name}" for name, weight in weights.items())
    return Draft(resolve_arm(formula, weights), "", (Path(),), {})


def candidates(
    study: RunsStudy, recorded: str, drafts: Sequence[Draft], *, trust_rewards: bool
) -> Candidates:
    """Return the arms to score the rollouts of one arm with.

    An own reward's code is run only where it is trusted. Without it an arm stays when the run
    recorded all its own rewards, as the run's own arm did; else it is left out.

    Args:
        study: Where the rollouts come from.
        recorded: The arm that was trained.
        drafts: More arms.
        trust_rewards: Load the code of own rewards.

    Raises:
        InputError: Two arms have one name, or a trusted reward can't be loaded.
    """
    plan = study.plan
    declared = [resolve_arm(spec.name, spec.components) for spec in plan.arms]
    declared.sort(key=lambda arm: arm.name != recorded)  # stable: the recorded one comes first
    folders = reward_folders(study.paths.root)
    every = [Draft(arm, plan.name, folders, plan.rewards) for arm in declared]
    named = {draft.arm.name for draft in every}
    built_in = [arm for name, arm in BUILT_IN_ARMS.items() if name not in named]
    every += [Draft(arm, "", (), {}) for arm in built_in]
    taken = {draft.arm.name: draft for draft in every}
    for draft in drafts:
        name = draft.arm.name
        for called in (draft, _renamed(draft, f"{name} ({draft.plan_name or 'draft'})")):
            there = taken.setdefault(called.arm.name, called)
            if _same(there, draft):
                break
        else:
            raise InputError(f"arm {name!r}: expected two definitions at most. Rename one.")
    return _loaded(study, taken, trust_rewards)


def _renamed(draft: Draft, name: str) -> Draft:
    return replace(draft, arm=replace(draft.arm, name=name))


def _same(one: Draft, other: Draft) -> bool:
    names = own_names(one.arm.components)
    return dict(one.arm.components) == dict(other.arm.components) and all(
        one.digests.get(name) == other.digests.get(name) for name in names
    )


def _loaded(study: RunsStudy, taken: Mapping[str, Draft], trust_rewards: bool) -> Candidates:
    arms: list[ArmDefinition] = []
    left_out: list[LeftOut] = []
    recorded = set(own_names(next(iter(taken.values())).arm.components))
    for draft in taken.values():
        names = own_names(draft.arm.components)
        if trust_rewards and names:
            asked = msgspec.structs.replace(study.plan, rewards=dict(draft.digests))
            arms.append(with_own_rewards(asked, draft.arm, draft.folders))
        elif all(name in recorded and _recorded(study.plan, draft, name) for name in names):
            arms.append(draft.arm)
        else:
            reason = f"{', '.join(names)} is code that was not run; --trust-rewards runs it"
            left_out.append(LeftOut(arm=draft.arm.name, reason=reason))
    return Candidates(tuple(arms), tuple(left_out))


def _recorded(plan: Plan, draft: Draft, name: str) -> bool:
    """Say whether a draft's own reward is the code that the run recorded the values of."""
    return draft.digests.get(name) == plan.rewards.get(name)
