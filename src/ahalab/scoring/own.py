"""Users' own rewards: a function with TRL's signature as a reward component.

The function is handed what TRL hands it, and gives one number, or None, for each completion.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ahalab.scoring.components import FAILED, ComponentValue, Response

OWN_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)
"""How a user's own reward is named: `package.module:function`."""

GOLD_COLUMNS = ("gold", "answer", "solution", "ground_truth", "target")
"""Names under which a reward is handed the gold answer: those that data sets use."""

QUESTION_COLUMNS = ("question", "problem")
"""Names under which it is handed the question."""

OFFERED = (
    "prompts", "completions", "completion_ids", *GOLD_COLUMNS, *QUESTION_COLUMNS, "prompt_id",
    "trainer_state", "log_extra", "log_metric",
)  # fmt: skip
"""Every argument that a reward may ask for."""

NO_REWARD = "no reward"
"""Status of a row for which a reward returned None."""

Conversation = Callable[[str], list[dict[str, str]]]  # question -> messages


@dataclass(frozen=True, slots=True)
class TrainerView:
    """What a reward may know of the trainer: the part that repeats when it is checked."""

    global_step: int  # optimizer steps done
    max_steps: int


@dataclass(frozen=True, slots=True)
class OwnReward:
    """A component that calls a user's function, with a status for every row."""

    name: str  # package.module:function
    function: Callable[..., Any]
    accepts: frozenset[str] | None  # arguments it takes by name; None: all that are offered
    conversation: Conversation
    max_steps: int = 0

    def __call__(self, responses: Sequence[Response]) -> list[ComponentValue]:
        """Score a generation batch, shape (B,), in one call, as TRL does.

        Raises:
            Exception: Whatever the user's code raises.
        """
        return [_value(reward) for reward in self.function(**self._arguments(responses))]

    def _arguments(self, responses: Sequence[Response]) -> dict[str, Any]:
        golds = [r.gold for r in responses]
        questions = [r.asked.prompt or "" for r in responses]
        step = responses[0].origin.step if responses else 0
        offered: dict[str, Any] = {
            "prompts": [self.conversation(question) for question in questions],
            "completions": [[{"role": "assistant", "content": r.completion}] for r in responses],
            "completion_ids": [list(r.origin.completion_ids) for r in responses],
            "prompt_id": [r.origin.prompt_id for r in responses],
            "trainer_state": TrainerView(step, self.max_steps),
            "log_extra": _unheard,
            "log_metric": _unheard,
        }
        # A list each: a function that sorts its own must not sort another's.
        offered |= {name: list(golds) for name in GOLD_COLUMNS}
        offered |= {name: list(questions) for name in QUESTION_COLUMNS}
        if self.accepts is None:
            return offered
        return {name: value for name, value in offered.items() if name in self.accepts}


def own_names(components: Mapping[str, float]) -> tuple[str, ...]:
    """Return the users' own rewards among an arm's components."""
    return tuple(name for name in components if ":" in name)


def _value(reward: Any) -> ComponentValue:
    if reward is None:
        return ComponentValue(None, NO_REWARD)
    if isinstance(reward, str | bytes):
        return ComponentValue(None, f"{FAILED}: expected a number, found {reward!r:.60}")
    return ComponentValue(float(reward), "ok")


def _unheard(*_: Any, **__: Any) -> None:
    """Take what a reward logs: its values are recorded as a component anyhow."""
