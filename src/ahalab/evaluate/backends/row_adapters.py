"""Adds each adapter's part to its own rows of a batch, layer by layer, on the base as it is.

PEFT's `adapter_names` does the same, but sets and removes hooks on every layer for every token and
gathers rows by index, which costs more than the adapters on a CPU. The terms and the order of
their sums are PEFT's, so the tokens are too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import torch
from torch.nn.functional import linear


@dataclass(frozen=True, slots=True)
class _Part:
    """One adapter's low-rank matrices at one layer."""

    a: torch.Tensor  # shape (r, in)
    b: torch.Tensor  # shape (out, r)
    b_bias: torch.Tensor | None  # shape (out,)
    scaling: float


class RowAdapters:
    """The adapters of the rows in a batch; `place` says which rows are whose."""

    def __init__(self) -> None:
        self._runs: list[tuple[str, slice]] = []

    def place(self, names: Sequence[str | None]) -> None:
        """Say whose rows come next: PEFT's name of the adapter of each, None for the base."""
        self._runs, at = [], 0
        for name, run in groupby(names):
            end = at + len(list(run))
            if name is not None:
                self._runs.append((name, slice(at, end)))
            at = end

    def add(self, parts: dict[str, _Part], x: torch.Tensor, output: torch.Tensor) -> None:
        """Add to a layer's output, (B, T, out), what adapters make of its input, (B, T, in)."""
        for name, rows in self._runs:
            if (part := parts.get(name)) is not None:
                inner = linear(x[rows].to(part.a.dtype), part.a)
                output[rows] += (linear(inner, part.b, part.b_bias) * part.scaling).to(output.dtype)


def has_plain_lora(model: Any) -> bool:
    """Say whether all that the adapters of a PEFT model change is plain LoRA on linear layers."""
    from peft.tuners.lora.layer import Linear
    from peft.tuners.tuners_utils import BaseTunerLayer
    from peft.utils import AuxiliaryTrainingWrapper

    layers = [m for m in model.modules() if isinstance(m, BaseTunerLayer)]
    return (
        bool(layers)
        and all(type(layer) is Linear and not layer.lora_variant for layer in layers)
        and not any(isinstance(m, AuxiliaryTrainingWrapper) for m in model.modules())
    )


@contextmanager
def adapters_by_row(model: Any) -> Iterator[RowAdapters]:
    """Put the adapters of a PEFT model of plain LoRA on the rows that are theirs, for a while."""
    from peft.tuners.lora.layer import Linear

    adapters, hooks = RowAdapters(), []
    for layer in model.modules():
        if isinstance(layer, Linear):
            hooks.append(layer.base_layer.register_forward_hook(_hook(adapters, _parts(layer))))
    try:
        with model.disable_adapter():
            yield adapters
    finally:
        for hook in hooks:
            hook.remove()


def _parts(layer: Any) -> dict[str, _Part]:
    return {
        name: _Part(
            a.weight, layer.lora_B[name].weight, layer.lora_B[name].bias, layer.scaling[name]
        )
        for name, a in layer.lora_A.items()
    }


def _hook(adapters: RowAdapters, parts: dict[str, _Part]) -> Any:
    def add(module: Any, arguments: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
        adapters.add(parts, arguments[0], output)

    return add
