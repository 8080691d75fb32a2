"""Puts a question to a model: messages, chat template, token ids ([train] needed)."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from jinja2 import TemplateError

from ahalab.errors import InputError
from ahalab.records.base import digest_bytes
from ahalab.records.plan import TaskSpec

RENDER_SECONDS = 60.0  # for one question; a sound template takes less than a millisecond


def load_tokenizer(folder: Path) -> Any:
    """Return the tokenizer of a model folder, set up for left-padded generation.

    Raises:
        InputError: There is none, it has no chat template, or no end token.
    """
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
    except (OSError, ValueError, KeyError) as error:
        raise InputError(
            f"{folder}: expected a tokenizer, found: {' '.join(str(error).split())[:200]}"
        ) from error
    if tokenizer.chat_template is None:
        raise InputError(
            f"{folder}: expected a chat template, found none. Use an instruction model."
        )
    if tokenizer.eos_token_id is None:
        raise InputError(f"{folder}: expected an end-of-sequence token, found none.")
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    tokenizer.padding_side = "left"
    return tokenizer


def template_fingerprint(tokenizer: Any) -> str:
    """Return the digest of the chat template's text."""
    return digest_bytes(str(tokenizer.chat_template).encode())


def messages(task: TaskSpec, question: str) -> list[dict[str, str]]:
    """Return the conversation that asks a question."""
    # str.replace, not str.format: braces in a question are text.
    user = {"role": "user", "content": task.template.replace("{question}", question)}
    return [{"role": "system", "content": task.system}, user] if task.system else [user]


def render(tokenizer: Any, task: TaskSpec, question: str) -> tuple[int, ...]:
    """Return the token ids of a question, ready for the model to answer, shape (T,).

    A chat template is a program by the model's author. transformers runs it in jinja's sandbox,
    which bounds a range and not the loops within loops.

    Raises:
        TemplateError: The chat template refuses the messages, or fails on them.
        InputError: It takes longer than RENDER_SECONDS (told in the main thread only).
    """
    asked = messages(task, question)
    with _bounded():
        try:
            ids = tokenizer.apply_chat_template(
                asked, add_generation_prompt=True, tokenize=True, return_dict=True
            )["input_ids"]
        except (ArithmeticError, LookupError, TypeError, ValueError, RecursionError) as error:
            raise TemplateError(str(error)) from error
    return tuple(int(i) for i in ids)


@contextmanager
def _bounded() -> Iterator[None]:
    """Bound the time of what stands inside."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals reach the main thread only
        return
    before = signal.signal(signal.SIGALRM, _over)
    signal.setitimer(signal.ITIMER_REAL, RENDER_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _over(number: int, frame: FrameType | None) -> None:
    raise InputError(
        f"the model's chat template: expected a prompt within {RENDER_SECONDS:g} s, found none. "
        "Look for loops within loops in its chat_template."
    )
