"""An adapter's configuration against its tensors, and what it does, computed by hand."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ahalab.errors import InputError
from ahalab.store.adapters import (
    adapter_effect_norm,
    read_adapter,
    settings_that_differ,
    unknown_effect,
)
from ahalab.store.fingerprint import ADAPTER_CONFIG, ADAPTER_WEIGHTS, adapter_fingerprint

safetensors = pytest.importorskip("safetensors")
from safetensors.numpy import save_file  # noqa: E402 (after the skip)

Q, V = "base_model.model.layers.0.q_proj", "base_model.model.layers.1.v_proj"
CONFIG: dict[str, Any] = {"peft_type": "LORA", "r": 2, "lora_alpha": 8, "bias": "none"}


def ones(*shape: int) -> np.ndarray[Any, Any]:
    return np.ones(shape, dtype=np.float32)


def pair(module: str, rank: int) -> dict[str, Any]:
    """Return a module of ones: B @ A is `rank` everywhere, in a (4, 3) matrix."""
    return {
        f"{module}.lora_A.weight": ones(rank, 3),
        f"{module}.lora_B.weight": ones(4, rank),
    }


def write(folder: Path, config: Mapping[str, Any], tensors: Mapping[str, Any]) -> Path:
    folder.mkdir(exist_ok=True)
    save_file(dict(tensors), folder / ADAPTER_WEIGHTS)
    (folder / ADAPTER_CONFIG).write_text(json.dumps({**CONFIG, **config}))
    return folder


def test_each_module_is_scaled_by_its_own_rank_and_alpha(tmp_path: Path) -> None:
    tensors = {**pair(Q, 2), **pair(V, 4)}
    config = {"rank_pattern": {"v_proj": 4}, "alpha_pattern": {r"layers\.1\.v_proj": 2}}
    adapter = read_adapter(write(tmp_path / "a", config, tensors))
    assert [(m.name, m.rank, m.scale) for m in adapter.modules] == [
        ("layers.0.q_proj", 2, 8 / 2),
        ("layers.1.v_proj", 4, 2 / 4),
    ]
    # 12 entries each: 4 * 2 in q_proj, 0.5 * 4 in v_proj.
    expected = math.sqrt(12 * (4 * 2) ** 2 + 12 * (0.5 * 4) ** 2)
    assert adapter_effect_norm(tmp_path / "a") == pytest.approx(expected)
    config |= {"use_rslora": True}
    adapter = read_adapter(write(tmp_path / "a", config, tensors))
    assert [m.scale for m in adapter.modules] == [8 / math.sqrt(2), 2 / math.sqrt(4)]


def test_modules_are_matched_to_patterns_as_peft_matches_them(tmp_path: Path) -> None:
    from_peft = pytest.importorskip("peft.utils.other").get_pattern_key
    keys = ["v_proj", r"layers\.[01]\.q_proj", "proj", "^layers.0", "layers.0", "q_proj|v_proj"]
    for key in keys:
        for module in (Q, V):
            name = module.removeprefix("base_model.model.")
            rank = 5 if from_peft([key], name) == key else 2
            folder = write(tmp_path / "a", {"rank_pattern": {key: 5}}, pair(module, rank))
            assert read_adapter(folder).modules[0].rank == rank, (key, name)


@pytest.mark.parametrize(
    ("config", "tensors", "told"),
    [
        (
            {"r": 4},
            pair(Q, 2),
            "expected rank 4 (adapter_config.json) for layers.0.q_proj, found 2",
        ),
        ({"rank_pattern": {"q_proj": 8}}, pair(Q, 2), "expected rank 8"),
        ({"rank_pattern": {"q_proj": "8"}}, pair(Q, 2), "expected a rank and an alpha"),
        ({"alpha_pattern": {"q_proj": None}}, pair(Q, 3), "expected rank 2"),
        ({"rank_pattern": ["q_proj"]}, pair(Q, 2), "expected rank_pattern to be an object"),
        ({"rank_pattern": {"(": 2}}, pair(Q, 2), "expected a pattern in rank_pattern"),
        ({"r": True}, pair(Q, 2), "expected r >= 1"),
        ({}, {f"{Q}.lora_A.weight": ones(2, 3)}, "expected a lora_B for layers.0.q_proj"),
        ({}, {f"{Q}.lora_B.weight": ones(4, 2)}, "expected a lora_A for layers.0.q_proj"),
        ({}, {"lm_head.weight": ones(4, 2)}, "expected pairs of lora_A and lora_B, found none"),
        ({}, {**pair(Q, 2), "n": np.array([1])}, "expected float tensors"),
    ],
)
def test_a_configuration_that_disagrees_with_the_tensors_is_refused_in_one_line(
    tmp_path: Path, config: dict[str, Any], tensors: dict[str, Any], told: str
) -> None:
    with pytest.raises(InputError) as caught:
        read_adapter(write(tmp_path / "a", config, tensors))
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("key", ["(a+)+b", "(x|x)*y", r"(a)\1", "a*b*c*d*", "a" * 201, "(?=a)b"])
def test_a_pattern_that_could_take_for_ever_is_refused_at_once(tmp_path: Path, key: str) -> None:
    name = "base_model.model." + "a" * 60
    folder = write(tmp_path / "a", {"rank_pattern": {key: 2}}, pair(name, 2))
    began = time.monotonic()
    with pytest.raises(InputError, match="could take for ever"):
        read_adapter(folder)
    assert time.monotonic() - began < 1


@pytest.mark.parametrize(
    ("config", "more", "why"),
    [
        ({"use_dora": True}, {f"{Q}.lora_magnitude_vector.weight": ones(4)}, "use_dora"),
        ({"modules_to_save": ["lm_head"]}, {"base_model.model.lm_head.weight": ones(4)}, "lm_head"),
        ({"lora_bias": True}, {f"{Q}.lora_B.bias": ones(4)}, "lora_B.bias"),
        ({"target_parameters": ["experts"]}, {}, "target_parameters"),
        (
            {},
            {f"{V}.lora_A.weight": ones(2, 3, 1, 1), f"{V}.lora_B.weight": ones(4, 2, 1, 1)},
            "convolutions",
        ),
    ],
)
def test_an_effect_that_the_files_do_not_tell_is_unknown_and_no_number(
    tmp_path: Path, config: dict[str, Any], more: dict[str, Any], why: str
) -> None:
    folder = write(tmp_path / "a", config, {**pair(Q, 2), **more})
    assert adapter_effect_norm(folder) is None
    told = unknown_effect(read_adapter(folder))
    assert told is not None
    assert why in told


def test_ranks_of_many_experts_may_lie_side_by_side(tmp_path: Path) -> None:
    folder = write(tmp_path / "a", {"target_parameters": ["experts.down_proj"]}, pair(Q, 6))
    assert len(read_adapter(folder).modules) == 1


def test_the_adapter_of_an_embedding_is_a_pair_too(tmp_path: Path) -> None:
    name = "base_model.model.embed_tokens"
    tensors = {f"{name}.lora_embedding_A": ones(2, 5), f"{name}.lora_embedding_B": ones(3, 2)}
    folder = write(tmp_path / "a", {}, tensors)
    assert adapter_effect_norm(folder) == pytest.approx(math.sqrt(15) * 4 * 2)


def test_settings_are_compared_with_those_of_training_as_peft_may_have_written_them() -> None:
    effective = {
        "peft_type": "LORA", "r": 2, "lora_alpha": 8, "rank_pattern": {}, "use_dora": False,
        "modules_to_save": ["b", "a"], "bias": "none",
    }  # fmt: skip
    same = {"peft_type": "LORA", "r": 2, "lora_alpha": 8, "modules_to_save": ["a", "b"],
            "rank_pattern": None, "bias": "none", "inference_mode": True}  # fmt: skip
    assert list(settings_that_differ(same, effective)) == []
    changed = {**same, "lora_alpha": 16, "use_dora": True}
    assert list(settings_that_differ(changed, effective)) == [
        ("lora_alpha", 8, 16),
        ("use_dora", False, True),
    ]


def test_the_fingerprint_covers_how_an_adapter_begins_and_nothing_that_is_not_asked_for(
    tmp_path: Path,
) -> None:
    plain = adapter_fingerprint(write(tmp_path / "a", {}, pair(Q, 2)))
    unsaid = {"init_lora_weights": True, "use_qalora": False, "ensure_weight_tying": False,
              "kasa_config": None}  # fmt: skip
    assert adapter_fingerprint(write(tmp_path / "a", unsaid, pair(Q, 2))) == plain
    for asked in ({"init_lora_weights": "pissa"}, {"use_qalora": True}, {"kasa_config": {"a": 1}}):
        assert adapter_fingerprint(write(tmp_path / "a", asked, pair(Q, 2))) != plain
