"""Readers of safetensors and fingerprints, against the safetensors package and numpy."""

import hashlib
import json
import math
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from ahalab.errors import InputError
from ahalab.store.adapters import adapter_effect_norm
from ahalab.store.fingerprint import (
    ADAPTER_CONFIG,
    ADAPTER_WEIGHTS,
    adapter_fingerprint,
    base_tensors,
    tokenizer_fingerprint,
    weights_digest,
)
from ahalab.store.safetensors import load_float32, tensor_digests, tensor_entries

safetensors = pytest.importorskip("safetensors")
from safetensors.numpy import save_file  # noqa: E402 (after the skip)

A = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], dtype=np.float32)  # (r = 2, in = 3)
B = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0], [0.5, -0.5]], dtype=np.float32)  # (out = 4, r)
NAME = "base_model.model.layers.0.q_proj.lora_{}.weight"
CONFIG: dict[str, Any] = {
    "peft_type": "LORA",
    "r": 2,
    "lora_alpha": 8,
    "target_modules": ["q_proj", "v_proj"],
    "bias": "none",
    "base_model_name_or_path": "/home/someone/model",
    "inference_mode": True,
}


def base_fingerprint(folder: Path) -> str:
    return weights_digest(base_tensors(folder))


def write_raw(path: Path, header: object, body: bytes, length: int | None = None) -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + body)
    return path


def spec(start: int, end: int, shape: Any = None, dtype: Any = "F32") -> dict[str, Any]:
    return {
        "dtype": dtype,
        "shape": [(end - start) // 4] if shape is None else shape,
        "data_offsets": [start, end],
    }


def write_adapter(
    folder: Path, config: Mapping[str, Any] = CONFIG, a: Any = A, b: Any = B, **more: Any
) -> Path:
    folder.mkdir(exist_ok=True)
    save_file({NAME.format("A"): a, NAME.format("B"): b, **more}, folder / ADAPTER_WEIGHTS)
    (folder / ADAPTER_CONFIG).write_text(json.dumps(config))
    return folder


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.dictionaries(
        st.text("abc._", min_size=1, max_size=6),
        arrays.arrays(
            st.sampled_from(
                [np.float32, np.float16, np.float64, np.int64, np.uint8, np.bool_, np.int16]
            ),
            arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
        ),
        max_size=4,
    )
)
def test_files_of_the_safetensors_package_are_read_with_their_own_bytes(
    tmp_path: Path, tensors: dict[str, Any]
) -> None:
    path = tmp_path / "m.safetensors"
    save_file(tensors, path, metadata={"format": "pt"})
    read = {entry.name: (entry.shape, sha) for entry, sha in tensor_digests(path)}
    assert read == {
        name: (array.shape, hashlib.sha256(array.tobytes()).hexdigest())
        for name, array in tensors.items()
    }
    assert list(read) == sorted(tensors)


def test_floats_of_every_width_are_widened_to_float32(tmp_path: Path) -> None:
    values = np.array([1.5, -0.25, 3.0])
    # bfloat16 by hand: the upper 16 bits of a float32 (these values need no rounding).
    bf16 = struct.pack("<3H", 0x3FC0, 0xBE80, 0x4040)
    body = bf16 + values.astype("<f2").tobytes() + values.astype("<f8").tobytes()
    header = {
        "bf": {"dtype": "BF16", "shape": [3], "data_offsets": [0, 6]},
        "half": {"dtype": "F16", "shape": [3, 1], "data_offsets": [6, 12]},
        "double": {"dtype": "F64", "shape": [3], "data_offsets": [12, 36]},
    }
    loaded = load_float32(write_raw(tmp_path / "m.safetensors", header, body))
    assert {name: array.dtype for name, array in loaded.items()} == dict.fromkeys(
        header, np.float32
    )
    assert loaded["half"].shape == (3, 1)
    for array in loaded.values():
        assert array.ravel().tolist() == [1.5, -0.25, 3.0]


def test_whole_numbers_are_not_taken_for_weights(tmp_path: Path) -> None:
    save_file({"n": np.array([1])}, tmp_path / "m.safetensors")
    with pytest.raises(InputError, match="expected float tensors, found n of dtype I64"):
        load_float32(tmp_path / "m.safetensors")


@pytest.mark.parametrize(
    ("header", "body"),
    [
        ({"a": spec(0, 8)}, b"\0" * 7),  # truncated
        ({"a": spec(0, 8)}, b"\0" * 9),  # trailing byte
        ({"a": spec(0, 4), "b": spec(8, 12)}, b"\0" * 12),  # hole
        ({"a": spec(4, 12)}, b"\0" * 12),  # hole at the start
        ({"a": spec(0, 8), "b": spec(4, 12)}, b"\0" * 12),  # overlap
        ({"a": spec(0, 8), "b": spec(0, 8)}, b"\0" * 8),  # the same bytes twice
        ({"a": spec(0, 8, [3])}, b"\0" * 8),  # shape and size differ
        ({"a": spec(8, 0, [2])}, b"\0" * 8),
        ({"a": spec(0, 16, [-1, -4])}, b"\0" * 16),
        ({"a": spec(0, 0, [2**32, 2**32])}, b""),  # 2**64 wraps to 0 in 64 bits
        ({"a": spec(0, 0, [2**70])}, b""),
        ({"a": spec(0, 8, [2.0])}, b"\0" * 8),
        ({"a": spec(0, 8, ["2"])}, b"\0" * 8),
        ({"a": spec(0, 4, [True])}, b"\0" * 4),
        ({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0.0, 8.0]}}, b"\0" * 8),
        ({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4, 8]}}, b"\0" * 8),
        ({"a": {"dtype": "F32", "shape": [2], "data_offsets": "08"}}, b"\0" * 8),
        ({"a": {"dtype": "F32", "shape": 2, "data_offsets": [0, 8]}}, b"\0" * 8),
        ({"a": {"dtype": ["F32"], "shape": [2], "data_offsets": [0, 8]}}, b"\0" * 8),
        ({"a": spec(0, 8, dtype="F31")}, b"\0" * 8),
        ({"a": {"shape": [2], "data_offsets": [0, 8]}}, b"\0" * 8),
        ({"a": None}, b""),
        ({"a\nb": spec(0, 8)}, b"\0" * 8),
        ([], b""),
        (b"{", b""),
        (b"\xff\xff", b""),
        (b"[" * 100_000, b""),
        (b'{"a":' + b"9" * 5000 + b"}", b""),
    ],
)
def test_a_damaged_or_hostile_file_is_refused_in_one_line(
    tmp_path: Path, header: object, body: bytes
) -> None:
    path = write_raw(tmp_path / "m.safetensors", header, body)
    for read in (tensor_entries, load_float32):
        with pytest.raises(InputError) as caught:
            read(path)
        assert str(caught.value).startswith(f"{path}: ")
        assert "\n" not in str(caught.value)


def test_a_header_over_1_mb_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    header = b'{"__metadata__":{"x":"' + b"a" * (66 << 20) + b'"}}'
    write_raw(path, header, b"")
    with pytest.raises(InputError, match=f"a header of {len(header)} bytes"):
        tensor_entries(path)
    write_raw(path, b"{}", b"", length=2**63)
    with pytest.raises(InputError, match=f"a header of {2**63} bytes"):
        tensor_entries(path)


@pytest.mark.parametrize("size", [0, 3, 8, 9])
def test_a_file_too_short_for_its_header_is_refused(tmp_path: Path, size: int) -> None:
    path = write_raw(tmp_path / "m.safetensors", {"a": spec(0, 4)}, b"\0" * 4)
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(InputError, match="expected a safetensors file"):
        tensor_entries(path)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none.safetensors", tmp_path):
        with pytest.raises(InputError, match="expected a safetensors file"):
            tensor_entries(path)


def test_a_base_has_one_fingerprint_however_it_is_sharded(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    tensors = {f"layer.{i}.weight": rng.normal(size=(3, 2)).astype(np.float32) for i in range(5)}
    whole, shards = tmp_path / "whole", tmp_path / "shards"
    whole.mkdir()
    shards.mkdir()
    save_file(tensors, whole / "model.safetensors")
    for number, part in enumerate(("04", "13", "2")):
        save_file(
            {f"layer.{i}.weight": tensors[f"layer.{i}.weight"] for i in part},
            shards / f"model-{number}.safetensors",
            metadata={"format": "pt"},
        )
    assert base_fingerprint(shards) == base_fingerprint(whole)
    digests = {base_fingerprint(whole)}
    for name in tensors:
        changed = {**tensors, name: np.nextafter(tensors[name], np.float32(9))}
        save_file(changed, whole / "model.safetensors")
        digests.add(base_fingerprint(whole))
    first = "layer.0.weight"
    save_file({**tensors, first: tensors[first].reshape(2, 3)}, whole / "model.safetensors")
    digests.add(base_fingerprint(whole))
    save_file({**tensors, first: tensors[first].view(np.int32)}, whole / "model.safetensors")
    digests.add(base_fingerprint(whole))
    save_file({n.replace("0", "9"): t for n, t in tensors.items()}, whole / "model.safetensors")
    digests.add(base_fingerprint(whole))
    assert len(digests) == 1 + 5 + 3


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "model.pth", "model.pkl"])
def test_a_folder_with_pickled_weights_only_is_refused_and_the_file_named(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_bytes(b"\x80\x04.")
    with pytest.raises(InputError, match=rf"expected model weights as safetensors, found {name}"):
        base_fingerprint(tmp_path)
    with pytest.raises(InputError, match=rf"expected an adapter as safetensors, found {name}"):
        adapter_fingerprint(tmp_path)


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    for fingerprint in (base_fingerprint, tokenizer_fingerprint, adapter_fingerprint):
        with pytest.raises(InputError):
            fingerprint(tmp_path / "none")


def test_an_adapter_fingerprint_ignores_the_order_of_modules_and_where_the_base_lay(
    tmp_path: Path,
) -> None:
    first = adapter_fingerprint(write_adapter(tmp_path / "a"))
    other = {
        **CONFIG,
        "target_modules": ["v_proj", "q_proj"],
        "base_model_name_or_path": "elsewhere",
        "inference_mode": False,
    }
    assert (
        adapter_fingerprint(write_adapter(tmp_path / "b", dict(reversed(other.items())))) == first
    )


def test_an_adapter_fingerprint_changes_with_whatever_changes_the_answers(tmp_path: Path) -> None:
    flipped = A.copy()
    flipped.view(np.uint32)[1, 2] ^= 1
    changes: list[dict[str, Any]] = [
        {"lora_alpha": 16},
        {"r": 4},
        {"target_modules": ["q_proj"]},
        {"target_modules": "all-linear"},
        {"use_rslora": True},
        {"use_dora": True},
        {"alpha_pattern": {"q_proj": 1}},
        {"rank_pattern": {"q_proj": 1}},
        {"layers_to_transform": [0]},
        {"layer_replication": [[0, 2]]},
        {"alora_invocation_tokens": [1, 2]},
        {"exclude_modules": ["v_proj"]},
    ]
    digests = [adapter_fingerprint(write_adapter(tmp_path / "a", {**CONFIG, **c})) for c in changes]
    digests.append(adapter_fingerprint(write_adapter(tmp_path / "a")))
    digests.append(adapter_fingerprint(write_adapter(tmp_path / "a", a=flipped)))
    digests.append(adapter_fingerprint(write_adapter(tmp_path / "a", a=A.astype(np.float16))))
    assert len(set(digests)) == len(digests)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(
            {**CONFIG, "auto_mapping": {"parent_library": "os", "base_model_class": "system"}}
        ),
        "[]",
        "{",
        "[" * 100_000,
    ],
)
def test_an_adapter_configuration_that_is_malformed_or_imports_code_is_refused(
    tmp_path: Path, text: str
) -> None:
    folder = write_adapter(tmp_path / "a")
    (folder / ADAPTER_CONFIG).write_text(text)
    for read in (adapter_fingerprint, adapter_effect_norm):
        with pytest.raises(InputError, match=r"adapter_config\.json: expected"):
            read(folder)


def test_the_effect_norm_is_that_of_scaled_b_at_a(tmp_path: Path) -> None:
    # B @ A by hand; alpha / r = 8 / 2 = 4.
    product = [[1, 2, 3], [8, 10, 12], [5, 7, 9], [-1.5, -1.5, -1.5]]
    expected = 4 * math.sqrt(sum(v * v for row in product for v in row))
    folder = write_adapter(tmp_path / "a")
    assert adapter_effect_norm(folder) == pytest.approx(expected, rel=1e-12)
    rslora = write_adapter(tmp_path / "r", {**CONFIG, "use_rslora": True})  # alpha / sqrt(r)
    assert adapter_effect_norm(rslora) == pytest.approx(expected * math.sqrt(2), rel=1e-12)
    zero = write_adapter(tmp_path / "z", b=np.zeros_like(B))
    assert adapter_effect_norm(zero) == 0.0


def test_the_effect_norm_adds_up_over_modules_in_squares(tmp_path: Path) -> None:
    once = adapter_effect_norm(write_adapter(tmp_path / "a"))
    more = {
        NAME.format(side).replace("q_proj", "v_proj"): array for side, array in (("A", A), ("B", B))
    }
    assert adapter_effect_norm(write_adapter(tmp_path / "b", **more)) == pytest.approx(
        once * math.sqrt(2)
    )


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("side", ["a", "b"])
def test_weights_that_are_not_finite_are_refused_and_the_tensor_named(
    tmp_path: Path, bad: float, side: str
) -> None:
    tensor = {"a": A, "b": B}[side].copy()
    tensor[1, 1] = bad
    folder = write_adapter(tmp_path / "a", **{side: tensor})
    with pytest.raises(InputError, match=f"expected finite weights, found .*lora_{side.upper()}"):
        adapter_effect_norm(folder)


@pytest.mark.parametrize(
    ("config", "tensors"),
    [
        ({"r": 0}, {}),
        ({"r": "2"}, {}),
        ({"lora_alpha": None}, {}),
        ({"lora_alpha": float("nan")}, {}),
        ({}, {"b": B[:, :1]}),
        ({}, {"b": B.ravel()}),
        ({}, {NAME.format("A").replace("q_proj", "alone"): A}),
    ],
)
def test_an_adapter_that_does_not_fit_together_is_refused(
    tmp_path: Path, config: dict[str, Any], tensors: dict[str, Any]
) -> None:
    folder = write_adapter(tmp_path / "a", {**CONFIG, **config}, **tensors)
    with pytest.raises(InputError, match=r"adapter_(model|config).*expected"):
        adapter_effect_norm(folder)


def test_a_tokenizer_fingerprint_changes_with_its_files_and_not_with_others(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a tokenizer"):
        tokenizer_fingerprint(tmp_path)
    (tmp_path / "tokenizer.json").write_bytes(b"{}")
    first = tokenizer_fingerprint(tmp_path)
    (tmp_path / "README.md").write_bytes(b"text")
    assert tokenizer_fingerprint(tmp_path) == first
    (tmp_path / "tokenizer.json").write_bytes(b"{ }")
    assert tokenizer_fingerprint(tmp_path) != first


@pytest.mark.parametrize(
    ("config", "same"),
    [
        ({"clean_up_tokenization_spaces": False, "model_max_length": 9}, True),
        ({"eos_token": "<end>", "additional_special_tokens": ["<end>"]}, True),
        ({"added_tokens_decoder": {"1": {"content": "<end>", "special": True}}}, True),
        ({"clean_up_tokenization_spaces": True}, False),
        ({"add_bos_token": True}, False),
        ({"add_prefix_space": True}, False),
        ({"pad_token": {"content": "<pad>"}}, False),
        ({"additional_special_tokens": ["<end>", "####"]}, False),
        ({"extra_special_tokens": {"image": "<image>"}}, False),
        ({"added_tokens_decoder": {"2": {"content": "####", "special": True}}}, False),
    ],
)
def test_a_tokenizer_fingerprint_covers_what_its_configuration_adds_to_ids_or_text(
    tmp_path: Path, config: dict[str, Any], same: bool
) -> None:
    known = {"added_tokens": [{"id": 1, "content": "<end>", "special": True}]}
    (tmp_path / "tokenizer.json").write_text(json.dumps(known))
    without = tokenizer_fingerprint(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    assert (tokenizer_fingerprint(tmp_path) == without) == same


@pytest.mark.parametrize("text", ["[]", "{", "\xff"])
def test_a_malformed_tokenizer_configuration_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    (tmp_path / "tokenizer_config.json").write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match=r"tokenizer_config\.json: expected a JSON object"):
        tokenizer_fingerprint(tmp_path)
