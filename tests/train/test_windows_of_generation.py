"""Plans whose generation batches do not fall on whole optimizer steps are refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from lab import PLAN, WINDOWED, plan_of

from ahalab.errors import MissingError, PlanError
from ahalab.train import trl_compat
from ahalab.train.trl_compat import check_trl, grpo_config


def config(text: str) -> None:
    pytest.importorskip("trl", reason="pip install 'ahalab[train]'")
    grpo_config(plan_of(text), 1, Path("unused"))


@pytest.mark.train
@pytest.mark.parametrize(
    ("accumulation", "slices", "iterations", "nearest"),
    [(4, 2, 1, 4), (2, 1, 1, 2), (4, 3, 1, 4), (2, 3, 1, 4), (4, 1, 2, 2)],
)
def test_a_batch_that_ends_within_a_step_is_refused_with_the_nearest_value(
    accumulation: int, slices: int, iterations: int, nearest: int
) -> None:
    text = PLAN.replace(
        "per_device_train_batch_size: 16",
        f"per_device_train_batch_size: 4\n  gradient_accumulation_steps: {accumulation}\n"
        f"  steps_per_generation: {slices}\n  num_iterations: {iterations}",
    ).replace("  save_steps: 2\n", "")
    with pytest.raises(PlanError, match=rf"steps_per_generation.*={nearest}\b"):
        config(text)


def test_a_trl_known_to_train_something_else_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for found, reason in (("0.22.0", "scales rewards"), ("0.19.0", "strips"), ("0.15.2", "0.24")):
        monkeypatch.setattr(trl_compat, "version", lambda _, v=found: v)
        with pytest.raises(MissingError, match=reason):
            check_trl()
    monkeypatch.setattr(trl_compat, "version", lambda _: "1.16.0.dev0")
    check_trl()


def test_the_plans_used_here_are_plans() -> None:
    assert plan_of(WINDOWED).grpo["steps_per_generation"] == 2
