"""Alarms both ways, spikes, correlations and slopes, against hand-worked values and numpy."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from msgspec.structs import replace
from test_run_diagnostics import RIGHT, SOUND, WRONG, Made, alarms, rollouts, run_of, step_of

from ahalab.records.diagnostics import Diagnostics
from ahalab.records.rollout import Rollout
from ahalab.statistics.alarms import ALARMS, SPIKE_LEAST, SPIKE_RATIO, find_spikes
from ahalab.statistics.diagnostics import diagnose
from ahalab.statistics.training import (
    groups_of,
    handed_rewards,
    step_figures,
    zero_variance,
)

LOOSE_RIGHT = Made(0.0, 0.1, "correct", "unparsed", formatted=False)
TIDY_WRONG = Made(0.0, 0.1)
LOOSE_WRONG = Made(0.0, 0.1, formatted=False)


def summary(batches: Sequence[Sequence[Sequence[Made]]]) -> Diagnostics:
    steps, rows = run_of(batches)
    return diagnose("random", 0, steps, rows, 1.0)


def without_reward(rows: list[Rollout], *positions: int) -> list[Rollout]:
    return [
        replace(
            row,
            reward=None,
            components={
                name: replace(part, value=None, status="error: bounds")
                for name, part in row.components.items()
            },
        )
        if at in positions
        else row
        for at, row in enumerate(rows)
    ]


# Format against accuracy.


def drift(before: Sequence[Made], after: Sequence[Made]) -> list[str]:
    """Return the alarms of a run that goes from one kind of group to another."""
    return alarms([[list(before)] * 4] * 5 + [[list(after)] * 4] * 5)


def test_a_format_met_more_often_by_fewer_right_answers_is_told() -> None:
    told = drift([LOOSE_RIGHT] * 2 + [LOOSE_WRONG] * 2, [TIDY_WRONG] * 4)
    assert "format_without_accuracy" in told


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([LOOSE_RIGHT] * 2 + [LOOSE_WRONG] * 2, [RIGHT] * 2 + [TIDY_WRONG] * 2),  # accuracy held
        ([LOOSE_RIGHT] * 2 + [LOOSE_WRONG] * 2, [LOOSE_WRONG] * 4),  # format no better
        ([LOOSE_WRONG] * 4, [TIDY_WRONG] * 4),  # nothing to lose
    ],
)
def test_a_better_format_alone_or_a_worse_accuracy_alone_is_not(
    before: Sequence[Made], after: Sequence[Made]
) -> None:
    assert "format_without_accuracy" not in drift(before, after)


def test_chance_alone_hardly_ever_raises_it() -> None:
    dice, raised = random.Random(3), 0  # noqa: S311
    for _ in range(60):
        batches = [
            [
                [dice.choice([LOOSE_RIGHT, LOOSE_WRONG, TIDY_WRONG, RIGHT]) for _ in range(4)]
                for _ in range(4)
            ]
            for _ in range(10)
        ]
        raised += "format_without_accuracy" in alarms(batches)
    assert raised <= 3


# Spikes.


def with_figures(name: str, values: Sequence[float | None]) -> Diagnostics:
    steps, rows = run_of([[[RIGHT, WRONG, RIGHT, WRONG]]] * len(values))
    changed = [replace(s, **{name: v}) for s, v in zip(steps, values, strict=True)]
    return diagnose("random", 0, changed, rows, 1.0)


@pytest.mark.parametrize(("name", "alarm"), [("grad_norm", "gradient_spike"), ("kl", "kl_spike")])
def test_a_value_over_ten_times_the_median_before_is_a_spike(name: str, alarm: str) -> None:
    calm: list[float | None] = [1.0, 2.0, 3.0, 2.0, 1.0]
    found = with_figures(name, [*calm, 2 * SPIKE_RATIO + 0.1, 2.0])
    (spike,) = found.spikes
    assert (spike.figure, spike.step, spike.median_before) == (name, 6, 2.0)
    assert spike.prompt_ids == ("00000-x",)
    (told,) = [a for a in found.alarms if a.name == alarm]
    assert "step 6" in told.evidence
    assert "00000-x" in told.evidence
    assert with_figures(name, [*calm, 2 * SPIKE_RATIO, 2.0]).spikes == ()


def test_steps_without_a_gradient_do_not_make_the_next_one_a_spike() -> None:
    assert with_figures("grad_norm", [0.0] * 30 + [1.0] * SPIKE_LEAST + [9.0]).spikes == ()
    assert with_figures("grad_norm", [0.0] * 30 + [1.0] * (SPIKE_LEAST - 1) + [99.0]).spikes == ()
    assert with_figures("grad_norm", [None] * 30).spikes == ()


def test_a_spike_of_a_reused_batch_names_the_batch_that_it_learned_from() -> None:
    rows = [rollouts([[Made(), Made()]] * (n + 1), step=2 * n) for n in range(4)]
    steps = [step_of(n, rows[(n - 1) // 2] if n % 2 else []) for n in range(1, 9)]
    steps[7] = replace(steps[7], grad_norm=9.0)  # the second step of the batch of step 6
    (spike,) = find_spikes(steps, groups_of([row for batch in rows for row in batch]))
    assert spike.step == 8
    assert spike.prompt_ids == ("00000-x", "00001-x", "00002-x", "00003-x")


# Rows without a reward.


def test_a_rollout_without_a_reward_counts_in_no_mean_and_is_counted() -> None:
    rows = without_reward(rollouts([[Made(1.0), Made(0.0), Made(0.5)]]), 1)
    found = step_figures(rows)
    assert found["reward_mean"] == 0.75
    assert found["reward_std"] == 0.25
    assert found["unrewarded_fraction"] == pytest.approx(1 / 3)
    assert found["components"]["correct_strict"] == 0.75


def test_a_group_is_dead_when_those_that_have_a_reward_are_equal() -> None:
    assert zero_variance(without_reward(rollouts([[Made(1.0), Made(0.0), Made(1.0)]]), 1))
    assert not zero_variance(without_reward(rollouts([[Made(1.0), Made(0.0), Made(1.0)]]), 0))
    assert zero_variance(without_reward(rollouts([[Made(1.0), Made(0.0)]]), 0, 1))


def test_the_trainer_is_handed_the_mean_of_the_others() -> None:
    assert handed_rewards([1.0, None, 0.0, 0.5]) == [1.0, 0.5, 0.0, 0.5]
    assert handed_rewards([None, None]) == [0.0, 0.0]
    assert handed_rewards([]) == []


def test_one_in_a_hundred_without_a_reward_is_told_with_the_reason() -> None:
    steps, rows = run_of(SOUND)
    assert len(rows) == 160
    told = diagnose("random", 0, steps, without_reward(rows, 5, 9), 1.0).alarms
    assert [a.name for a in told] == ["unrewarded"]
    assert "2 of 160 rollouts have no reward" in told[0].evidence
    assert "correct_strict (error: bounds)" in told[0].evidence
    assert diagnose("random", 0, steps, without_reward(rows, 5), 1.0).alarms == ()


# Figures of the whole run.


def test_groups_are_all_right_mixed_or_all_wrong() -> None:
    found = summary([[[RIGHT] * 2, [RIGHT, WRONG], [WRONG] * 2, [WRONG] * 2]])
    assert (found.all_right_fraction, found.mixed_fraction, found.all_wrong_fraction) == (
        0.25, 0.25, 0.5,
    )  # fmt: skip


def test_the_slope_of_the_entropy_is_numpys() -> None:
    entropies = [0.9, 0.7, 0.72, 0.5, 0.41]
    steps, rows = run_of(SOUND[:5], entropies)
    found = diagnose("random", 0, steps, rows, 1.0).entropy_slope
    assert found == pytest.approx(np.polyfit(range(1, 6), entropies, 1)[0])
    assert diagnose("random", 0, steps[:1], rows, 1.0).entropy_slope is None


def test_correlations_of_components_are_numpys() -> None:
    dice = random.Random(1)  # noqa: S311
    pairs = [(dice.random(), dice.random()) for _ in range(12)]
    found = summary([[[Made(a, other=b) for a, b in pairs]]]).component_correlations
    expected = np.corrcoef(np.array(pairs).T)[0, 1]
    assert found == {"correct_strict": {"other": pytest.approx(expected)}}


def test_a_component_that_never_varies_correlates_with_nothing() -> None:
    found = summary([[[Made(0.1, other=0.5), Made(0.9, other=0.5)]]]).component_correlations
    assert found == {"correct_strict": {"other": None}}
    rows = [Made(0.1, other=None), Made(0.9, other=0.2)]
    assert summary([[rows]]).component_correlations == {"correct_strict": {"other": None}}


def test_every_alarm_that_a_run_raises_has_a_listed_name() -> None:
    told = {*drift([LOOSE_RIGHT] * 2 + [LOOSE_WRONG] * 2, [TIDY_WRONG] * 4)}
    told |= {*alarms(SOUND, [0.9] * 5 + [0.01] * 5, norm=0.0)}
    told |= {*alarms([[[Made(finish="length")] * 2]] * 10)}
    assert {"truncation", "dead_run", "group_below_4", "nothing_learned"} <= told <= set(ALARMS)
