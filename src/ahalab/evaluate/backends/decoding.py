"""Decodes a batch token by token: a shared prompt is read once, a finished row leaves the batch.

`transformers.generate` does neither: it reads the prompt of k samples k times and runs every row to
the end of the longest. What it computes per row is the same; rows of other batch shapes differ in
the last bits of their logits, so the decoder is a field of the protocol.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from transformers import DynamicCache, GenerationConfig
from transformers.cache_utils import DynamicLayer
from transformers.generation.logits_process import (
    LogitsProcessorList,
    TemperatureLogitsWarper,
    TopPLogitsWarper,
)

from ahalab.evaluate.backends.row_adapters import RowAdapters, adapters_by_row, has_plain_lora
from ahalab.tasks.generation import padded

ROOM = 64  # tokens that a cache is given ahead
RELEASE_AT = 1 / 8  # of the rows in the batch: removing rows copies the cache of those that stay


@dataclass(frozen=True, slots=True)
class Row:
    """One completion to come."""

    prompt: tuple[int, ...]  # token ids, shape (T,)
    draws: int  # which row of random numbers it follows; rows of two sides may share one
    adapter: str | None = None  # PEFT's name of the adapter; None: the model as it stands
    limit: int | None = None  # tokens of its own, at most; None: as many as every row
    forbidden: tuple[int, ...] = ()  # token ids that its first token may not be


class RoomyLayer(DynamicLayer):  # type: ignore[misc]
    """A layer's keys and values with room ahead: a new token is written in place.

    The library's own layer copies all that it holds for every token, which took 28 % of a step of
    16 rows at 170 tokens of SmolLM2-135M on a CPU.
    """

    keys: torch.Tensor
    values: torch.Tensor
    is_initialized: bool

    def __init__(self) -> None:
        super().__init__()
        self._rooms: dict[str, torch.Tensor] = {}

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Append keys and values, each of shape (B, H, T, D), and return all that is held."""
        if (
            not self.is_initialized
        ):  # by hand: the library's method takes other arguments by version
            self.dtype, self.device = key_states.dtype, key_states.device
            self.keys, self.values = key_states.new_empty(0), value_states.new_empty(0)
            self.is_initialized = True
        self.keys = self._append("keys", key_states)
        self.values = self._append("values", value_states)
        return self.keys, self.values

    def _append(self, name: str, new: torch.Tensor) -> torch.Tensor:
        held: torch.Tensor = getattr(self, name)
        have = held.shape[-2] if held.numel() else 0
        end = have + new.shape[-2]
        room = self._rooms.get(name)
        if room is None or room.shape[-2] < end:
            room = new.new_empty((*new.shape[:-2], end + ROOM, new.shape[-1]))
            if have:
                room[..., :have, :] = held
            self._rooms[name] = room
        room[..., have:end, :] = new
        return room[..., :end, :]

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        """Go on with these rows alone."""
        super().batch_select_indices(indices)
        self._rooms.clear()  # what is held now is a copy of its own


def can_release_rows(model: Any) -> bool:
    """Say whether a model's whole memory of a text is a cache of keys and values."""
    return not getattr(model, "_is_stateful", False)


@torch.inference_mode()
def decode(
    model: Any, rows: Sequence[Row], generation: GenerationConfig, seed: int
) -> list[list[int]]:
    """Generate one completion per row.

    Args:
        model: A causal language model, or a PEFT model around one, in eval mode.
        rows: R rows.
        generation: `max_new_tokens`, `eos_token_id`, `pad_token_id`, `do_sample`, `temperature` and
            `top_p` are followed; the fields of `greedy_fields` leave every other one neutral.
        seed: Of the batch's random numbers, when sampling.

    Returns:
        Generated ids per row, up to its limit of them; cut them at the first end token.
    """
    by_row = any(row.adapter for row in rows) and has_plain_lora(model)
    with adapters_by_row(model) if by_row else nullcontext() as adapters:
        return _decode(_Decoding(model, adapters), rows, generation, seed)


def _decode(
    state: _Decoding, rows: Sequence[Row], generation: GenerationConfig, seed: int
) -> list[list[int]]:
    _read_prompts(state, rows, generation)
    choose = _Chooser(rows, generation, seed, state.device)
    ends = torch.tensor(generation.eos_token_id, device=state.device)
    written = torch.full((len(rows), generation.max_new_tokens), -1, device=state.device)  # (R, C)
    ended = torch.zeros(len(rows), dtype=torch.bool, device=state.device)  # of the rows held
    own = [generation.max_new_tokens if row.limit is None else row.limit for row in rows]
    limits = torch.tensor(own, device=state.device)
    for number, row in enumerate(rows):
        if row.forbidden:
            state.logits[number, list(row.forbidden)] = -torch.inf
    for at in range(generation.max_new_tokens):
        tokens = choose(state.logits, state.held)  # (H,)
        written[state.held, at] = tokens
        ended |= torch.isin(tokens, ends) | (limits[state.held] == at + 1)
        if at + 1 == generation.max_new_tokens or bool(ended.all()):
            break
        if float(ended.float().mean()) >= RELEASE_AT:
            stay = (~ended).nonzero().squeeze(-1)
            state.keep(stay)
            tokens, ended = tokens[stay], ended[stay]
        state.step(tokens)
    # A row that has ended is written on until it leaves the batch.
    return [row[: min(_length(row), most)] for row, most in zip(written.tolist(), own, strict=True)]


def _length(row: list[int]) -> int:
    return row.index(-1) if -1 in row else len(row)


class _Decoding:
    """The rows that are still in the batch: their cache, mask, positions and next logits."""

    def __init__(self, model: Any, by_row: RowAdapters | None) -> None:
        self.model, self.device = model, model.device
        self.by_row = by_row  # None: PEFT is told the adapter of each row, where any has one
        self.adapters: list[str | None] = []  # of each row held, (H,)
        # PEFT's forward takes anything; what the model takes tells whether it knows positions.
        inner = model.get_base_model() if hasattr(model, "get_base_model") else model
        self.takes = frozenset(inspect.signature(inner.forward).parameters)
        self.cache = DynamicCache(config=inner.config)
        self.cache.layers = [
            RoomyLayer() if type(layer) is DynamicLayer else layer for layer in self.cache.layers
        ]
        # Renamed in transformers 5.
        self.cache_name = "cache" if "cache" in self.takes else "past_key_values"
        # Which row each one held is, (H,).
        self.held = self.mask = self.last = self.logits = torch.empty(0)

    def forward(self, ids: torch.Tensor, positions: torch.Tensor) -> None:
        """Read token ids, shape (H, T), and keep the logits of the last, shape (H, V)."""
        more: dict[str, Any] = {self.cache_name: self.cache}
        if "position_ids" in self.takes:
            more["position_ids"] = positions
        if "logits_to_keep" in self.takes:
            more["logits_to_keep"] = 1
        if self.by_row is not None:
            self.by_row.place(self.adapters)
        elif any(name is not None for name in self.adapters):
            more["adapter_names"] = [name or "__base__" for name in self.adapters]
        output = self.model(
            input_ids=ids,
            attention_mask=self.mask,
            use_cache=True,
            **more,
        )
        self.last, self.logits = positions[:, -1:], output.logits[:, -1]

    def step(self, tokens: torch.Tensor) -> None:
        """Read one more token per row, shape (H,)."""
        self.mask = torch.cat([self.mask, torch.ones_like(tokens)[:, None]], dim=1)
        self.forward(tokens[:, None], self.last + 1)

    def keep(self, rows: torch.Tensor) -> None:
        """Go on with these rows alone, by their place in the batch; one may be taken twice."""
        self.cache.batch_select_indices(rows)
        self.mask, self.last, self.logits = self.mask[rows], self.last[rows], self.logits[rows]
        self.held = self.held[rows]
        self.adapters = [self.adapters[i] for i in rows.tolist()]


def _read_prompts(state: _Decoding, rows: Sequence[Row], generation: GenerationConfig) -> None:
    """Read every different prompt once, and hold one copy of what came of it per row."""
    different = list(dict.fromkeys((row.adapter, row.prompt) for row in rows))
    ids, mask = padded([prompt for _, prompt in different], int(generation.pad_token_id))
    state.adapters = [adapter for adapter, _ in different]
    state.held = torch.arange(len(different), device=state.device)
    state.mask = torch.tensor(mask, device=state.device)  # (U, T)
    positions = (state.mask.cumsum(-1) - 1).clamp(min=0)
    state.forward(torch.tensor(ids, device=state.device), positions)
    if len(different) < len(rows):
        place = {key: number for number, key in enumerate(different)}
        copies = [place[row.adapter, row.prompt] for row in rows]
        state.keep(torch.tensor(copies, device=state.device))
    state.held = torch.arange(len(rows), device=state.device)


class _Chooser:
    """Chooses the next token of each row: the likeliest, or one drawn by the batch's seed."""

    def __init__(
        self, rows: Sequence[Row], generation: GenerationConfig, seed: int, device: torch.device
    ) -> None:
        self.sampled = bool(generation.do_sample)
        self.draws = torch.tensor([row.draws for row in rows], device=device)
        self.random = torch.Generator(device).manual_seed(seed)
        self.warpers = LogitsProcessorList()
        if self.sampled:
            self.warpers.append(TemperatureLogitsWarper(float(generation.temperature)))
            if generation.top_p < 1:
                self.warpers.append(TopPLogitsWarper(float(generation.top_p)))

    def __call__(self, logits: torch.Tensor, held: torch.Tensor) -> torch.Tensor:
        """Return token ids, shape (H,), from logits, shape (H, V)."""
        if not self.sampled:
            return logits.argmax(-1)
        scores = self.warpers(held[:, None], logits.float())
        # An exponential race draws from the softmax (Gumbel 1954). Every row keeps its own
        # random numbers, so that a row that left shifts nobody's.
        shape = (int(self.draws.max()) + 1, logits.shape[-1])
        race = torch.empty(shape, device=logits.device).exponential_(generator=self.random)
        drawn: torch.Tensor = (scores.softmax(-1) / race[self.draws[held]]).argmax(-1)
        return drawn
