"""The library's own decoding loop over one batch ([train] needed).

Validation and pre-flight use it, and the evaluation of models whose rows can't leave a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ahalab.tasks.generation import padded


def generate_whole(
    model: Any, prompts: Sequence[tuple[int, ...]], generation: Any, **more: Any
) -> list[list[int]]:
    """Generate one completion per prompt with `model.generate`.

    Args:
        model: A causal language model, or a PEFT model around one.
        prompts: Token ids per prompt, each of shape (T_i,).
        generation: A `GenerationConfig` with every field set.
        more: Handed on to the model.

    Returns:
        Generated ids, each of shape (C,): as long as the longest, padded behind their end token.
    """
    import torch

    rows, marks = padded(prompts, int(generation.pad_token_id))
    output = model.generate(
        input_ids=torch.tensor(rows, device=model.device),  # (B, T)
        attention_mask=torch.tensor(marks, device=model.device),
        generation_config=generation,
        **more,
    )
    written: list[list[int]] = output[:, len(rows[0]) :].tolist()
    return written
