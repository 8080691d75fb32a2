"""Which weights answered: fingerprints of a base model, its tokenizer, and an adapter.

All are computed from files, without torch, so that a verifier on a CPU recomputes them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ahalab.errors import InputError
from ahalab.plain_files import open_plain, read_plain
from ahalab.records.base import digest_bytes
from ahalab.records.foreign import read_json
from ahalab.records.weights import Tensor
from ahalab.store.json_files import read_object
from ahalab.store.safetensors import tensor_digests

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
# The rest of it, with its defaults: left out of the digest where an adapter does not ask for it.
MEANING_WHEN_SET: Mapping[str, object] = MappingProxyType(
    {
        "init_lora_weights": True,  # otherwise the base itself may have been changed for it
        "use_qalora": False,
        "use_bdlora": None,
        "arrow_config": None,
        "kasa_config": None,
        "velora_config": None,
        "monteclora_config": None,
        "megatron_config": None,
        "ensure_weight_tying": False,
    }
)
# What a tokenizer's configuration may set that changes ids or text.
TOKENIZER_SETTINGS = (
    "add_bos_token",
    "add_eos_token",
    "add_prefix_space",
    "clean_up_tokenization_spaces",
    "split_special_tokens",
)
SPECIAL_TOKENS = (
    "bos_token",
    "eos_token",
    "unk_token",
    "sep_token",
    "pad_token",
    "cls_token",
    "mask_token",
    "additional_special_tokens",
    "extra_special_tokens",
)
MAX_CONFIG_BYTES = 4 << 20  # of an adapter's configuration
PICKLED = (".bin", ".pt", ".pth", ".pkl", ".ckpt")


def _digest_lines(lines: list[str]) -> str:
    return digest_bytes("\n".join(sorted(lines)).encode())


def base_tensors(folder: Path) -> tuple[Tensor, ...]:
    """Return every tensor of a base with the digest of its bytes, however sharded, in name order.

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
    tensors = [
        Tensor(name=e.name, dtype=e.dtype, shape=e.shape, sha256=sha)
        for file in files
        for e, sha in tensor_digests(file)
    ]
    return tuple(sorted(tensors, key=lambda t: t.name))


def weights_digest(tensors: Iterable[Tensor]) -> str:
    """Return the digest over tensors: name, dtype, shape and bytes of each."""
    return _digest_lines([f"{t.name} {t.dtype} {list(t.shape)} {t.sha256}" for t in tensors])


def weights_difference(expected: Iterable[Tensor], found: Iterable[Tensor]) -> str | None:
    """Say which tensors differ, are missing or were not expected; None when none is."""
    ours = {t.name: t for t in expected}
    theirs = {t.name: t for t in found}
    return named_difference(ours, theirs)


def named_difference(expected: Mapping[str, object], found: Mapping[str, object]) -> str | None:
    """Say which names of two mappings differ, are missing or were not expected; None: none."""
    parts = (
        ("differs", [n for n, v in expected.items() if n in found and found[n] != v]),
        ("is missing", [n for n in expected if n not in found]),
        ("is not expected", [n for n in found if n not in expected]),
    )
    told = [
        f"{min(names)} {what}" + (f", and {len(names) - 1} more" if len(names) > 1 else "")
        for what, names in parts
        if names
    ]
    return "; ".join(told) or None


def tokenizer_fingerprint(folder: Path) -> str:
    """Return the digest of the tokenizer's own files, and of what its configuration adds to them.

    Raises:
        InputError: The folder holds no tokenizer, or its configuration is malformed.
    """
    names = ("tokenizer.json", "tokenizer.model", "vocab.json", "merges.txt", "added_tokens.json")
    present = [folder / n for n in names if (folder / n).is_file()]
    if not present:
        raise InputError(f"{folder}: expected a tokenizer (tokenizer.json), found none.")
    lines = [f"{p.name} {digest_bytes(read_plain(p))}" for p in present]
    if settings := tokenizer_settings(folder):
        lines.append(f"settings {json.dumps(settings, sort_keys=True)}")
    return _digest_lines(lines)


def tokenizer_settings(folder: Path) -> dict[str, Any]:
    """Return what `tokenizer_config.json` changes about token ids or text, beyond tokenizer.json.

    Empty for most models: their special tokens stand in tokenizer.json already, and nothing is
    cleaned up or added.

    Raises:
        InputError: A file is malformed.
    """
    config = read_object(folder / "tokenizer_config.json")
    settings = {key: config[key] for key in TOKENIZER_SETTINGS if config.get(key)}
    listed = read_object(folder / "tokenizer.json").get("added_tokens") or []
    known = {t.get("content") for t in listed if isinstance(t, dict) and t.get("special")}
    added = config.get("added_tokens_decoder")
    described = added.values() if isinstance(added, dict) else ()
    special = [t for t in described if isinstance(t, dict) and t.get("special")]
    named = [text for key in SPECIAL_TOKENS for text in _texts(config.get(key))]
    named += _texts(special)
    if unknown := sorted(set(named) - known):
        settings["special_tokens"] = unknown
    return settings


def _texts(value: object) -> list[str]:
    """Return the tokens that a configuration names: a text, a described token, or several."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        inner = [value["content"]] if "content" in value else list(value.values())
        return [text for one in inner for text in _texts(one)]
    return [text for one in value for text in _texts(one)] if isinstance(value, list) else []


def read_adapter_config(folder: Path) -> dict[str, Any]:
    """Return an adapter's configuration.

    Raises:
        InputError: It is missing, malformed, or asks for code of others to be run.
    """
    path = folder / ADAPTER_CONFIG
    try:
        with open_plain(path) as file:
            payload = file.read(MAX_CONFIG_BYTES + 1)
        if len(payload) > MAX_CONFIG_BYTES:
            raise ValueError(f"more than {MAX_CONFIG_BYTES} bytes")
        config = read_json(payload)
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: expected an adapter configuration, found: {error}.") from error
    if not isinstance(config, dict):
        raise InputError(f"{path}: expected a JSON object.")
    if config.get("auto_mapping") is not None:
        raise InputError(f"{path}: expected no auto_mapping (it imports code), found one. Refused.")
    return config


def require_weights(folder: Path) -> Path:
    """Return an adapter's weights file.

    Raises:
        InputError: There is none; what lies there instead is named.
    """
    weights = folder / ADAPTER_WEIGHTS
    if not weights.is_file():
        found = sorted(p.name for p in folder.iterdir()) if folder.is_dir() else []
        pickled = any(name.endswith(PICKLED) for name in found)
        why = " Pickled weights are refused: they can run code." if pickled else ""
        raise InputError(
            f"{weights}: expected an adapter as safetensors, found "
            f"{', '.join(found) or 'nothing'}.{why}"
        )
    return weights


def adapter_fingerprint(folder: Path) -> str:
    """Return the digest over an adapter's tensors and the configuration that changes their meaning.

    Raises:
        InputError: The adapter is not safetensors, or is malformed.
    """
    weights = require_weights(folder)
    config = read_adapter_config(folder)
    meaning = {key: config.get(key) for key in MEANING}
    meaning |= {
        key: config[key]
        for key, default in MEANING_WHEN_SET.items()
        if config.get(key, default) not in (default, None)
    }
    for key in ("target_modules", "exclude_modules"):
        value = meaning[key]
        if isinstance(value, list):  # PEFT writes a set, in any order
            meaning[key] = sorted(value, key=str)
    lines = [f"{e.name} {e.dtype} {list(e.shape)} {sha}" for e, sha in tensor_digests(weights)]
    return _digest_lines([*lines, json.dumps(meaning, sort_keys=True)])
