"""Whether the base's weights in memory are what they were: adapters must leave no trace in them."""

from __future__ import annotations

import zlib
from typing import Any

import torch

from ahalab.errors import InputError
from ahalab.store.fingerprint import named_difference

CHUNK = 1 << 26  # bytes at a time: of weights on a device, no more lie in memory twice


def held_weights(model: Any) -> dict[str, str]:
    """Return a checksum of every weight that a model holds, by name.

    Tensors that lie in the same memory (a head tied to the embedding) are summed once, and named
    by the first of them: a tie that is cut is a difference too. Buffers that are computed anew
    when the model is loaded are left out.

    CRC-32 costs half of what sha256 does, and any one change shows; it guards against accidents,
    and is no evidence.
    """
    found: dict[str, str] = {}
    first: dict[tuple[Any, ...], str] = {}
    for name, tensor in model.state_dict().items():
        if not isinstance(tensor, torch.Tensor):
            continue
        place = (tensor.device, tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype)
        if tensor.numel() and place in first:
            found[name] = f"tied to {first[place]}"
            continue
        first[place] = name
        found[name] = f"{tensor.dtype} {list(tensor.shape)} {_checksum(tensor)}"
    return found


def _checksum(tensor: torch.Tensor) -> str:
    flat = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
    total = 0
    for at in range(0, len(flat), CHUNK):
        total = zlib.crc32(flat[at : at + CHUNK].cpu().numpy().data, total)
    return f"{total:08x}"


def require_unchanged(before: dict[str, str], after: dict[str, str], what: str) -> None:
    """Refuse a base whose weights in memory changed while adapters were attached.

    Raises:
        InputError: The tensors are named.
    """
    difference = named_difference(before, after)
    if difference is not None:
        raise InputError(
            f"{what}: expected the base's weights in memory as they were loaded, found changes "
            f"after adapters were removed: {difference}. Whatever answered since then was another "
            "base: remove those answers, and the adapter that changes its base."
        )
