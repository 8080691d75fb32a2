"""JSON that no reader may take, at each door that JSON of others comes through."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from command import Call
from safetensors.numpy import save_file

from ahalab.errors import AhaLabError
from ahalab.records.foreign import MAX_LINE_BYTES
from ahalab.records.plan import TaskSpec
from ahalab.store.adapters import read_adapter
from ahalab.store.safetensors import tensor_entries
from ahalab.tasks.questions import load_questions

Door = Callable[[Path, bytes, Call], str]  # folder, what stands for a sound object; what is told


def task_file(folder: Path, line: bytes, call: Call) -> str:
    (folder / "train.jsonl").write_bytes(b'{"question": "1?", "answer": "1"}\n' + line + b"\n")
    task = TaskSpec(name="jsonl", path=str(folder), train_prompts=1, eval_prompts=1)
    with pytest.raises(AhaLabError) as refused:
        load_questions(task, "train")
    return str(refused.value)


def score_file(folder: Path, line: bytes, call: Call) -> str:
    (folder / "rows.jsonl").write_bytes(b'{"response": "7", "gold": "7"}\n' + line + b"\n")
    said = call("score", folder / "rows.jsonl", "--format", "json")
    assert said.code == 2
    return said.line


def compared_file(folder: Path, line: bytes, call: Call) -> str:
    sound = b'{"id": 1, "strict": "wrong", "lenient": "wrong"}\n'
    (folder / "a.jsonl").write_bytes(sound)
    (folder / "b.jsonl").write_bytes(sound + line + b"\n")
    said = call("compare", folder / "a.jsonl", folder / "b.jsonl")
    assert (said.code, said.out) == (2, "")
    return said.line


def adapter_config(folder: Path, line: bytes, call: Call) -> str:
    name = "base_model.model.q_proj.lora_{}.weight"
    tensors = {name.format("A"): np.ones((2, 3), "f4"), name.format("B"): np.ones((4, 2), "f4")}
    save_file(tensors, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_bytes(line)
    with pytest.raises(AhaLabError) as refused:
        read_adapter(folder)
    return str(refused.value)


def safetensors_header(folder: Path, line: bytes, call: Call) -> str:
    path = folder / "m.safetensors"
    path.write_bytes(len(line).to_bytes(8, "little") + line)
    with pytest.raises(AhaLabError) as refused:
        tensor_entries(path)
    return str(refused.value)


# What a sound line of each door begins with: the fault comes after it, in a field of its own.
DOORS: dict[str, tuple[Door, bytes]] = {
    "task": (task_file, b'{"question": "2?", "answer": "2", '),
    "score": (score_file, b'{"response": "7", "gold": "7", '),
    "compare": (compared_file, b'{"id": 2, "strict": "wrong", "lenient": "wrong", '),
    "adapter": (adapter_config, b'{"r": 2, "lora_alpha": 8, '),
    "safetensors": (safetensors_header, b'{"__metadata__": {}, '),
}
FAULTS = {
    "a key twice": (b'"x": 1, "x": 2}', "a key twice ('x')"),
    "NaN": (b'"x": NaN}', "NaN, which is not JSON"),
    "infinity": (b'"x": -Infinity}', "-Infinity, which is not JSON"),
    "1e999": (b'"x": [1e999]}', "1e999, which is too large for a number"),
    "5,000 digits": (b'"x": ' + b"9" * 5_000 + b"}", "4300 digits"),
    "nested 100,000 deep": (b'"x": ' + b"[" * 100_000, "recursion"),
    "a bad byte": (b'"x": "\xff"}', "can't decode byte 0xff in position"),
    "an overlong byte": (b'"x": "\xc0\xaf"}', "can't decode byte 0xc0 in position"),
    "cut": (b'"x": ', "Expecting value"),
    "two objects": (b'"x": 1}{}', "Extra data"),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("door", DOORS)
def test_json_that_means_nothing_or_two_things_is_refused_in_one_line(
    door: str, fault: str, tmp_path: Path, call: Call
) -> None:
    knock, beginning = DOORS[door]
    end, told = FAULTS[fault]
    began = time.monotonic()
    said = knock(tmp_path, beginning + end, call)
    assert time.monotonic() - began < 5
    assert told in said
    assert said.isprintable()
    assert str(tmp_path) in said


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32-be"])
@pytest.mark.parametrize("door", DOORS)
def test_json_in_another_encoding_than_utf_8_is_refused(
    door: str, encoding: str, tmp_path: Path, call: Call
) -> None:
    knock, beginning = DOORS[door]
    sound = (beginning.decode() + '"x": 1}').encode(encoding)
    assert str(tmp_path) in knock(tmp_path, sound, call)


@pytest.mark.parametrize("door", ["task", "score", "compare"])
def test_a_line_longer_than_16_mb_is_refused_and_not_parsed(
    door: str, tmp_path: Path, call: Call
) -> None:
    knock, beginning = DOORS[door]
    line = beginning + b'"x": "' + b"a" * MAX_LINE_BYTES + b'"}'
    said = knock(tmp_path, line, call)
    assert ":2: " in said
    assert "line" in said


def test_an_adapter_configuration_over_4_mb_is_refused(tmp_path: Path, call: Call) -> None:
    line = b'{"r": 2, "lora_alpha": 8, "x": "' + b"a" * (4 << 20) + b'"}'
    assert "more than 4194304 bytes" in adapter_config(tmp_path, line, call)


@pytest.mark.parametrize("payload", [b"", b"\n", b" \n\n"])
def test_a_file_without_rows_is_refused_by_score_and_gives_no_figures(
    payload: bytes, tmp_path: Path, call: Call
) -> None:
    (tmp_path / "rows.jsonl").write_bytes(payload)
    said = call("score", tmp_path / "rows.jsonl", "--format", "json")
    assert (said.code, said.out) == (2, "")
    assert said.line.endswith("rows.jsonl: expected at least one row, found an empty file.")


def test_invisible_characters_in_a_row_stay_in_its_row(tmp_path: Path, call: Call) -> None:
    text = "a\u2028b\u0085c\u2029\x0b\u202e \x00 #### 7"
    rows = [{"id": text, "response": text, "gold": "7"}] * 2
    payload = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)

    (tmp_path / "rows.jsonl").write_text(payload, "utf-8")
    said = call("score", tmp_path / "rows.jsonl", "--format", "json")
    found = [json.loads(line) for line in said.out.split("\n")[:-1]]
    assert [(row["id"], row["strict"]) for row in found] == [(text, "correct")] * 2
    assert said.out.isascii()
