"""The study's record of its base: written once, hashing to its digest, differences named."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ahalab.errors import InputError
from ahalab.store.base_tensors import fingerprint_base
from ahalab.store.fingerprint import named_difference, weights_digest
from ahalab.store.layout import StudyPaths

safetensors = pytest.importorskip("safetensors")
from safetensors.numpy import save_file  # noqa: E402 (after the skip)

NAMES = ("model.layers.0.mlp.up_proj.weight", "model.layers.1.mlp.up_proj.weight", "lm_head.weight")
LOCKER = """
import sys, time
from pathlib import Path
from ahalab.store.lock import WriterLock
with WriterLock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def write_model(folder: Path, *, changed: tuple[str, ...] = (), without: str = "") -> Path:
    folder.mkdir(exist_ok=True)
    tensors = {
        name: np.full((2, 3), at + 100 * (name in changed), dtype=np.float32)
        for at, name in enumerate(NAMES)
        if name != without
    }
    save_file(tensors, folder / "model.safetensors")
    return folder


@pytest.fixture
def paths(tmp_path: Path) -> StudyPaths:
    return StudyPaths(tmp_path / "results" / "s")


def test_the_recorded_lines_hash_to_the_base_digest(tmp_path: Path, paths: StudyPaths) -> None:
    model = write_model(tmp_path / "model")
    tensors = fingerprint_base(paths, model)
    record = json.loads(paths.base_tensors.read_bytes())
    lines = []  # by hand: name, dtype, shape and sha256 of the bytes
    for at, name in enumerate(NAMES):
        content = np.full((2, 3), at, dtype=np.float32).tobytes()
        lines.append(f"{name} F32 [2, 3] {hashlib.sha256(content).hexdigest()}")
    expected = "sha256:" + hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()
    assert record["base_digest"] == expected == weights_digest(tensors)
    assert [t["name"] for t in record["tensors"]] == sorted(NAMES)


def test_the_same_base_again_changes_nothing(tmp_path: Path, paths: StudyPaths) -> None:
    fingerprint_base(paths, write_model(tmp_path / "model"))
    before = paths.base_tensors.stat().st_mtime_ns
    fingerprint_base(paths, write_model(tmp_path / "moved"))
    assert paths.base_tensors.stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("changed", "without", "told"),
    [
        (NAMES[:1], "", "model.layers.0.mlp.up_proj.weight differs."),
        (NAMES[:2], "", "model.layers.0.mlp.up_proj.weight differs, and 1 more."),
        ((), NAMES[2], "lm_head.weight is missing."),
        (NAMES[:1], NAMES[2], "up_proj.weight differs; lm_head.weight is missing."),
    ],
)
def test_another_base_is_refused_and_its_tensors_are_named(
    tmp_path: Path, paths: StudyPaths, changed: tuple[str, ...], without: str, told: str
) -> None:
    fingerprint_base(paths, write_model(tmp_path / "model"))
    other = write_model(tmp_path / "other", changed=changed, without=without)
    with pytest.raises(InputError) as caught:
        fingerprint_base(paths, other)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_sealed_study_is_not_added_to(tmp_path: Path, paths: StudyPaths) -> None:
    paths.root.mkdir(parents=True)
    paths.manifest.write_text("{}")
    fingerprint_base(paths, write_model(tmp_path / "model"))
    assert not paths.base_tensors.exists()


def test_where_another_process_writes_the_record_this_one_goes_on(
    tmp_path: Path, paths: StudyPaths
) -> None:
    lock = paths.work / "locks" / "base-tensors.lock"
    arguments = [sys.executable, "-c", LOCKER, str(lock)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            assert len(fingerprint_base(paths, write_model(tmp_path / "model"))) == 3
            assert not paths.base_tensors.exists()
        finally:
            holder.kill()
    fingerprint_base(paths, write_model(tmp_path / "model"))
    assert paths.base_tensors.is_file()


def test_a_difference_names_the_first_of_each_kind() -> None:
    assert named_difference({"a": 1, "b": 2}, {"b": 2, "a": 1}) is None
    told = named_difference({"a": 1, "b": 2, "c": 3}, {"b": 0, "c": 0, "d": 4, "e": 5})
    assert told == "b differs, and 1 more; a is missing; d is not expected, and 1 more"
