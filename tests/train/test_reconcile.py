"""Rows against the plan and the trainer's counter, at every checkpoint and at the end."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from ahalab.errors import InputError
from ahalab.records.rollout import Rollout
from ahalab.records.step import Step
from ahalab.store.reading import read_rows
from ahalab.tasks.prepare import read_prompts
from ahalab.train.reconcile import reconcile
from lab import Trained, rollouts_of

pytestmark = pytest.mark.train


def check(trained: Trained, steps: list[Step], rollouts: list[Rollout], done: int) -> None:
    prompts = read_prompts(trained.paths, "train")
    reconcile(
        trained.plan,
        steps,
        rollouts,
        done=done,
        prompt_tokens={p.prompt_id: p.prompt_tokens for p in prompts},
        place=Path("rollouts.jsonl"),
    )


@pytest.fixture
def rows(trained: Trained) -> tuple[list[Step], list[Rollout]]:
    run = trained.run("historical")
    return [row for _, row in read_rows(run.steps, Step)], rollouts_of(run)


@pytest.mark.parametrize("done", [2, 4, 6])
def test_the_rows_of_a_run_are_right_at_each_of_its_checkpoints(
    trained: Trained, rows: tuple[list[Step], list[Rollout]], done: int
) -> None:
    steps, rollouts = rows
    check(trained, steps[:done], rollouts[: done * 16], done)


def test_what_is_lost_doubled_or_miscounted_is_told(
    trained: Trained, rows: tuple[list[Step], list[Rollout]]
) -> None:
    steps, rollouts = rows
    for wrong in (rollouts[:-1], [*rollouts, rollouts[-1]], [*rollouts[:-1], rollouts[0]]):
        with pytest.raises(InputError, match="expected 96 rollouts in 6 steps, each once"):
            check(trained, steps, wrong, 6)
    with pytest.raises(InputError, match="in 6 steps"):
        check(trained, steps[:-1], rollouts, 6)
    longer = replace(rollouts[7], completion_ids=(*rollouts[7].completion_ids, 1))
    with pytest.raises(InputError, match="the trainer's count of tokens"):
        check(trained, steps, [*rollouts[:7], longer, *rollouts[8:]], 6)
