"""What goes over the wire to an OpenAI-compatible server, and what comes back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from ahalab.evaluate.backends.local_tokenizer import LocalTokenizer
from ahalab.plan.endpoint import endpoint_of
from ahalab.records.plan import Plan
from ahalab.records.prompt import Prompt
from ahalab.records.terms import Finish
from ahalab.tasks.render import messages

FINISHES: dict[str, Finish] = {
    "stop": "eos",  # no stop text is ever sent, so that only the model's end token is left
    "length": "length",
    "content_filter": "content_filter",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
}


class MalformedReplyError(ValueError):
    """A reply is cut, or is not what the API promises; another try may help."""


class _Message(msgspec.Struct):
    content: str | None = None


class _Choice(msgspec.Struct):
    finish_reason: str | None = None
    text: str | None = None
    message: _Message | None = None
    token_ids: list[int] | None = None
    prompt_token_ids: list[int] | None = None


class _Reply(msgspec.Struct):
    choices: list[_Choice]
    model: str | None = None
    system_fingerprint: str | None = None
    prompt_token_ids: list[int] | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """One choice of one reply."""

    text: str
    ids: tuple[int, ...] | None
    prompt_ids: tuple[int, ...] | None  # what the server read, where it says so
    finish: Finish
    fingerprint: str | None


def sampling_fields(plan: Plan, end_ids: frozenset[int]) -> dict[str, Any]:
    """Return every field that decides how a server generates, the seed of a row apart."""
    evaluation, vllm = plan.evaluation, endpoint_of(plan).dialect == "vllm"
    sampled = evaluation.temperature > 0
    fields: dict[str, Any] = {
        "max_tokens": evaluation.max_new_tokens,
        "temperature": evaluation.temperature if sampled else 0.0,
        "top_p": evaluation.top_p if sampled else 1.0,
        "n": 1,
        "stop": None,
        "stream": False,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
    }
    if vllm:  # a server takes what is left out from the model's own generation_config
        fields |= {
            "top_k": 0,
            "min_p": 0.0,
            "repetition_penalty": 1.0,
            "min_tokens": 0,
            "ignore_eos": False,
            "stop_token_ids": sorted(end_ids),
            "skip_special_tokens": True,
            "return_token_ids": True,
        }
    return fields


def prompt_form(plan: Plan) -> str:
    """Return how a prompt is sent: `messages`, `token_ids` or `text`."""
    endpoint = endpoint_of(plan)
    if endpoint.api == "chat":
        return "messages"
    return "token_ids" if endpoint.dialect == "vllm" else "text"


def prompt_fields(plan: Plan, prompt: Prompt, tokenizer: LocalTokenizer) -> dict[str, Any]:
    """Return the part of a request that asks the question.

    Raises:
        InputError: The prompt's text does not stand for its token ids.
    """
    form = prompt_form(plan)
    if form == "messages":
        return {"messages": messages(plan.task, prompt.question)}
    if form == "token_ids":
        return {"prompt": list(prompt.prompt_ids)}
    return {"prompt": tokenizer.prompt_text(prompt.prompt_ids)}


def read_reply(payload: bytes, api: str) -> Told:
    """Read the one choice of a reply.

    Args:
        payload: The body.
        api: `completions` or `chat`.

    Raises:
        MalformedReplyError: The body is no whole reply of this API.
    """
    try:
        reply = msgspec.json.decode(payload, type=_Reply)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedReplyError(f"expected a reply with choices, found: {error}") from error
    if len(reply.choices) != 1:
        raise MalformedReplyError(f"expected one choice, found {len(reply.choices)}")
    choice = reply.choices[0]
    finish = FINISHES.get(choice.finish_reason or "")
    if finish is None:
        raise MalformedReplyError(
            f"expected finish_reason {', '.join(FINISHES)}, found {choice.finish_reason!r}"
        )
    text = choice.text if api == "completions" else choice.message and choice.message.content
    if text is None and finish in ("eos", "length"):
        raise MalformedReplyError("expected text, found none")
    read = reply.prompt_token_ids or choice.prompt_token_ids
    return Told(
        text=text or "",
        ids=None if choice.token_ids is None else tuple(choice.token_ids),
        prompt_ids=None if read is None else tuple(read),
        finish=finish,
        fingerprint=reply.system_fingerprint,
    )
