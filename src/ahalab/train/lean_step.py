"""The training pass over what has a gradient: same adapter, less time.

Where the policy gradient is the whole loss, a completion whose advantage is exactly 0 contributes
nothing to it, and TRL runs it forward and backward all the same (TRL_FACTS 20). Such rows are left
out, and so is padding that no kept row needs; the loss is scaled back to the normaliser of the
whole slice. Entropy and clip fractions are then those of the kept rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from ahalab.train.trl_compat import NORMALISED_BY

Inputs = dict[str, Any]


def kept_rows(inputs: Inputs) -> torch.Tensor:
    """Return which rows have an advantage, shape (B,), bool; a NaN has one."""
    advantages: torch.Tensor = inputs["advantages"]
    live = advantages != 0
    return live if live.dim() == 1 else live.any(dim=1)


def lean(inputs: Inputs, kept: torch.Tensor) -> Inputs:
    """Return the inputs of the kept rows without the columns that none of their answers reaches.

    Padding before the prompts stays: without it every position would be another one, equal in
    theory, and further from TRL's result than its own rounding.

    Args:
        inputs: A slice as TRL prepared it: tensors of shape (B, ...), numbers, None.
        kept: Rows to keep, shape (B,), at least one.
    """
    rows = kept.size(0)

    def of_rows(value: Any) -> bool:
        return torch.is_tensor(value) and value.dim() > 0 and value.size(0) == rows

    chosen = {n: value[kept] if of_rows(value) else value for n, value in inputs.items()}
    columns = chosen["completion_mask"].size(1)
    answer = max(1, int(chosen["completion_mask"].sum(dim=1).max()))
    for name, value in list(chosen.items()):
        of_answer = torch.is_tensor(value) and value.dim() == 2 and value.size(1) == columns
        if of_answer and not name.startswith("prompt_"):
            chosen[name] = value[:, :answer]
    return chosen


def scale_back(loss_type: str, inputs: Inputs, kept: torch.Tensor) -> float:
    """Return what the loss over the kept rows must be multiplied by to be that of the slice."""
    by = NORMALISED_BY[loss_type]
    if by == "batch":
        return 1.0
    if by == "rows":
        return float(kept.sum()) / kept.size(0)
    tokens = inputs["completion_mask"].sum(dim=1)
    return float(tokens[kept].sum()) / max(1.0, float(tokens.sum()))


def no_gradient(parameters: Mapping[str, torch.nn.Parameter]) -> torch.Tensor:
    """Return a loss of 0 whose gradient is zeros, not absent, on every trained parameter."""
    zeros = [(p * 0.0).sum() for p in parameters.values() if p.requires_grad]
    return torch.stack(zeros).sum()
