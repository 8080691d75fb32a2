"""The base's weights, tensor by tensor, so that a difference can be named."""

from __future__ import annotations

from typing import Literal

from ahalab.records.base import Record


class Tensor(Record, frozen=True, kw_only=True):
    """One tensor as its file holds it."""

    name: str
    dtype: str  # as safetensors writes it: F32, BF16, ...
    shape: tuple[int, ...]
    sha256: str  # of its bytes, 64 hex digits


class BaseTensors(Record, frozen=True, kw_only=True):
    """Every tensor of the base, however its files are cut."""

    schema: Literal["ahalab.tensors/1"] = "ahalab.tensors/1"
    base_digest: str  # sha256 over one line per tensor (name, dtype, shape, sha256), sorted
    tensors: tuple[Tensor, ...]
