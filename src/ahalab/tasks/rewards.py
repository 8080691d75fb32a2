"""Users' own rewards of a plan: pinned by the digest of their source, loaded for an arm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from ahalab.errors import InputError, PlanError
from ahalab.records.plan import Plan
from ahalab.scoring.arms import ArmDefinition
from ahalab.scoring.own import OFFERED, Conversation, OwnReward, own_names
from ahalab.store.layout import StudyPaths
from ahalab.store.rewards import RewardSource, accepted_arguments, find_reward, load_reward
from ahalab.tasks.render import messages


def reward_folders(study: Path) -> tuple[Path, ...]:
    """Return where the code of a study's own rewards is looked for first.

    Args:
        study: A plan file (beside it, then in the working folder), or a study's folder (its copy).
    """
    return (StudyPaths(study).rewards,) if study.is_dir() else (study.parent, Path())


def own_rewards(plan: Plan) -> tuple[str, ...]:
    """Return the users' own rewards that a plan's arms name, each once."""
    names = {name for arm in plan.arms for name in own_names(arm.components or {})}
    return tuple(sorted(names))


def reward_sources(plan: Plan, folders: Sequence[Path]) -> tuple[RewardSource, ...]:
    """Find the source of every own reward of a plan, running none.

    Raises:
        InputError: See `find_reward`.
    """
    return tuple(find_reward(name, folders) for name in own_rewards(plan))


def pin_rewards(plan: Plan, folders: Sequence[Path]) -> Plan:
    """Return the plan with the digest of the source of every own reward.

    Raises:
        InputError: A reward can't be found.
        PlanError: The plan names another source than the one at hand.
    """
    found = {source.name: source.digest for source in reward_sources(plan, folders)}
    for name, digest in plan.rewards.items():
        if name in found and found[name] != digest:
            raise PlanError(
                f"rewards.{name}: expected the source {digest[:19]}... of the plan, found "
                f"{found[name][:19]}.... Restore the file, or drop the digest from the plan."
            )
    return msgspec.structs.replace(plan, rewards=found)


def with_own_rewards(plan: Plan, arm: ArmDefinition, folders: Sequence[Path]) -> ArmDefinition:
    """Return an arm with its own rewards loaded, which runs their modules.

    Raises:
        InputError: A reward can't be found or imported, needs an argument that is not offered, or
            its source is not the one that the plan was frozen with.
    """
    loaded = {}
    for name in own_names(arm.components):
        source = find_reward(name, folders)
        pinned = plan.rewards.get(name)
        if pinned is not None and source.digest != pinned:
            raise InputError(
                f"{source.folder / source.files[0]}: expected the source {pinned[:19]}... that "
                f"the plan was frozen with, found {source.digest[:19]}.... Restore it."
            )
        steps = int(plan.grpo["max_steps"])
        loaded[name] = own_reward(source, lambda question: messages(plan.task, question), steps)
    return replace(arm, own=loaded) if loaded else arm


def one_own_reward(name: str, folders: Sequence[Path]) -> ArmDefinition:
    """Return an arm of nothing but one own reward, loaded, outside any study.

    Raises:
        InputError: See `find_reward` and `own_reward`.
    """

    def conversation(question: str) -> list[dict[str, str]]:
        return [{"role": "user", "content": question}]

    reward = own_reward(find_reward(name, folders), conversation, 0)
    return ArmDefinition(name, {name: 1.0}, own={name: reward})


def own_reward(source: RewardSource, conversation: Conversation, max_steps: int) -> OwnReward:
    """Load one reward as a component.

    Args:
        source: Where its code lies.
        conversation: From a question to the messages that ask it.
        max_steps: Optimizer steps of the run that it scores; 0 outside one.

    Raises:
        InputError: See `load_reward` and `accepted_arguments`.
    """
    function = load_reward(source)
    accepts = accepted_arguments(source.name, function, OFFERED)
    return OwnReward(source.name, function, accepts, conversation, max_steps)
