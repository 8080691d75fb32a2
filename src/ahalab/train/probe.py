"""What a base, its chat template and the plan's adapter do together, before the first step."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from peft import get_peft_model
from peft.tuners.lora import LoraLayer

from ahalab.records.plan import Plan
from ahalab.store.models import quiet_libraries
from ahalab.tasks.chat_template import TemplateRefusedError
from ahalab.train.trl_compat import lora_config


def training_generation(
    plan: Plan, end_ids: Iterable[int], pad_id: int, seconds: float
) -> dict[str, Any]:
    """Return the generation fields of training, and a time after which writing is given up.

    Every field is set: what is not would come from the model's own configuration (TRL_FACTS 6).
    """
    grpo = plan.grpo
    return {
        "do_sample": True,
        "temperature": grpo["temperature"],
        "top_p": grpo["top_p"],
        "top_k": grpo["top_k"],
        "min_p": grpo["min_p"],
        "repetition_penalty": grpo["repetition_penalty"],
        "max_new_tokens": int(grpo["max_completion_length"]),
        "max_time": seconds,
        "eos_token_id": sorted(end_ids),
        "pad_token_id": pad_id,
        "bos_token_id": None,
        **(grpo.get("generation_kwargs") or {}),
    }


def after_assistant(tokenizer: Any) -> tuple[int, ...]:
    """Return the tokens that the chat template writes after an assistant's turn, shape (T,).

    None where it takes no such turn.

    Raises:
        InputError: It is out of its bounds (`tasks/chat_template.py`).
    """
    said = "The answer is 7."
    turns = [{"role": "user", "content": "Ask."}, {"role": "assistant", "content": said}]
    try:
        text = tokenizer.apply_chat_template(turns, tokenize=False)
    except TemplateRefusedError:
        return ()
    ids = tokenizer(text.rpartition(said)[2], add_special_tokens=False)["input_ids"]
    return tuple(int(i) for i in ids)


@dataclass(frozen=True, slots=True)
class AdapterFit:
    """Where the plan's adapter found a place in the model."""

    layers: int  # adapted
    parameters: int  # trained
    bytes: int  # of them
    unmatched: tuple[str, ...]  # target modules of the plan that the model has none of
    names: tuple[str, ...]  # module names that could be adapted
    fault: str | None  # why PEFT can't adapt the model


def fit_adapter(model: Any, plan: Plan) -> AdapterFit:
    """Put the plan's adapter into a model, which stays changed."""
    names = [name for name, module in model.named_modules() if _adaptable(module)]
    ends = tuple(sorted({name.rpartition(".")[2] for name in names}))
    targets = plan.lora.get("target_modules")
    unmatched: tuple[str, ...] = ()
    if isinstance(targets, list):
        unmatched = tuple(t for t in targets if not any(f".{n}".endswith(f".{t}") for n in names))
    try:
        with quiet_libraries():
            adapted = get_peft_model(model, lora_config(plan))
    except ValueError as error:  # nothing matches, or something that can't be adapted does
        return AdapterFit(0, 0, 0, unmatched, ends, " ".join(str(error).split())[:200])
    trained = [p for p in adapted.parameters() if p.requires_grad]
    return AdapterFit(
        sum(isinstance(module, LoraLayer) for module in adapted.modules()),
        sum(p.numel() for p in trained),
        sum(p.nbytes for p in trained),
        unmatched,
        ends,
        None,
    )


def _adaptable(module: Any) -> bool:
    return isinstance(module, torch.nn.Linear | torch.nn.Embedding) or (
        type(module).__name__ == "Conv1D"  # of transformers: GPT-2's linear layer
    )
