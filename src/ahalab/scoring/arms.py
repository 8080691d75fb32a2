"""Arms: named, weighted reward components, and the reward they give a batch of responses."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from ahalab.scoring.components import COMPONENTS, ComponentValue, Response


@dataclass(frozen=True, slots=True)
class ArmDefinition:
    """A reward: the weighted sum of named components."""

    name: str
    components: Mapping[str, float]  # component name -> weight
    control: bool = False  # a control arm pays whatever was answered, by definition


@dataclass(frozen=True, slots=True)
class Reward:
    """What an arm gives one response."""

    components: dict[str, ComponentValue]  # in the arm's order
    reward: float | None  # None: some component has no value, and 0 would be a lie


def _arm(name: str, control: bool = False, **weights: float) -> ArmDefinition:
    return ArmDefinition(name, MappingProxyType(weights), control)


BUILT_IN_ARMS: Mapping[str, ArmDefinition] = MappingProxyType(
    {
        arm.name: arm
        for arm in (
            _arm("correctness", correct_strict=1.0),
            _arm("historical", historical_correct=1.0),
            _arm("additive_format", correct_strict=1.0, format=0.2),
            _arm("gated_format", correct_lenient=1.0, format_gated=0.2),
            _arm("format_only", format=1.0),
            _arm("length_budget", correct_strict=1.0, length=0.2),
            _arm("partial_credit", correct_strict=1.0, partial_credit=0.5),
            _arm("reflection_bonus", correct_strict=1.0, reflection=0.2),
            _arm("random", control=True, random=1.0),
        )
    }
)
"""The arms a plan may name without declaring them (docs/arms.md)."""


def score_batch(arm: ArmDefinition, responses: Sequence[Response]) -> list[Reward]:
    """Give each response of a batch its reward.

    Args:
        arm: The arm, resolved (every component known).
        responses: Responses of the batch, shape (N,).

    Returns:
        Rewards, shape (N,), in the same order; exactly rounded sums of weight times value.
    """
    columns = {name: COMPONENTS[name](responses) for name in arm.components}
    rewards = []
    for row in range(len(responses)):
        values = {name: column[row] for name, column in columns.items()}
        rewards.append(Reward(values, _weighted_sum(arm, values)))
    return rewards


def _weighted_sum(arm: ArmDefinition, values: Mapping[str, ComponentValue]) -> float | None:
    terms = []
    for name, weight in arm.components.items():
        value = values[name].value
        if value is None:
            return None
        terms.append(weight * value)
    return math.fsum(terms)


def resolve_arm(name: str, components: Mapping[str, float] | None = None) -> ArmDefinition:
    """Find a built-in arm, or make one from the components that a plan declares.

    Args:
        name: The arm's name.
        components: Weights by component, for an arm declared in the plan; None for a built-in arm.

    Returns:
        The arm.

    Raises:
        ValueError: The arm or a component is unknown, a weight is not finite, no component is
            named, or a declared arm takes a built-in arm's name with other components.
    """
    built_in = BUILT_IN_ARMS.get(name)
    if components is None:
        if built_in is None:
            raise ValueError(f"arm {name!r}: {unknown_name('arm', name, sorted(BUILT_IN_ARMS))}")
        return built_in
    if not components:
        raise ValueError(f"arm {name!r}: expected at least one component, found none.")
    for component, weight in components.items():
        if component not in COMPONENTS:
            raise ValueError(
                f"arm {name!r}: {unknown_name('component', component, sorted(COMPONENTS))}"
            )
        if not math.isfinite(weight):
            raise ValueError(f"arm {name!r}: expected a finite weight, found {component}={weight}.")
    if built_in is not None and dict(built_in.components) != dict(components):
        raise ValueError(
            f"arm {name!r}: expected the built-in components {dict(built_in.components)}, "
            f"found {dict(components)}. Give the arm another name."
        )
    return built_in or ArmDefinition(name, MappingProxyType(dict(components)))


def unknown_name(kind: str, name: str, known: Iterable[str]) -> str:
    """Return what was expected in place of an unknown name, with the nearest known one."""
    names = list(known)
    near = difflib.get_close_matches(name[:100], names, n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"expected one of the {kind}s {', '.join(names)}, found {name[:100]!r}.{hint}"
