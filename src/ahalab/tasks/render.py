"""Puts a question to a model: messages, chat template, token ids ([train] needed)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ahalab.errors import InputError
from ahalab.records.base import digest_bytes
from ahalab.records.plan import TaskSpec
from ahalab.tasks.chat_template import bound_chat_templates


def load_tokenizer(folder: Path) -> Any:
    """Return the tokenizer of a model folder, set up for left-padded generation.

    Its chat template is rendered in a process of its own from here on, whoever asks for it.

    Raises:
        InputError: There is none, it has no chat template, or no end token.
        MissingError: The installed transformers can't be bounded.
    """
    from transformers import AutoTokenizer

    bound_chat_templates()
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


def render(
    tokenizer: Any,
    task: TaskSpec,
    questions: Sequence[str],
    arguments: Mapping[str, Any] | None = None,
) -> list[tuple[int, ...]]:
    """Return the token ids of questions, ready for the model to answer, shape (N, T) with own Ts.

    Args:
        tokenizer: The model's.
        task: How a question is put.
        questions: Their texts.
        arguments: What the chat template is handed besides (`plan/templates.py`).

    Raises:
        TemplateRefusedError: The chat template refuses the messages, or fails on them.
        InputError: It is out of its bounds (`chat_template.py`).
    """
    if not questions:
        return []
    found = tokenizer.apply_chat_template(
        [messages(task, question) for question in questions],
        add_generation_prompt=True,
        tokenize=True,
        return_dict=True,
        **(arguments or {}),
    )
    return [tuple(int(i) for i in ids) for ids in found["input_ids"]]
