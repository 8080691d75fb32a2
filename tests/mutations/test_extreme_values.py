"""A sample of what `python -m benchmarks.mutations --extremes` does whole."""

from __future__ import annotations

import random
import resource
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ahalab.plan.counts import MOST, MOST_SAMPLES
from mutations.extremes import extreme_changes, judge_extreme
from mutations.on_fields import every_change

SAMPLE, SEED = 25, 20261130
# Each ended the verifier once.
ONCE = [
    ("ReplayedAnswers.strict_lost in analysis/replay.json", 10**400),
    ("RunRecord.rollouts_expected in arms/additive_format/seed-1/run.json", 10**400),
    ("Rollout.reward in arms/additive_format/seed-1/rollouts.jsonl:1", None),
    ("Rollout.reward in arms/additive_format/seed-1/rollouts.jsonl:1", 1e308),
    ("Claim.value in claims.json", 10**400),
    ("AnalysisSpec.alpha in study.yaml", 5e-324),
]
# What a forger may write into a plan: nobody counts up to it, which would take hours or all memory.
COUNTS = ["TaskSpec.train_prompts", "TaskSpec.eval_prompts", "EvaluationSpec.samples",
          "ValidationSpec.prompts", "Plan.grpo[max_steps]"]  # fmt: skip
CPU_SECONDS, MORE_MEGABYTES = 20.0, 300


def test_no_extreme_value_of_any_field_ends_the_verifier(
    studies: dict[str, Path], tmp_path: Path
) -> None:
    changes = list(extreme_changes(studies))
    once = [one for one in changes if (one[1].name, one[1].value) in ONCE]
    assert len(once) == len(ONCE)
    drawn = random.Random(SEED).sample(changes, SAMPLE)  # noqa: S311
    for study, change in [*once, *drawn]:
        judged = judge_extreme(studies[study], change, tmp_path / "copy")
        assert judged.caught, f"{judged.name}: {judged.why}"


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("most", [MOST, MOST_SAMPLES, 2**62])
def test_a_forged_count_costs_neither_time_nor_memory(
    studies: dict[str, Path], tmp_path: Path, name: str, most: int
) -> None:
    change = next(
        one for one in every_change(studies["synthetic"]) if one.name == f"{name} in study.yaml"
    )
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    judged = judge_extreme(studies["synthetic"], replace(change, value=most), tmp_path / "copy")
    assert judged.caught, judged.why
    assert judged.why == "FAILED"
    assert time.process_time() - began < CPU_SECONDS
    more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert more / 1024 < MORE_MEGABYTES


def test_every_kind_of_field_has_extremes(studies: dict[str, Path]) -> None:
    kinds = {type(change.value) for _, change in extreme_changes(studies)}
    assert kinds >= {int, float, str, list, dict, type(None), bool}


def test_an_exception_is_told(
    studies: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended(root: Path) -> None:
        raise OverflowError("int too large to convert to float")

    monkeypatch.setattr("mutations.extremes.verify", ended)
    study, change = next(iter(extreme_changes(studies)))
    judged = judge_extreme(studies[study], change, tmp_path / "copy")
    assert not judged.caught
    assert judged.why == "OverflowError: int too large to convert to float"
