"""Which weights answered: fingerprints of a base model, its tokenizer, and an adapter.

All are computed from files, without torch, so that a verifier on a CPU recomputes them.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from ahalab.errors import InputError
from ahalab.records.base import digest_bytes
from ahalab.store.safetensors import load_float32, tensor_digests

ADAPTER_WEIGHTS = "adapter_model.safetensors"
ADAPTER_CONFIG = "adapter_config.json"
# The configuration that changes what the tensors mean.
MEANING = (
    "peft_type",
    "r",
    "lora_alpha",
    "target_modules",
    "rank_pattern",
    "alpha_pattern",
    "use_rslora",
    "use_dora",
    "fan_in_fan_out",
    "bias",
    "modules_to_save",
    "layers_to_transform",
    "layers_pattern",
    "layer_replication",
    "exclude_modules",
    "target_parameters",
    "trainable_token_indices",
    "alora_invocation_tokens",
    "lora_bias",
)
PICKLED = (".bin", ".pt", ".pth", ".pkl", ".ckpt")


def _digest_lines(lines: list[str]) -> str:
    return digest_bytes("\n".join(sorted(lines)).encode())


def base_fingerprint(folder: Path) -> str:
    """Return the digest over every tensor (name, dtype, shape, bytes), however sharded.

    Raises:
        InputError: No safetensors there, or a damaged one.
    """
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        names = sorted(p.name for p in folder.iterdir()) if folder.is_dir() else []
        found = [name for name in names if name.endswith(PICKLED)]
        raise InputError(
            f"{folder}: expected model weights as safetensors, found {', '.join(found) or 'none'}. "
            "Convert them with save_pretrained(safe_serialization=True)."
        )
    return _digest_lines(
        [f"{e.name} {e.dtype} {list(e.shape)} {sha}" for f in files for e, sha in tensor_digests(f)]
    )


def tokenizer_fingerprint(folder: Path) -> str:
    """Return the digest of the tokenizer's own files.

    Raises:
        InputError: The folder holds no tokenizer.
    """
    names = ("tokenizer.json", "tokenizer.model", "vocab.json", "merges.txt", "added_tokens.json")
    present = [folder / n for n in names if (folder / n).is_file()]
    if not present:
        raise InputError(f"{folder}: expected a tokenizer (tokenizer.json), found none.")
    return _digest_lines([f"{p.name} {digest_bytes(p.read_bytes())}" for p in present])


def read_adapter_config(folder: Path) -> dict[str, Any]:
    """Return an adapter's configuration.

    Raises:
        InputError: It is missing, malformed, or asks for code of others to be run.
    """
    path = folder / ADAPTER_CONFIG
    try:
        config = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: expected an adapter configuration, found: {error}.") from error
    if not isinstance(config, dict):
        raise InputError(f"{path}: expected a JSON object.")
    if config.get("auto_mapping") is not None:
        raise InputError(f"{path}: expected no auto_mapping (it imports code), found one. Refused.")
    return config


def adapter_fingerprint(folder: Path) -> str:
    """Return the digest over an adapter's tensors and the configuration that changes their meaning.

    Raises:
        InputError: The adapter is not safetensors, or is malformed.
    """
    weights = folder / ADAPTER_WEIGHTS
    if not weights.is_file():
        found = sorted(p.name for p in folder.iterdir()) if folder.is_dir() else []
        raise InputError(
            f"{weights}: expected an adapter as safetensors, found {', '.join(found) or 'nothing'}."
        )
    config = read_adapter_config(folder)
    meaning = {key: config.get(key) for key in MEANING}
    for key in ("target_modules", "exclude_modules"):
        value = meaning[key]
        if isinstance(value, list):  # PEFT writes a set, in any order
            meaning[key] = sorted(value)
    lines = [f"{e.name} {e.dtype} {list(e.shape)} {sha}" for e, sha in tensor_digests(weights)]
    return _digest_lines([*lines, json.dumps(meaning, sort_keys=True)])


def adapter_effect_norm(folder: Path) -> float:
    """Return the Frobenius norm of scaled B @ A over all modules: 0 when nothing was learned.

    Raises:
        InputError: The adapter is malformed, or a tensor holds NaN or infinity.
    """
    config = read_adapter_config(folder)
    tensors = load_float32(folder / ADAPTER_WEIGHTS)
    rank, alpha = config.get("r"), config.get("lora_alpha")
    if (
        not isinstance(rank, int)
        or rank < 1
        or not isinstance(alpha, int | float)
        or not math.isfinite(alpha)
    ):
        raise InputError(
            f"{folder / ADAPTER_CONFIG}: expected r >= 1 and lora_alpha, found {rank}, {alpha}."
        )
    scale = alpha / (rank**0.5 if config.get("use_rslora") else rank)
    total = 0.0
    for name, tensor in tensors.items():
        if not np.isfinite(tensor).all():
            raise InputError(
                f"{folder / ADAPTER_WEIGHTS}: expected finite weights, found NaN or inf in {name}."
            )
    for name, a in tensors.items():
        if ".lora_A." in name:
            b = tensors.get(name.replace(".lora_A.", ".lora_B."))
            if b is None:
                raise InputError(
                    f"{folder / ADAPTER_WEIGHTS}: expected a lora_B for {name}, found none."
                )
            if a.ndim != 2 or b.ndim != 2 or a.shape[0] != b.shape[1]:
                raise InputError(
                    f"{folder / ADAPTER_WEIGHTS}: expected lora_A (r, in) and lora_B (out, r) "
                    f"for {name}, "
                    f"found {a.shape} and {b.shape}."
                )
            total += float(np.square(scale * (b.astype(np.float64) @ a.astype(np.float64))).sum())
    return math.sqrt(total)
