"""Arms: named, weighted reward components, and the reward they give a batch of responses."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from ahalab.scoring.components import COMPONENTS, FAILED, Component, ComponentValue, Response
from ahalab.scoring.own import OWN_NAME, own_names

MAX_WEIGHT = 1e6
MAX_VALUE = 1e30  # the trainer holds rewards as float32, and squares them
MAX_REASON = 200  # characters of an error that are kept


@dataclass(frozen=True, slots=True)
class ArmDefinition:
    """A reward: the weighted sum of named components."""

    name: str
    components: Mapping[str, float]  # component name -> weight
    control: bool = False  # a control arm pays whatever was answered, by definition
    own: Mapping[str, Component] = field(default_factory=dict)  # users' own rewards, loaded

    @property
    def not_loaded(self) -> tuple[str, ...]:
        """Users' own rewards whose code was not loaded: the arm can't score."""
        return tuple(name for name in own_names(self.components) if name not in self.own)


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

    Raises:
        ValueError: The code of a user's own reward was not loaded.
    """
    if arm.not_loaded:
        raise ValueError(f"arm {arm.name!r}: {', '.join(arm.not_loaded)} was not loaded.")
    columns = {
        name: _column(arm.own.get(name) or COMPONENTS[name], responses) for name in arm.components
    }
    rewards = []
    for row in range(len(responses)):
        values = {name: column[row] for name, column in columns.items()}
        rewards.append(Reward(values, _weighted_sum(arm, values)))
    return rewards


def _column(component: Component, responses: Sequence[Response]) -> list[ComponentValue]:
    """Call a component, and name the rows at fault where its code fails.

    Where the call fails, each row is tried alone; a batch that fails only as a whole has no value
    on any row.
    """
    reason = ""
    try:
        return _called(component, responses)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a user's code raises
        reason = _reason(error)
    alone = [_alone(component, response) for response in responses]
    if any(failed(value) for value in alone):
        return alone
    return [ComponentValue(None, f"{FAILED} on the batch: {reason}")] * len(responses)


def _called(component: Component, responses: Sequence[Response]) -> list[ComponentValue]:
    """Call a component on rows; raises whatever its code raises."""
    found = component(responses)
    if len(found) != len(responses):
        raise ValueError(
            f"expected {len(responses)} values, one per completion, found {len(found)}"
        )
    return [_finite(value) for value in found]


def _finite(value: ComponentValue) -> ComponentValue:
    if value.value is None or abs(value.value) <= MAX_VALUE:  # NaN is not
        return value
    return ComponentValue(None, f"{FAILED}: expected a finite number, found {value.value}")


def _alone(component: Component, response: Response) -> ComponentValue:
    try:
        return _called(component, [response])[0]
    except (Exception, SystemExit) as error:  # noqa: BLE001 - as above
        return ComponentValue(None, f"{FAILED}: {_reason(error)}")


def _reason(error: BaseException) -> str:
    """Return an error on one line of printable characters, without what differs between runs."""
    text = " ".join(f"{type(error).__name__}: {error}".split())
    text = "".join(c if c.isprintable() else "?" for c in text)
    return re.sub(r"0x[0-9a-fA-F]+", "0x...", text)[:MAX_REASON]


def failed(value: ComponentValue) -> bool:
    """Say whether a component has no value because its code failed."""
    return value.value is None and value.status.startswith(FAILED)


def _weighted_sum(arm: ArmDefinition, values: Mapping[str, ComponentValue]) -> float | None:
    terms = []
    for name, weight in arm.components.items():
        value = values[name].value
        if value is None:
            return None
        terms.append(weight * value)
    return math.fsum(terms)


def resolve_arm(
    name: str,
    components: Mapping[str, float] | None = None,
    own: Mapping[str, Component] = MappingProxyType({}),
) -> ArmDefinition:
    """Find a built-in arm, or make one from the components that a plan declares.

    Args:
        name: The arm's name.
        components: Weights by component, for an arm declared in the plan; None for a built-in arm.
        own: Users' own rewards by name, where their code was loaded.

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
        if component not in COMPONENTS and not OWN_NAME.fullmatch(component):
            raise ValueError(
                f"arm {name!r}: {unknown_name('component', component, sorted(COMPONENTS))}"
                " A reward of your own is named package.module:function."
            )
        if not abs(weight) <= MAX_WEIGHT:  # nor NaN
            raise ValueError(
                f"arm {name!r}: expected a finite weight of at most {MAX_WEIGHT:g}, found "
                f"{component}={weight}."
            )
    if built_in is not None and dict(built_in.components) != dict(components):
        raise ValueError(
            f"arm {name!r}: expected the built-in components {dict(built_in.components)}, "
            f"found {dict(components)}. Give the arm another name."
        )
    weights = MappingProxyType(dict(components))
    return built_in or ArmDefinition(
        name, weights, own={key: own[key] for key in own_names(weights) if key in own}
    )


def without_own(arm: ArmDefinition) -> ArmDefinition:
    """Return what is left of an arm without its users' own rewards."""
    kept = {name: weight for name, weight in arm.components.items() if name in COMPONENTS}
    return ArmDefinition(arm.name, MappingProxyType(kept), arm.control)


def unknown_name(kind: str, name: str, known: Iterable[str]) -> str:
    """Return what was expected in place of an unknown name, with the nearest known one."""
    names = list(known)
    near = difflib.get_close_matches(name[:100], names, n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"expected one of the {kind}s {', '.join(names)}, found {name[:100]!r}.{hint}"
