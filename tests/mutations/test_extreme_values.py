"""A sample of what `python -m benchmarks.mutations --extremes` does whole."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from mutations.extremes import extreme_changes, judge_extreme

SAMPLE, SEED = 25, 20261130
# Each ended the verifier once.
ONCE = [
    ("ReplayedAnswers.strict_lost in analysis/replay.json", 10**400),
    ("RunRecord.rollouts_expected in arms/additive_format/seed-1/run.json", 10**400),
]


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
