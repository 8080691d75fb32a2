"""Reward components: each a pure function over a batch, with a status for every row.

A response that earns nothing gets 0.0 with the reason as its status. One on which nothing can be
said (an `error` outcome) gets None, never a silent 0.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from ahalab.records.terms import Finish, Outcome
from ahalab.scoring.answers import DEFAULT_ASKED, Asked, Reading, Score, score_answer
from ahalab.scoring.deciding import LatexEqual
from ahalab.scoring.format import format_fault
from ahalab.scoring.reflection import reflection_markers, self_correction
from ahalab.scoring.stated_number import closeness, gold_number, stated_number
from ahalab.scoring.steps import steps_to_answer
from ahalab.scoring.training_parser import historical_outcome
from ahalab.scoring.verbosity import (
    COSINE_WRONG,
    cosine_reward,
    repeated_share,
    within_budget,
    words_and_signs,
)

REFLECTION_LIMIT = 2
"""Markers that earn the whole of the reflection reward."""

FAILED = "failed"
"""How the status begins of a row on which a component's own code failed."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a completion comes from: what tells it from every other of its study."""

    prompt_id: str = ""
    step: int = 0  # of training; 0 for an answer of the evaluation
    sample: int = 0  # position in its group
    seed: int = 0  # of the training run
    completion_ids: tuple[int, ...] = ()  # for users' own rewards; () where there are none


@dataclass(frozen=True, slots=True)
class Response:
    """What a component may look at."""

    completion: str
    gold: str
    finish: Finish
    origin: Origin
    asked: Asked
    score: Score  # evaluation scorer
    historical: Outcome  # training parser


@dataclass(frozen=True, slots=True)
class ComponentValue:
    """What a component gives one response."""

    value: float | None  # None: nothing can be said, and the status says why
    status: str  # "ok", or why not


WRONG_ANSWER_STEPS = 0.5
"""What the steps to a wrong answer earn at most: right as each may be, one of them was not asked
for, or one is missing."""

Component = Callable[[Sequence[Response]], list[ComponentValue]]

NOWHERE = Origin()


def make_response(
    *,
    completion: str,
    gold: str,
    finish: Finish = "eos",
    origin: Origin = NOWHERE,
    asked: Asked = DEFAULT_ASKED,
    latex_equal: LatexEqual | None = None,
) -> Response:
    """Score a completion once with both parsers, for every component to look at.

    Args:
        completion: The model's text, without its prompt.
        gold: The gold answer.
        finish: Why generation ended.
        origin: Where the completion comes from.
        asked: How the answer was asked for.
        latex_equal: Decides LaTeX in mathematics; see `score_answer`.

    Returns:
        The response with both scores.
    """
    score = score_answer(completion, gold, finish, asked, latex_equal)
    historical = historical_outcome(completion, gold)
    return Response(completion, gold, finish, origin, asked, score, historical)


def correct_strict(responses: Sequence[Response]) -> list[ComponentValue]:
    """Pay 1 for the right value in the asked format."""
    return [_paid(response.score.strict) for response in responses]


def correct_lenient(responses: Sequence[Response]) -> list[ComponentValue]:
    """Pay 1 for the right value wherever it is clearly stated."""
    return [_paid(response.score.lenient) for response in responses]


def historical_correct(responses: Sequence[Response]) -> list[ComponentValue]:
    """Pay 1 where the training parser says correct, faults included."""
    return [
        ComponentValue(1.0, "ok")
        if r.historical == "correct"
        else ComponentValue(0.0, r.historical)
        for r in responses
    ]


def format_met(responses: Sequence[Response]) -> list[ComponentValue]:
    """Pay 1 for exactly one well-formed final statement in the asked format, whatever its value."""
    return [_format(response) for response in responses]


def format_gated(responses: Sequence[Response]) -> list[ComponentValue]:
    """Pay 1 for the asked format, but only where the value is right (leniently)."""
    values = []
    for response in responses:
        correct = _paid(response.score.lenient)
        values.append(_format(response) if correct.value == 1.0 else correct)
    return values


def is_formatted(response: Response) -> bool:
    """Say whether a response meets the asked format, whatever its value."""
    return _format(response).value == 1.0


def repeated_fraction(response: Response) -> float:
    """Return the repeated share of a response's word sequences."""
    return repeated_share(words_and_signs(response.completion))


def random_coin(responses: Sequence[Response]) -> list[ComponentValue]:
    """Pay 0 or 1 by a hash of seed, step, prompt and sample: a placebo that replays exactly."""
    values = []
    for origin in (response.origin for response in responses):
        key = f"{origin.seed}|{origin.step}|{origin.prompt_id}|{origin.sample}"
        digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
        values.append(ComponentValue(float(digest[0] & 1), "ok"))
    return values


def constant(responses: Sequence[Response]) -> list[ComponentValue]:
    """Pay 1 always: no advantage, so no learning signal."""
    return [ComponentValue(1.0, "ok") for _ in responses]


def length(responses: Sequence[Response]) -> list[ComponentValue]:
    """Pay 1 within the budget of words, less beyond it; nothing for a cut or an empty response."""
    values = []
    for response in responses:
        words = len(words_and_signs(response.completion))
        if response.finish == "length":
            values.append(ComponentValue(0.0, "truncated"))
        elif words == 0:
            values.append(ComponentValue(0.0, "empty"))
        else:
            values.append(ComponentValue(within_budget(words), "ok"))
    return values


def length_cosine(responses: Sequence[Response]) -> list[ComponentValue]:
    """Pay a right answer more the shorter it is, and charge any other less the longer it is.

    A cut response is charged the most, whatever it says: else a wrong one would run to its limit.
    """
    values = []
    for response in responses:
        paid = _paid(response.score.lenient)
        if paid.value is None:
            values.append(paid)
        elif response.finish == "length":
            values.append(ComponentValue(COSINE_WRONG[0], "truncated"))
        else:
            words = len(words_and_signs(response.completion))
            values.append(ComponentValue(cosine_reward(words, paid.value == 1.0), paid.status))
    return values


def repetition(responses: Sequence[Response]) -> list[ComponentValue]:
    """Charge the repeated fraction of word sequences: 0 for none, towards -1 for nothing new."""
    return [
        ComponentValue(0.0 - repeated_share(words_and_signs(r.completion)), "ok") for r in responses
    ]


def reflection(responses: Sequence[Response]) -> list[ComponentValue]:
    """Pay for reflection markers, up to a limit, whatever they achieve."""
    return [
        ComponentValue(
            min(len(reflection_markers(r.completion)), REFLECTION_LIMIT) / REFLECTION_LIMIT, "ok"
        )
        for r in responses
    ]


def self_corrected(responses: Sequence[Response]) -> list[ComponentValue]:
    """Pay 1 where a stated value changes to the right one and the answer stays right."""
    values = []
    for response in responses:
        correct = _paid(response.score.lenient)
        if correct.value != 1.0:
            values.append(correct)
        else:
            corrected = self_correction(response.completion, response.gold)
            values.append(ComponentValue(float(corrected), "ok"))
    return values


def partial_credit(responses: Sequence[Response]) -> list[ComponentValue]:
    """Pay 1 for the right value and `1 - |stated - gold| / |gold|`, at least 0, for a near one.

    Only numbers can be near one another: elsewhere a wrong answer earns nothing.
    """
    return [_partial(response) for response in responses]


def correct_steps(responses: Sequence[Response]) -> list[ComponentValue]:
    """Pay the share of the written steps to the stated answer that hold; half where it is wrong."""
    return [_steps(response) for response in responses]


def _steps(response: Response) -> ComponentValue:
    reading, asked = response.score.lenient, response.asked
    paid = _paid(reading)
    if reading.outcome not in ("correct", "wrong") or reading.extracted is None:
        return paid
    if asked.prompt is None:
        return ComponentValue(None, "error: no question")
    answer = stated_number(reading.extracted, asked.task)
    steps = steps_to_answer(response.completion, asked.prompt, answer)
    if steps.count == 0:
        return ComponentValue(0.0, "no steps")
    scale = 1.0 if reading.outcome == "correct" else WRONG_ANSWER_STEPS
    return ComponentValue(scale * steps.share, paid.status)


def _partial(response: Response) -> ComponentValue:
    reading, task = response.score.lenient, response.asked.task
    if reading.outcome != "wrong" or reading.extracted is None:
        return _paid(reading)
    stated = stated_number(reading.extracted, task)
    gold = gold_number(response.gold, task)
    near = 0.0 if stated is None or gold is None else closeness(stated, gold)
    return ComponentValue(near, "wrong")


def _paid(reading: Reading) -> ComponentValue:
    if reading.outcome == "correct":
        return ComponentValue(1.0, "ok")
    if reading.outcome == "error":
        return ComponentValue(None, reading.status)
    return ComponentValue(0.0, reading.outcome)


def _format(response: Response) -> ComponentValue:
    fault = format_fault(response.completion, response.finish, response.asked.answer_format)
    return ComponentValue(1.0, "ok") if fault is None else ComponentValue(0.0, fault)


COMPONENTS: Mapping[str, Component] = MappingProxyType(
    {
        "correct_strict": correct_strict,
        "correct_lenient": correct_lenient,
        "historical_correct": historical_correct,
        "format": format_met,
        "format_gated": format_gated,
        "random": random_coin,
        "constant": constant,
        "length": length,
        "length_cosine": length_cosine,
        "repetition": repetition,
        "reflection": reflection,
        "partial_credit": partial_credit,
        "correct_steps": correct_steps,
        "self_correction": self_corrected,
    }
)
"""Every component an arm may weigh, by the name that stands in plans and records."""
