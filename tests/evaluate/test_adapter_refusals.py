"""What is said of an adapter before any weight is loaded, and of one that learned nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ahalab.errors import InputError
from ahalab.evaluate.adapter_check import require_sound_adapter, told_nothing_learned
from ahalab.plan.cells import Cell
from ahalab.records.answer import Answer
from ahalab.store.layout import AnswerPaths, StudyPaths
from ahalab.store.rows import RowFile, RowWriter

safetensors = pytest.importorskip("safetensors")
from safetensors.numpy import load_file, save_file  # noqa: E402 (after the skip)

WEIGHTS, CONFIG = "adapter_model.safetensors", "adapter_config.json"
EFFECTIVE = {"peft_type": "LORA", "r": 2, "lora_alpha": 8, "use_rslora": False, "bias": "none"}
MODULE = "base_model.model.layers.0.q_proj"
CELL = Cell("arms/correctness/seed-1", "correctness", 1)
Tamper = Callable[[Path], object]


def write_adapter(folder: Path, scale: float = 1.0) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    save_file(
        {
            f"{MODULE}.lora_A.weight": np.ones((2, 3), np.float32),
            f"{MODULE}.lora_B.weight": np.full((4, 2), scale, np.float32),
        },
        folder / WEIGHTS,
    )
    config = {**EFFECTIVE, "base_model_name_or_path": "organism", "init_lora_weights": True}
    (folder / CONFIG).write_text(json.dumps(config))
    return folder


def config(**changed: object) -> Tamper:
    def edit(folder: Path) -> None:
        text = (folder / CONFIG).read_bytes()
        (folder / CONFIG).write_text(json.dumps({**json.loads(text), **changed}))

    return edit


def tensors(edit: Callable[[dict[str, Any]], dict[str, Any]]) -> Tamper:
    return lambda folder: save_file(edit(load_file(folder / WEIGHTS)), folder / WEIGHTS)


def pickled(folder: Path) -> None:
    (folder / WEIGHTS).rename(folder / "adapter_model.bin")


def torn(folder: Path) -> None:
    (folder / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes()[:-3])


def no_safetensors(folder: Path) -> None:
    (folder / WEIGHTS).write_bytes(b"\x80\x04\x95not a header")


def test_a_sound_adapter_is_read(tmp_path: Path) -> None:
    adapter = require_sound_adapter(write_adapter(tmp_path / "a"), "organism", EFFECTIVE)
    assert [module.name for module in adapter.modules] == ["layers.0.q_proj"]


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (pickled, "found adapter_config.json, adapter_model.bin. Pickled weights are refused"),
        (torn, "expected a safetensors file|expected \\d+ bytes, as its header says"),
        (no_safetensors, "expected a safetensors file"),
        (config(base_model_name_or_path="other/base"), "the base organism .* found one for other"),
        (config(lora_alpha=16), r"expected lora_alpha=8, as it was trained \(run.json\), found 16"),
        (config(r=4), "expected r=2, .* found 4"),
        (config(use_dora=True), "expected use_dora=False, .* found True"),
        (config(init_lora_weights="pissa_niter_4"), "which changes the base's weights"),
        (config(auto_mapping={"parent_library": "os"}), "expected no auto_mapping"),
        (tensors(lambda t: {k: v[:1] if "_A" in k else v[:, :1] for k, v in t.items()}),
         "expected rank 2 .* found 1"),
        (tensors(lambda t: {k: v for k, v in t.items() if "_B" not in k}), "expected a lora_B"),
        (tensors(lambda t: {k: v * np.float32("nan") for k, v in t.items()}), "found NaN or inf"),
        (tensors(lambda t: {k: v.astype(np.int32) for k, v in t.items()}),
         "expected float tensors, found .* of dtype I32"),
    ],
)  # fmt: skip
def test_an_adapter_that_would_not_be_applied_as_trained_is_refused_in_one_line(
    tmp_path: Path, fault: Tamper, told: str
) -> None:
    folder = write_adapter(tmp_path / "a")
    fault(folder)
    with pytest.raises(InputError, match=told) as caught:
        require_sound_adapter(folder, "organism", {**EFFECTIVE, "use_dora": False})
    assert "\n" not in str(caught.value)
    assert str(folder) in str(caught.value)


# Learned nothing ----------------------------------------------------------------------------------


def write_answers(paths: StudyPaths, target: AnswerPaths, texts: list[str]) -> None:
    rows = [
        Answer(
            protocol="p", side="base", prompt_id=f"p{n}", sample=0, completion=text,
            completion_ids=(n,), finish="eos", extracted=None, rule="none", status="ok",
            strict="wrong", lenient="wrong",
        )
        for n, text in enumerate(texts)
    ]  # fmt: skip
    file = RowFile(target.answers, "answer/1", "plan", target.name, paths.broken)
    with RowWriter[Answer](file) as writer:
        writer.append(rows)
        writer.seal()


@pytest.mark.parametrize(
    ("scale", "answers", "told"),
    [
        (0.0, ["a", "b"], "learned nothing: its weights add 0"),
        (0.0, None, "learned nothing: its weights add 0"),
        (1.0, ["a", "b"], "answered every question as the base did, to the letter"),
        (1.0, ["a", "c"], None),
        (1.0, None, None),
    ],
)
def test_an_adapter_that_learned_nothing_is_said_to(
    tmp_path: Path, scale: float, answers: list[str] | None, told: str | None
) -> None:
    paths = StudyPaths(tmp_path / "results" / "s")
    write_adapter(paths.run("correctness", 1).adapter, scale)
    write_answers(paths, paths.base_answers(), ["a", "b"])
    if answers is not None:
        write_answers(paths, paths.answers("correctness", 1), answers)
    said = told_nothing_learned(paths, CELL)
    assert (said is None) == (told is None)
    assert told is None or told in str(said)
    assert told_nothing_learned(paths, Cell("base")) is None
