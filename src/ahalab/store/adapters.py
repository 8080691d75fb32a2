"""What a LoRA adapter's files say: its configuration against its tensors, and what it does.

Nothing here needs torch: a verifier reads the same files.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ahalab.errors import InputError
from ahalab.store.fingerprint import ADAPTER_CONFIG, ADAPTER_WEIGHTS, read_adapter_config
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
# Keys of PEFT's patterns are regular expressions; these could make a match take for ever.
_COSTLY_KEY = re.compile(r"\)[*+{?]|\\[1-9]|\(\?")
_MAX_KEY, _MAX_REPEATS = 200, 3


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
    modules = tuple(_module(folder, config, name, pair) for name, pair in sorted(pairs.items()))
    if not modules:
        raise InputError(f"{path}: expected pairs of lora_A and lora_B, found none.")
    return Adapter(config, modules, tuple(others))


def _is_rank(value: object) -> bool:
    return type(value) is int and value >= 1


def _is_number(value: object) -> bool:
    return type(value) in (int, float) and math.isfinite(value)  # type: ignore[arg-type]


def _module(
    folder: Path, config: Mapping[str, Any], name: str, pair: Mapping[str, FloatArray]
) -> LoraModule:
    """Return one module, its two tensors compared with each other and with the configuration."""
    path = folder / ADAPTER_WEIGHTS
    if len(pair) != 2:
        missing = "lora_B" if "A" in pair else "lora_A"
        raise InputError(f"{path}: expected a {missing} for {name}, found none.")
    a, b = pair["A"], pair["B"]
    if a.ndim < 2 or b.ndim < 2 or a.shape[0] != b.shape[1]:
        raise InputError(
            f"{path}: expected lora_A (r, in) and lora_B (out, r) for {name}, found {a.shape} and "
            f"{b.shape}."
        )
    rank = _by_pattern(folder, config, "rank_pattern", name) or config["r"]
    alpha = _by_pattern(folder, config, "alpha_pattern", name)
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


def _by_pattern(folder: Path, config: Mapping[str, Any], field: str, module: str) -> Any:
    """Return what a pattern field says of a module, or None; the first key that matches wins.

    Source:
        PEFT, `peft.utils.other.get_pattern_key`.
    """
    pattern = config.get(field) or {}
    if not isinstance(pattern, dict):
        raise InputError(f"{folder / ADAPTER_CONFIG}: expected {field} to be an object.")
    for key, value in pattern.items():
        repeats = sum(key.count(sign) for sign in "*+{")
        if len(key) > _MAX_KEY or repeats > _MAX_REPEATS or _COSTLY_KEY.search(key):
            raise InputError(
                f"{folder / ADAPTER_CONFIG}: expected plain module names in {field}, found "
                f"{key[:60]!r}. Refused: matching it could take for ever."
            )
        try:
            matched = re.match(rf"(.*\.)?({key})$", module)
        except re.error as error:
            raise InputError(
                f"{folder / ADAPTER_CONFIG}: expected a pattern in {field}, found {key[:60]!r}: "
                f"{error}."
            ) from error
        if matched:
            return value
    return None


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
    """Return the norm of what an adapter that was read adds to its base; see above."""
    if unknown_effect(adapter) is not None:
        return None
    total = 0.0
    for module in adapter.modules:
        product = module.b.astype(np.float64) @ module.a.astype(np.float64)
        total += float(np.square(module.scale * product).sum())
    return math.sqrt(total)


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
