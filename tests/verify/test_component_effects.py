"""Arms that differ in one component: the direct comparison, and every way to tamper with it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from ahalab.statistics.seeds import arm_against_control
from ahalab.verify.study import verify_study
from mutations.kinds import record
from study_builder import PLAN, build
from tampering import read_lines, reseal

FILE = "analysis/ablation.json"
ARMS = PLAN.replace(
    "[historical, additive_format, random]", "[correctness, additive_format, random]"
)


@pytest.fixture(scope="module")
def paired(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("paired") / "synthetic", ARMS)


def strict(root: Path, arm: str) -> np.ndarray:  # type: ignore[type-arg]
    """Return strict correctness by seed and question."""
    rows = []
    for seed in (1, 2):
        lines = read_lines(root / f"arms/{arm}/seed-{seed}/answers.jsonl")
        found = {row["prompt_id"]: row["strict"] for row in map(json.loads, lines)}
        rows.append([float(found[prompt] == "correct") for prompt in sorted(found)])
    return np.array(rows)


def test_two_arms_that_differ_in_the_format_alone_are_compared_directly(paired: Path) -> None:
    effects = json.loads((paired / FILE).read_bytes())["components"]
    assert [(e["component"], e["arm"], e["against"], e["metric"]) for e in effects] == [
        ("format", "additive_format", "correctness", metric) for metric in ("strict", "lenient")
    ]
    assert (effects[0]["weight"], effects[0]["against_weight"]) == (0.2, 0.0)
    more, less = strict(paired, "additive_format"), strict(paired, "correctness")
    assert effects[0]["difference_points"] == pytest.approx(100 * (more.mean() - less.mean()))
    estimate = arm_against_control(more, less)
    assert effects[0]["p_value"] == pytest.approx(estimate.p_value)


TAMPERED = {
    "difference_points": lambda d: d + 1,
    "interval_points": lambda bounds: [bounds[0] + 1, bounds[1]],
    "p_value": lambda p: p / 2,
    "component": "length",
    "weight": 0.5,
    "against_weight": 0.1,
    "arm": "random",
    "against": "random",
    "metric": "lenient",
}


@pytest.mark.parametrize("field", TAMPERED)
def test_an_edited_comparison_of_components_is_named(
    paired: Path, tmp_path: Path, field: str
) -> None:
    root = Path(shutil.copytree(paired, tmp_path / "synthetic"))
    record(FILE, "components", 0, field, to=TAMPERED[field])(root)
    assert field in ablation_failures(root)


def test_a_comparison_that_was_taken_out_is_missed(paired: Path, tmp_path: Path) -> None:
    root = Path(shutil.copytree(paired, tmp_path / "synthetic"))
    record(FILE, "components", to=lambda effects: effects[:1])(root)
    assert "components" in ablation_failures(root)


def ablation_failures(root: Path) -> str:
    reseal(root)
    check = next(c for c in verify_study(root).checks if c.name == "ablation")
    assert check.status == "failed"
    return check.failures[0].expected


def test_the_study_itself_is_sound(paired: Path) -> None:
    assert verify_study(paired).result == "PASSED"
