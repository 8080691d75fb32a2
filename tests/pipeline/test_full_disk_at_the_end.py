"""Analysis, report and seal on a disk that fills up: refused in one line, then the same bytes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from ahalab.analyze.compare import analyze
from ahalab.errors import InputError
from ahalab.pipeline.run import seal_study
from ahalab.plan.load import load_plan
from ahalab.store.layout import StudyPaths
from small_disk import Disk
from study_builder import build

MADE = ("analysis", "claims.json", "report.html", "manifest.json")


def contents(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def finish(root: Path) -> None:
    """Do what `ahalab run` does once every answer is there."""
    paths = StudyPaths(root)
    plan = load_plan(paths.plan)
    analyze(plan, paths)
    seal_study(plan, paths)


@pytest.fixture
def answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A study with its answers, and nothing made of them yet."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    root = build(tmp_path / "whole")
    for name in MADE:
        path = root / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return root


def test_a_disk_that_fills_up_while_a_study_is_finished_is_refused_and_then_made_good(
    answered: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = set(contents(answered))
    whole = shutil.copytree(answered, tmp_path / "finished")
    finish(whole)
    expected = contents(whole)
    made = [len(payload) for name, payload in expected.items() if name not in before]
    assert len(made) == 7, "comparison, changed, ablation, replay, claims, report, manifest"
    for room in (0, sum(made) // 2, sum(made) - 1):  # in the first file, midway, in the manifest
        root = shutil.copytree(answered, tmp_path / str(room))
        with monkeypatch.context() as full:
            full.setattr(os, "write", Disk(room, piece=1 << 16))
            with pytest.raises(InputError, match="No space left on device") as caught:
                finish(root)
        assert "\n" not in str(caught.value)
        assert set(contents(root)) <= set(expected), "nothing half-written is left"
        assert not (root / "manifest.json").exists(), "it is not sealed"
        finish(root)
        assert contents(root) == expected
        shutil.rmtree(root)
