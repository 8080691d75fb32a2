"""What a LoRA adapter's files say: its configuration against its tensors, and what it does.

Nothing here needs torch: a verifier reads the same files.
"""

from __future__ import annotations

import math
import re
import sys
import warnings
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
_MAX_KEY, _MAX_REPEATS, _MAX_BRANCHES = 200, 3, 8
_MAX_STEPS = 10**9  # of all keys against all modules, at worst; some seconds
_PATTERNS = ("rank_pattern", "alpha_pattern")
Patterns = dict[str, list[tuple[re.Pattern[str], Any]]]  # field -> keys with their values, in order


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
    patterns: Patterns = {field: _patterns(folder, config, field) for field in _PATTERNS}
    _require_cheap(folder, patterns, pairs)
    modules = tuple(
        _module(folder, config, patterns, (name, pair)) for name, pair in sorted(pairs.items())
    )
    if not modules:
        raise InputError(f"{path}: expected pairs of lora_A and lora_B, found none.")
    return Adapter(config, modules, tuple(others))


def _is_rank(value: object) -> bool:
    return type(value) is int and value >= 1


def _is_number(value: object) -> bool:
    return type(value) in (int, float) and abs(value) <= sys.float_info.max  # type: ignore[operator]


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
    rank = _by_pattern(patterns["rank_pattern"], name) or config["r"]
    alpha = _by_pattern(patterns["alpha_pattern"], name)
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


def _patterns(
    folder: Path, config: Mapping[str, Any], field: str
) -> list[tuple[re.Pattern[str], Any]]:
    """Return what a pattern field asks for, its keys ready to be matched.

    Source:
        PEFT, `peft.utils.other.get_pattern_key`: `re.match(rf"(.*\\.)?({key})$", module)`.
    """
    pattern = config.get(field) or {}
    if not isinstance(pattern, dict):
        raise InputError(f"{folder / ADAPTER_CONFIG}: expected {field} to be an object.")
    found = []
    for key, value in pattern.items():
        costly = len(key) > _MAX_KEY or _repeats(key) > _MAX_REPEATS or _COSTLY_KEY.search(key)
        if costly or key.count("|") > _MAX_BRANCHES:
            raise InputError(
                f"{folder / ADAPTER_CONFIG}: expected plain module names in {field}, found "
                f"{key[:60]!r}. Refused: matching it could take for ever."
            )
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # `[[` means a set within a set one day
                found.append((re.compile(rf"(.*\.)?({key})$"), value))
        except (re.error, OverflowError, RecursionError, Warning) as error:
            raise InputError(
                f"{folder / ADAPTER_CONFIG}: expected a pattern in {field}, found {key[:60]!r}: "
                f"{error}."
            ) from error
    return found


def _repeats(key: str) -> int:
    return sum(key.count(sign) for sign in "*+?{")


def _require_cheap(folder: Path, patterns: Patterns, modules: Iterable[str]) -> None:
    """Refuse keys and modules that together could be matched for hours: both are the sender's.

    Counted is the worst case: after each dot, every repeat may end at every character, and every
    branch may be taken.
    """
    keys = [
        (_repeats(pattern.pattern) - 2, pattern.pattern.count("|"))  # ours are `.*` and `?`
        for field in patterns.values()
        for pattern, _ in field
    ]
    steps = sum(
        (name.count(".") + 1) * len(name) ** repeats << branches
        for name in modules
        for repeats, branches in keys
    )
    if steps > _MAX_STEPS:
        raise InputError(
            f"{folder / ADAPTER_CONFIG}: expected patterns and module names that are matched at "
            f"once, found some that could take {steps:.0e} steps. Refused: shorten them."
        )


def _by_pattern(pattern: list[tuple[re.Pattern[str], Any]], module: str) -> Any:
    """Return what a pattern field says of a module, or None; the first key that matches wins."""
    return next((value for key, value in pattern if key.match(module)), None)


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
    return module.scale**2 * squares


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
