"""Adapters whose files are small and whose reading would not end, or not fit into memory."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from ahalab.errors import InputError
from ahalab.store.adapters import adapter_effect_norm, read_adapter
from ahalab.store.fingerprint import adapter_fingerprint

SECONDS = 3.0  # on a shared machine; what is refused or done here takes milliseconds
NAME = "base_model.model.{}.lora_{}.weight"


def write(folder: Path, config: dict[str, Any], *modules: str) -> Path:
    """Write an adapter of rank 2 over some modules."""
    tensors = {}
    for module in modules or ("q_proj",):
        tensors[NAME.format(module, "A")] = np.ones((2, 3), np.float32)
        tensors[NAME.format(module, "B")] = np.ones((4, 2), np.float32)
    save_file(tensors, folder / "adapter_model.safetensors")
    settings = {"r": 2, "lora_alpha": 8, **config}
    (folder / "adapter_config.json").write_text(json.dumps(settings))
    return folder


@pytest.mark.parametrize(
    ("key", "module"),
    [
        ("a?" * 30 + "a" * 30, "a" * 30),  # 2**30 ways to leave some of them out
        ("(a|a)" * 30 + "b", "a" * 31),  # 2**30 ways to take either branch
        (".*.*.*b", "a" * 20_000),  # three cuts of 20,000 characters
        (".*b", "a." * 100_000),  # one, after each of 100,000 dots
        ("a{1,9}?" * 4, "a" * 60),
    ],
)
def test_patterns_that_could_be_matched_for_hours_are_refused_at_once(
    tmp_path: Path, key: str, module: str
) -> None:
    write(tmp_path, {"rank_pattern": {key: 2}}, module)
    began = time.monotonic()
    with pytest.raises(InputError, match=r"adapter_config\.json: expected .* Refused"):
        read_adapter(tmp_path)
    assert time.monotonic() - began < SECONDS


def test_more_patterns_than_models_have_modules_are_refused(tmp_path: Path) -> None:
    write(tmp_path, {"alpha_pattern": {f"q.{number}": 2 for number in range(20_001)}})
    with pytest.raises(InputError, match="expected at most 20000 keys in alpha_pattern"):
        read_adapter(tmp_path)


def test_many_patterns_over_many_modules_are_refused(tmp_path: Path) -> None:
    keys = {f".*\\.{number}\\.[a-z]+": 2 for number in range(4_000)}
    write(tmp_path, {"alpha_pattern": keys}, *(f"layers.{n}.q_proj" for n in range(500)))
    with pytest.raises(InputError, match="matched at once, found some that could take"):
        read_adapter(tmp_path)


def test_patterns_as_they_are_written_for_large_models_are_taken(tmp_path: Path) -> None:
    keys = {rf".*\.layers\.\d+\.self_attn\.{side}_proj": 2 for side in "qkvo"}
    keys |= {r"layers\.(0|1|2|3)\.mlp\.(up|down)_proj": 2, "^model.layers.7": 2}
    modules = [f"model.layers.{n}.self_attn.{side}_proj" for n in range(80) for side in "qkvo"]
    write(tmp_path, {"rank_pattern": keys, "alpha_pattern": keys}, *modules)
    began = time.monotonic()
    read = read_adapter(tmp_path)
    assert time.monotonic() - began < SECONDS
    assert {module.scale for module in read.modules} == {1.0}  # alpha 2 of the pattern, rank 2


@pytest.mark.parametrize("key", ["[[a]", "a&&b[a--b]", "a{99999999999}", "(", "[z-a]"])
def test_a_pattern_that_is_none_is_refused_without_a_warning(tmp_path: Path, key: str) -> None:
    write(tmp_path, {"rank_pattern": {key: 2}})
    with pytest.raises(InputError, match="expected a pattern in rank_pattern, found"):
        read_adapter(tmp_path)


@pytest.mark.parametrize(
    ("setting", "value"),
    [("lora_alpha", 10**400), ("r", 10**400), ("alpha_pattern", {"q_proj": 10**400}),
     ("rank_pattern", {"q_proj": 10**400})],
)  # fmt: skip
def test_numbers_of_400_digits_are_refused(tmp_path: Path, setting: str, value: Any) -> None:
    with pytest.raises(InputError, match="expected"):
        read_adapter(write(tmp_path, {setting: value}))


def test_target_modules_of_mixed_kinds_have_a_fingerprint_all_the_same(tmp_path: Path) -> None:
    first = adapter_fingerprint(write(tmp_path, {"target_modules": ["a", 1, None]}))
    assert adapter_fingerprint(write(tmp_path, {"target_modules": [None, "a", 1]})) == first


@pytest.mark.parametrize(
    "shape", [[0, 2**70], [0, 2**62], [2**63, 0], [1] * 70, [1] * 9], ids=lambda s: str(len(s))
)
def test_a_shape_that_no_array_has_is_refused(tmp_path: Path, shape: list[int]) -> None:
    end = 4 * math.prod(shape)
    header = {NAME.format("q", "A"): {"dtype": "F32", "shape": shape, "data_offsets": [0, end]}}
    payload = json.dumps(header).encode()
    file = len(payload).to_bytes(8, "little") + payload + b"\0" * end
    write(tmp_path, {})
    (tmp_path / "adapter_model.safetensors").write_bytes(file)
    with pytest.raises(InputError, match=r"expected a safetensors file, found: tensor .* of shape"):
        read_adapter(tmp_path)


def test_the_norm_of_8_megabytes_does_not_take_8_terabytes(tmp_path: Path) -> None:
    write(tmp_path, {"r": 1, "lora_alpha": 1})
    tensors = {
        NAME.format("q", "A"): np.ones((1, 10**6), np.float32),
        NAME.format("q", "B"): np.ones((10**6, 1), np.float32),
    }
    save_file(tensors, tmp_path / "adapter_model.safetensors")
    began = time.monotonic()
    assert adapter_effect_norm(tmp_path) == pytest.approx(1e6, rel=1e-12)  # 10**12 ones
    assert time.monotonic() - began < SECONDS


def test_weights_beyond_float32_are_refused_and_a_norm_beyond_float64_is_infinite(
    tmp_path: Path,
) -> None:
    write(tmp_path, {"lora_alpha": 1e300})
    large = {NAME.format("q", side): np.full((2, 2), 1e38, np.float32) for side in "AB"}
    save_file(large, tmp_path / "adapter_model.safetensors")
    assert adapter_effect_norm(tmp_path) == math.inf
    doubles = {name: tensor.astype(np.float64) * 1e200 for name, tensor in large.items()}
    save_file(doubles, tmp_path / "adapter_model.safetensors")
    with pytest.raises(InputError, match="expected finite weights, found NaN or inf"):
        read_adapter(tmp_path)
