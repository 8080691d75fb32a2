"""The one door to chat templates: each is rendered in a process that is killed after its time.

A chat template is a program by the model's author. transformers runs it in jinja's sandbox, which
keeps it from the machine, and bounds neither its time nor its memory: loops within loops,
`'a' * 10**10`, and `9**9**9`, which no timer of the own process interrupts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ahalab.errors import InputError, MissingError
from ahalab.killable import Worker
from ahalab.tasks.template_worker import MAX_ADDED, MEMORY_BYTES

RENDER_SECONDS = 60.0  # for one request; a sound template takes less than a millisecond a prompt
REQUEST_CHARACTERS = 4 << 20  # of the JSON of the conversations of one request


class TemplateRefusedError(InputError):
    """A chat template does not take the messages, or fails on them."""

    def __init__(self, reason: str) -> None:
        self.reason = " ".join(reason.split())[:200]
        super().__init__(
            "the model's chat template: expected a text for the messages, found: "
            f"{self.reason}. Use an instruction model, or mend its chat_template."
        )


def bound_chat_templates() -> None:
    """Have every tokenizer of this process render its chat template in the killable one.

    The seam is the name by which tokenizers call the renderer, so that TRL, which renders the
    prompts of each step by the tokenizer, comes through this door as well.

    Raises:
        MissingError: The installed transformers has no such seam.
    """
    import transformers
    from transformers import tokenization_utils_base as tokenizers

    if not hasattr(tokenizers, "render_jinja_template"):
        raise MissingError(
            f"transformers {transformers.__version__}: expected render_jinja_template "
            "in tokenization_utils_base, found none, so chat templates can't be bounded. Install a "
            "version that docs/compatibility.md names"
        )
    tokenizers.render_jinja_template = rendered


def rendered(conversations: list[Any], **arguments: Any) -> tuple[list[str], list[Any]]:
    """Render conversations as transformers' function of that name does, with its arguments.

    Returns:
        The texts, and what the assistant wrote in each where that was asked for; shape (N,) both.

    Raises:
        TemplateRefusedError: The template refuses the messages, or fails on them.
        InputError: It takes too long, too much memory, or writes too much.
    """
    texts: list[str] = []
    generated: list[Any] = []
    for some in _requests(conversations):
        reply = _RENDERER.ask({"arguments": {**arguments, "conversations": some}}, RENDER_SECONDS)
        if "refused" in reply:
            raise TemplateRefusedError(reply["refused"])
        if "bound" in reply:
            raise _out_of_bounds(reply["bound"])
        texts += reply["texts"]
        generated += reply["generated"]
    return texts, generated


def _requests(conversations: list[Any]) -> Iterator[list[Any]]:
    """Yield conversations in runs, so that the bounds are those of so much text, not of a set."""
    some: list[Any] = []
    size = 0
    for conversation in conversations:
        some.append(conversation)
        size += len(json.dumps(conversation))
        if size >= REQUEST_CHARACTERS:
            yield some
            some, size = [], 0
    if some:
        yield some


def _out_of_bounds(found: str) -> InputError:
    return InputError(
        f"the model's chat template: expected prompts within {RENDER_SECONDS:g} s, "
        f"{MEMORY_BYTES >> 30} GiB of memory and {MAX_ADDED} characters beyond the messages, found "
        f"{found}. Look for loops within loops, or for text that is multiplied, in its "
        "chat_template."
    )


_RENDERER = Worker("ahalab.tasks.template_worker")
