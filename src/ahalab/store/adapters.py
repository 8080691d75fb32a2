"""What a LoRA adapter's files say: its configuration against its tensors, and what it does.

Nothing here needs torch: a verifier reads the same files.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ahalab.errors import InputError
from ahalab.store.fingerprint import ADAPTER_CONFIG, ADAPTER_WEIGHTS, read_adapter_config
from ahalab.store.patterns import FIELDS, Patterns, by_pattern, read_patterns, require_cheap
from ahalab.store.safetensors import load_float32

FloatArray = npt.NDArray[np.float32]
# Settings that change the meaning of the weights, compared with what training says it used.
COMPARED = (
    "peft_type", "r", "lora_alpha", "rank_pattern", "alpha_pattern", "use_rslora", "use_dora",
    "bias", "modules_to_save", "layers_to_transform",
)  # fmt: skip
_LORA = re.compile(
    r"(?:base_model\.model\.)?(?P<module>.+)\.lora_(?P<side>(?:embedding_)?[AB])(?:\.weight)?"
)


@dataclass(frozen=True, slots=True)
class LoraModule:
    """One module that an adapter changes: its weight W becomes W + scale * B @ A."""

    name: str  # as the base names it
    rank: int
    scale: float
    a: FloatArray  # (r, in)
    b: FloatArray  # (out, r)


@dataclass(frozen=True, slots=True)
class Adapter:
    """An adapter's files, read and found to agree."""

    config: dict[str, Any]
    modules: tuple[LoraModule, ...]
    others: tuple[str, ...]  # tensors that are no lora_A or lora_B


def read_adapter(folder: Path) -> Adapter:
    """Read an adapter, and check its configuration against its tensors.

    Raises:
        InputError: A file is missing, torn or not safetensors; a tensor is not of a float type,
            not finite, or without its partner; or its rank is not the configuration's.
    """
    config = read_adapter_config(folder)
    rank, alpha = config.get("r"), config.get("lora_alpha")
    if not _is_rank(rank) or not _is_number(alpha):
        raise InputError(
            f"{folder / ADAPTER_CONFIG}: expected r >= 1 and lora_alpha, found {rank}, {alpha}."
        )
    path = folder / ADAPTER_WEIGHTS
    tensors = load_float32(path)
    for name, tensor in tensors.items():
        if not np.isfinite(tensor).all():
            raise InputError(f"{path}: expected finite weights, found NaN or inf in {name}.")
    pairs: dict[str, dict[str, FloatArray]] = {}
    others = []
    for name, tensor in tensors.items():
        match = _LORA.fullmatch(name)
        if match is None:
            others.append(name)
        else:
            pairs.setdefault(match["module"], {})[match["side"][-1]] = tensor
    place = folder / ADAPTER_CONFIG
    patterns: Patterns = {field: read_patterns(place, config, field) for field in FIELDS}
    require_cheap(place, patterns, pairs)
    modules = tuple(
        _module(folder, config, patterns, (name, pair)) for name, pair in sorted(pairs.items())
    )
    if not modules:
        raise InputError(f"{path}: expected pairs of lora_A and lora_B, found none.")
    return Adapter(config, modules, tuple(others))


def _is_rank(value: object) -> bool:
    return type(value) is int and value >= 1


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max  # nor NaN


def _module(
    folder: Path,
    config: Mapping[str, Any],
    patterns: Patterns,
    named: tuple[str, Mapping[str, FloatArray]],
) -> LoraModule:
    """Return one module, its two tensors compared with each other and with the configuration."""
    path, (name, pair) = folder / ADAPTER_WEIGHTS, named
    if len(pair) != 2:
        missing = "lora_B" if "A" in pair else "lora_A"
        raise InputError(f"{path}: expected a {missing} for {name}, found none.")
    a, b = pair["A"], pair["B"]
    if a.ndim < 2 or b.ndim < 2 or a.shape[0] != b.shape[1]:
        raise InputError(
            f"{path}: expected lora_A (r, in) and lora_B (out, r) for {name}, found {a.shape} and "
            f"{b.shape}."
        )
    rank = by_pattern(patterns["rank_pattern"], name) or config["r"]
    alpha = by_pattern(patterns["alpha_pattern"], name)
    alpha = config["lora_alpha"] if alpha is None else alpha
    if not _is_rank(rank) or not _is_number(alpha):
        raise InputError(
            f"{folder / ADAPTER_CONFIG}: expected a rank and an alpha for {name}, found {rank!r} "
            f"and {alpha!r}."
        )
    # Of one parameter for many experts, the ranks of all lie side by side.
    side_by_side = bool(config.get("target_parameters")) and a.shape[0] % rank == 0
    if a.shape[0] != rank and not side_by_side:
        raise InputError(
            f"{path}: expected rank {rank} ({ADAPTER_CONFIG}) for {name}, found {a.shape[0]}. "
            "Its alpha would be scaled by the wrong rank; restore the configuration."
        )
    scale = alpha / (math.sqrt(rank) if config.get("use_rslora") else rank)
    return LoraModule(name, rank, scale, a, b)


def unknown_effect(adapter: Adapter) -> str | None:
    """Say why an adapter's effect can't be computed from its files; None when it can."""
    if adapter.config.get("use_dora"):
        return "use_dora: what it does depends on the base's weights"
    if adapter.config.get("target_parameters"):
        return "target_parameters: the tensors of many experts lie in one"
    if adapter.others:
        return f"it holds more than lora_A and lora_B: {adapter.others[0]}"
    if any(module.a.ndim > 2 or module.b.ndim > 2 for module in adapter.modules):
        return "it changes convolutions"
    return None


def adapter_effect_norm(folder: Path) -> float | None:
    """Return the Frobenius norm of scaled B @ A over all modules: 0 when nothing was learned.

    None where the files alone do not tell what the adapter does (see `unknown_effect`).

    Raises:
        InputError: See `read_adapter`.
    """
    return effect_norm(read_adapter(folder))


def effect_norm(adapter: Adapter) -> float | None:
    """Return the norm of what an adapter that was read adds to its base; see above.

    Infinite where it is too large for a number.
    """
    if unknown_effect(adapter) is not None:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        total = sum(_squared_norm(module) for module in adapter.modules)
    return math.sqrt(total) if math.isfinite(total) else math.inf


def _squared_norm(module: LoraModule) -> float:
    """Return the sum of squares of scale * B @ A.

    B @ A may be a million times as large as the file: of (10**6, 1) and (1, 10**6), eight
    terabytes. Over the ranks it is sum((B' B) * (A A')), which is never larger than A and B.
    """
    a, b = (side.astype(np.float64) for side in (module.a, module.b))
    if a.shape[0] <= min(a.shape[1], b.shape[0]):
        squares = max(0.0, float(((b.T @ b) * (a @ a.T)).sum()))
    else:
        squares = float(np.square(b @ a).sum())
    norm = module.scale * math.sqrt(squares)
    return norm * norm  # infinite where it is too large; `**` would raise


def settings_that_differ(
    config: Mapping[str, Any], effective: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    """Yield (setting, in the record of training, in the adapter) wherever the two disagree.

    What a configuration leaves out, and what it sets to nothing, are one.
    """
    for key in COMPARED:
        if key in effective and _plain(config.get(key)) != _plain(effective[key]):
            yield key, effective[key], config.get(key)


def _plain(value: Any) -> Any:
    if value in (None, False, [], {}):
        return None
    return sorted(value, key=str) if isinstance(value, list) else value
