"""Reads safetensors files without torch: header, bounds, and the bytes of each tensor.

Format: 8 bytes little-endian header length, JSON header, tensor bytes. Source:
https://github.com/huggingface/safetensors#format
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ahalab.errors import InputError
from ahalab.plain_files import open_plain
from ahalab.records.foreign import read_json

MAX_HEADER_BYTES = 1 << 20
MAX_AXES = 8  # of a tensor; numpy takes 64, and models have up to five
MAX_TOLD = 200  # characters of a header that an error quotes
ITEM_BYTES = {
    "F64": 8,
    "F32": 4,
    "F16": 2,
    "BF16": 2,
    "I64": 8,
    "I32": 4,
    "I16": 2,
    "I8": 1,
    "U64": 8,
    "U32": 4,
    "U16": 2,
    "U8": 1,
    "BOOL": 1,
    "F8_E4M3": 1,
    "F8_E5M2": 1,
}


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """Where one tensor lies in its file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int  # offset in the file
    end: int


def tensor_entries(path: Path) -> list[TensorEntry]:
    """Return the tensors of a file, in name order.

    Raises:
        InputError: Not a safetensors file, a header over 1 MB, or tensors that do not fill the
            file exactly.
    """
    try:
        with open_plain(path) as file:
            length = int.from_bytes(file.read(8), "little")
            if not 2 <= length <= MAX_HEADER_BYTES:
                raise ValueError(f"a header of {length} bytes")
            header = read_json(file.read(length))
        entries = [
            _entry(name, spec, 8 + length)
            for name, spec in header.items()
            if name != "__metadata__"
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{path}: expected a safetensors file, found: {error}.") from error
    at = 8 + length
    for entry in sorted(entries, key=lambda e: (e.start, e.end)):
        size = ITEM_BYTES[entry.dtype] * math.prod(entry.shape)
        if entry.start != at or entry.end - entry.start != size:
            raise InputError(
                f"{path}: expected tensor {entry.name} to lie at byte {at}, {size} long."
            )
        at = entry.end
    if at != path.stat().st_size:
        raise InputError(
            f"{path}: expected {at} bytes, as its header says, found {path.stat().st_size}. "
            "Restore the file."
        )
    return sorted(entries, key=lambda e: e.name)


def _entry(name: str, spec: dict[str, object], base: int) -> TensorEntry:
    dtype, shape, offsets = spec["dtype"], spec["shape"], spec["data_offsets"]
    if dtype not in ITEM_BYTES or not isinstance(shape, list) or not isinstance(offsets, list):
        raise ValueError(f"tensor {name:.{MAX_TOLD}} of dtype {dtype!r:.{MAX_TOLD}}")
    start, end = offsets
    if any(type(n) is not int or n < 0 for n in (*shape, start, end)):
        told = f"shape {shape!r:.{MAX_TOLD}} at {offsets!r:.{MAX_TOLD}}"
        raise ValueError(f"tensor {name:.{MAX_TOLD}} of {told}")
    # Axes of 2**40 and 2**40 beside one of 0 take no byte, and no array can have them.
    if len(shape) > MAX_AXES or math.prod(n or 1 for n in shape) >> 60:
        raise ValueError(f"tensor {name:.{MAX_TOLD}} of shape {shape!r:.{MAX_TOLD}}")
    if not name.isprintable():  # a line break would let one name stand for two tensors in a digest
        raise ValueError(f"a tensor named {name!r:.{MAX_TOLD}}")
    return TensorEntry(name, str(dtype), tuple(shape), base + start, base + end)


def tensor_digests(path: Path) -> Iterator[tuple[TensorEntry, str]]:
    """Yield each tensor with the sha256 of its bytes, in name order."""
    entries = tensor_entries(path)
    with open_plain(path) as file:
        for entry in entries:
            file.seek(entry.start)
            remaining, digest = entry.end - entry.start, hashlib.sha256()
            while remaining:
                chunk = file.read(min(remaining, 1 << 22))
                if not chunk:
                    raise InputError(f"{path}: expected {remaining} more bytes, found the end.")
                digest.update(chunk)
                remaining -= len(chunk)
            yield entry, digest.hexdigest()


def load_float32(path: Path) -> dict[str, npt.NDArray[np.float32]]:
    """Return every float tensor of a (small) file as float32.

    Raises:
        InputError: A tensor is not of a float type.
    """
    tensors = {}
    with open_plain(path) as file:
        for entry in tensor_entries(path):
            file.seek(entry.start)
            payload = file.read(entry.end - entry.start)
            tensors[entry.name] = _as_float32(payload, entry, path).reshape(entry.shape)
    return tensors


def _as_float32(payload: bytes, entry: TensorEntry, path: Path) -> npt.NDArray[np.float32]:
    match entry.dtype:
        case "F32" | "F16" | "F64":
            kind = {"F32": "<f4", "F16": "<f2", "F64": "<f8"}[entry.dtype]
            with np.errstate(over="ignore"):  # becomes inf, which is refused
                return np.frombuffer(payload, dtype=kind).astype(np.float32)
        case "BF16":  # the upper half of a float32
            return (np.frombuffer(payload, dtype="<u2").astype(np.uint32) << 16).view(np.float32)
    raise InputError(f"{path}: expected float tensors, found {entry.name} of dtype {entry.dtype}.")
