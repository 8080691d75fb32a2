"""How much memory one training process takes at its peak: parts that add up, each with its basis.

Sizes that follow from the plan are computed; the activations are measured on one forward pass,
since no formula holds for every architecture. What is not counted: short-lived buffers, and the
libraries' own memory on a GPU.

Held against a run: SmolLM2-135M in fp32 on a CPU, 16 rows of at most 312 tokens, rank 8, no rows
left out: 13.3 GB by this estimate, 12.3 GB resident at the peak of two steps.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch

from ahalab.records.plan import Plan
from ahalab.records.preflight import MemoryPart
from ahalab.train.probe import AdapterFit

MEASURED_TOKENS = 64
STATE_BYTES = {"sgd": 0, "adafactor": 0, "rmsprop": 4}  # of optimizer state per parameter
ADAM_BYTES = 8  # two moments in fp32
EIGHT_BIT_BYTES = 2
# On a CPU the C allocator keeps freed blocks between those in use: resident memory grew by 1.8 to
# 2.2 times what a forward pass of SmolLM2-135M saves (by 1.0 times with every block mapped alone).
HEAP_FACTOR = 2


def memory_parts(
    plan: Plan, model: Any, adapter: AdapterFit, longest_prompt: int, process_bytes: int
) -> tuple[MemoryPart, ...]:
    """Return what a training process holds at its peak.

    Args:
        plan: The plan.
        model: The base with its adapter in place.
        adapter: What the adapter trains.
        longest_prompt: Tokens of the longest training prompt.
        process_bytes: What the process held before it loaded the model; 0 on a GPU.

    Returns:
        Parts that add up: of generation (the cache) and the training pass (activations and
        logits), which follow one another, only the larger one is among them.
    """
    tokens = longest_prompt + int(plan.grpo["max_completion_length"])  # of the longest row
    training = _training_pass(plan, model, tokens)
    cache = _generation(plan, model, tokens)
    larger = training if sum(p.bytes for p in training) >= cache.bytes else [cache]
    return (*_held_throughout(plan, model, adapter, process_bytes), *larger)


def _held_throughout(
    plan: Plan, model: Any, adapter: AdapterFit, process_bytes: int
) -> list[MemoryPart]:
    optimizer = str(plan.grpo["optim"])
    weights = sum(p.nbytes for p in model.parameters()) - adapter.bytes
    parts = [
        MemoryPart(name="weights", bytes=weights, basis=f"the base in {plan.model.dtype}"),
        MemoryPart(
            name="adapter",
            bytes=2 * adapter.bytes + _state_bytes(optimizer) * adapter.parameters,
            basis=f"{adapter.parameters:,} parameters, gradients, state of {optimizer}",
        ),
    ]
    if process_bytes:
        basis = "python and its libraries, as measured"
        parts.insert(0, MemoryPart(name="process", bytes=process_bytes, basis=basis))
    return parts


def _training_pass(plan: Plan, model: Any, tokens: int) -> list[MemoryPart]:
    """Return what a forward pass keeps for its backward pass; only completions have logits."""
    rows = int(plan.grpo["per_device_train_batch_size"])
    written = int(plan.grpo["max_completion_length"])
    words = int(model.config.get_text_config().vocab_size)
    per_token, how = _activation_bytes(model, plan)
    parts = [
        MemoryPart(
            name="activations",
            bytes=rows * tokens * per_token,
            basis=f"{rows} rows x {tokens} tokens x {per_token:,} bytes, {how}",
        ),
        MemoryPart(
            name="logits",
            bytes=rows * written * words * 4,
            basis=f"{rows} rows x {written} tokens x {words:,} words in fp32",
        ),
    ]
    if plan.model.device == "cpu":
        held_back = MemoryPart(
            name="allocator",
            bytes=(HEAP_FACTOR - 1) * parts[0].bytes,
            basis="freed blocks that the C allocator keeps, as much again as the activations",
        )
        parts.insert(1, held_back)
    return parts


def _generation(plan: Plan, model: Any, tokens: int) -> MemoryPart:
    grpo, config = plan.grpo, model.config.get_text_config()
    rows = int(grpo["per_device_train_batch_size"]) * int(grpo["steps_per_generation"])
    per_token = _cache_bytes(config, next(model.parameters()).element_size())
    return MemoryPart(
        name="generation cache",
        bytes=rows * tokens * per_token,
        basis=f"{rows} rows x {tokens} tokens x {per_token:,} bytes",
    )


def _state_bytes(optimizer: str) -> int:
    if "8bit" in optimizer:
        return EIGHT_BIT_BYTES
    return STATE_BYTES.get(optimizer, ADAM_BYTES)


def _cache_bytes(config: Any, element_bytes: int) -> int:
    """Return the bytes of keys and values per token."""
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return int(2 * config.num_hidden_layers * heads * size * element_bytes)


def _activation_bytes(model: Any, plan: Plan) -> tuple[int, str]:
    """Return the bytes per token that a forward pass keeps for its backward pass, and how known."""
    measured = _saved_bytes(model) // MEASURED_TOKENS
    how = f"measured on a forward pass of {MEASURED_TOKENS} tokens"
    if not plan.grpo["gradient_checkpointing"]:
        return measured, how
    config = model.config.get_text_config()
    layers, size = int(config.num_hidden_layers), next(model.parameters()).element_size()
    # Every layer's input is kept, and one layer at a time is computed again.
    return layers * int(config.hidden_size) * size + measured // layers, f"checkpointed, {how}"


def _saved_bytes(model: Any) -> int:
    """Return the bytes of everything that one forward pass saves, the weights apart."""
    saved: dict[int, int] = {}
    held = {p.untyped_storage().data_ptr() for p in model.parameters()}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in held:
            saved[storage.data_ptr()] = storage.nbytes()
        return tensor

    vocabulary = int(model.config.get_text_config().vocab_size)
    ids = torch.arange(MEASURED_TOKENS, device=model.device)[None] % vocabulary  # (1, T)
    arguments: dict[str, Any] = {"input_ids": ids, "use_cache": False}
    if "logits_to_keep" in inspect.signature(model.forward).parameters:
        arguments["logits_to_keep"] = 1  # the logits are counted apart
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        output = model(**arguments)
    found = sum(saved.values())
    del output
    return found
