"""Which backend answers, by the plan; what it needs is imported when it is made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ahalab.evaluate.backends import Backend
from ahalab.plan.endpoint import backend_name
from ahalab.records.plan import Plan
from ahalab.store.versions import require_extra
from ahalab.tasks.render import load_tokenizer

EXTRA_OF = {"transformers": "train", "vllm": "vllm", "openai": "endpoint"}


def require_backend(plan: Plan) -> None:
    """Refuse to evaluate without what the plan's backend needs.

    Raises:
        MissingError: The packages that are missing, and the line to type.
    """
    name = backend_name(plan)
    require_extra(EXTRA_OF[name], f"evaluation by {name} needs")


def tokenizer_of(plan: Plan, folder: Path) -> Any:
    """Return the base's tokenizer: its files alone where no model is loaded.

    Raises:
        InputError: The folder holds none, or no chat template, or no end token.
    """
    if backend_name(plan) == "openai":
        from ahalab.evaluate.backends.local_tokenizer import LocalTokenizer

        return LocalTokenizer(folder)
    return load_tokenizer(folder)


def make_backend(plan: Plan, folder: Path, tokenizer: Any) -> Backend:
    """Return the plan's backend, ready to serve.

    Args:
        plan: The plan.
        folder: Of the base.
        tokenizer: From `tokenizer_of`.

    Raises:
        AhaLabError: It can't be had, with the reason.
    """
    name = backend_name(plan)
    if name == "openai":
        from ahalab.evaluate.backends.openai import OpenAIBackend

        return OpenAIBackend(plan, tokenizer)
    if name == "vllm":
        from ahalab.evaluate.backends.vllm import VLLMBackend

        return VLLMBackend(plan, folder, tokenizer)
    from ahalab.evaluate.backends.transformers import TransformersBackend

    return TransformersBackend(plan, folder, tokenizer)
