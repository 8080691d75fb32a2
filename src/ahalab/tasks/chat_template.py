"""The one door to chat templates: each is rendered in a process that is killed after its time.

A chat template is a program by the model's author. transformers runs it in jinja's sandbox, which
keeps it from the machine, and bounds neither its time nor its memory: loops within loops,
`'a' * 10**10`, and `9**9**9`, which no timer of the own process interrupts.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

from ahalab.errors import InputError, MissingError
from ahalab.killable import Killable, Message
from ahalab.tasks.template_worker import MAX_ADDED, MEMORY_BYTES

RENDER_SECONDS = 60.0  # for one request; a sound template takes less than a millisecond a prompt
START_SECONDS = 120.0  # an interpreter and transformers' templates; no part of a template's time
REQUEST_CHARACTERS = 4 << 20  # of the JSON of the conversations of one request
# Threads reserve address space, which is bounded; and nothing is computed by them.
_ENVIRONMENT = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


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
        reply = _RENDERER.ask({**arguments, "conversations": some})
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


class _Renderer:
    """Owns the process; it is started at the first request, and again after a kill or a fork."""

    def __init__(self) -> None:
        self._child: Killable | None = None
        self._lock = threading.Lock()
        os.register_at_fork(after_in_child=self._forget)
        atexit.register(self.close)

    def ask(self, arguments: Message) -> Message:
        with self._lock:
            child = self._started()
            until = time.monotonic() + RENDER_SECONDS
            try:
                child.ask({"arguments": arguments, "seconds": RENDER_SECONDS})
                reply = child.answer(RENDER_SECONDS)
            except OSError:  # it ended between two requests, or while it read this one
                reply = None
            except BaseException:  # an interrupt: its answer would be taken for the next one's
                self.close()
                raise
            if reply is None:
                reply = {"bound": _ending(child, until)}
            if "bound" in reply:
                self.close()
            return reply

    def _started(self) -> Killable:
        if self._child is not None and self._child.process.poll() is not None:
            self.close()
        if self._child is None:
            self._child = Killable("ahalab.tasks.template_worker", _ENVIRONMENT)
            try:
                said = self._child.answer(START_SECONDS)
            except BaseException:
                self.close()
                raise
            if said is None:
                self.close()
                raise RuntimeError("the process that renders chat templates did not start.")
        return self._child

    def close(self) -> None:
        """End the process; another is started when it is needed."""
        if self._child is not None:
            self._child.end()
            self._child = None

    def _forget(self) -> None:
        """Leave the process to the parent; this is a forked child, with one thread so far."""
        self._lock = threading.Lock()  # another thread of the parent may have held it
        if self._child is not None:
            self._child.leave_to_parent()
            self._child = None


def _ending(child: Killable, until: float) -> str:
    if time.monotonic() >= until:
        return f"none after {RENDER_SECONDS:g} s"
    code = child.process.wait()  # it closed its pipe, which is the first thing to go
    told = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return f"that its process ended ({told})"


_RENDERER = _Renderer()
