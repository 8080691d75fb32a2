"""`ahalab ablate` over several studies: one table, one ranking where one protocol allows it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from command import Call
from small_study import make_protocol, write_answers, write_study

from ahalab.store.layout import StudyPaths

BASE = "C" * 20 + "W" * 40


def stage(root: Path, arm: str, right: Sequence[int], primary: str = "strict") -> StudyPaths:
    cells = {(arm, seed): "C" * n + "W" * (60 - n) for seed, n in enumerate(right)}
    control = {("random", seed): BASE for seed in range(len(right))}
    return write_study(root, BASE, {**cells, **control}, primary=primary)[1]


@pytest.fixture
def stages(tmp_path: Path) -> list[Path]:
    first = stage(tmp_path / "one" / "first", "historical", [24, 25])
    second = stage(tmp_path / "two" / "second", "correctness", [40, 41, 42])
    return [first.root, second.root]


def test_arms_of_several_studies_are_ranked_together(call: Call, stages: list[Path]) -> None:
    said = call("ablate", *stages, "--format", "json")
    found = json.loads(said.out)
    assert [len(s["ablation"]["cells"]) for s in found["stages"]] == [4, 6]
    assert found["not_comparable"] is None
    ranked = [place["arm"].rpartition(":")[2] for place in found["ranking"]]
    assert ranked[:2] == ["correctness", "historical"]
    assert found["ranking"][0]["best_fraction"] == 1
    text = call("ablate", *stages).out
    assert text.count("\nover seeds") == 2
    assert "All studies together" in text


def test_studies_of_one_name_are_told_apart_by_their_folders(
    call: Call, stages: list[Path]
) -> None:
    found = json.loads(call("ablate", *stages, "--format", "json").out)
    assert [s["study"] for s in found["stages"]] == [str(root) for root in stages]


def test_another_protocol_is_not_ranked_with_the_first_and_says_why(
    call: Call, tmp_path: Path, stages: list[Path]
) -> None:
    plan, paths = write_study(
        tmp_path / "three", BASE, {("correctness", 0): BASE, ("random", 0): BASE}
    )
    for target, adapter in (
        (paths.base_answers(), None),
        (paths.answers("correctness", 0), "one"),
        (paths.answers("random", 0), "two"),
    ):
        for path in target.answers.parent.glob("answers*"):
            path.unlink()
        protocol = make_protocol(plan, dtype="bfloat16", adapter_digest=adapter)
        write_answers(plan, paths, target, BASE, protocol)
    found = json.loads(call("ablate", stages[0], paths.root, "--format", "json").out)
    assert found["ranking"] is None
    assert "dtype: 'float32' and 'bfloat16'" in found["not_comparable"]
    assert "Not ranked together. " in call("ablate", stages[0], paths.root).out


def test_another_primary_metric_is_not_ranked_with_the_first(
    call: Call, tmp_path: Path, stages: list[Path]
) -> None:
    other = stage(tmp_path / "lenient", "correctness", [40, 41], primary="lenient").root
    found = json.loads(call("ablate", stages[0], other, "--format", "json").out)
    assert "expected strict as the primary metric" in found["not_comparable"]


def test_the_same_study_twice_is_refused(call: Call, stages: list[Path]) -> None:
    said = call("ablate", stages[0], stages[0])
    assert said.code == 2
    assert "expected different studies" in said.err
