"""What a run did, from rows made by hand: every figure, and every alarm both ways."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest
from msgspec.structs import replace

from ahalab.records.rollout import ComponentRow, Rollout
from ahalab.records.step import Step
from ahalab.records.terms import Finish, Outcome
from ahalab.statistics.diagnostics import diagnose
from ahalab.statistics.training import (
    advantages_from_rewards,
    groups_of,
    step_figures,
    wrong_advantage_fraction,
    zero_variance,
)


@dataclass(frozen=True)
class Made:
    """One rollout in short."""

    reward: float = 0.0
    advantage: float = 0.0
    lenient: Outcome = "wrong"
    strict: Outcome = "wrong"
    historical: Outcome = "wrong"
    finish: Finish = "eos"
    tokens: int = 4
    text: str | None = None
    formatted: bool = True
    repetition: float = 0.0
    other: float | None = 0.5  # value of a second component


def rollouts(groups: Sequence[Sequence[Made]], step: int = 0) -> list[Rollout]:
    return [
        Rollout(
            step=step,
            rank=0,
            group=group,
            prompt_id=f"{group:05d}-x",
            sample=sample,
            completion=made.text if made.text is not None else f"{group} {sample}",
            completion_ids=(1,) * made.tokens,
            finish=made.finish,
            components={
                "correct_strict": ComponentRow(value=made.reward, status="ok"),
                "other": ComponentRow(value=made.other, status="ok"),
            },
            reward=made.reward,
            advantage=made.advantage,
            historical=made.historical,
            strict=made.strict,
            lenient=made.lenient,
            status="ok",
            extracted=None,
            formatted=made.formatted,
            repetition=made.repetition,
            reflection=("wait",) if made.text and "wait" in made.text else (),
        )
        for group, members in enumerate(groups)
        for sample, made in enumerate(members)
    ]


def step_of(number: int, rows: list[Rollout], entropy: float | None = 0.6) -> Step:
    return Step(
        step=number, loss=0.0, grad_norm=0.1, learning_rate=1e-4, entropy=entropy, kl=None,
        clip_low_fraction=None, clip_high_fraction=None, tokens=None, **step_figures(rows),
    )  # fmt: skip


def run_of(
    batches: Sequence[Sequence[Sequence[Made]]], entropies: Sequence[float] | None = None
) -> tuple[list[Step], list[Rollout]]:
    rows = [rollouts(groups, step) for step, groups in enumerate(batches)]
    steps = [
        step_of(n, batch, entropies[n - 1] if entropies else 0.6)
        for n, batch in enumerate(rows, start=1)
    ]
    return steps, [row for batch in rows for row in batch]


def alarms(
    batches: Sequence[Sequence[Sequence[Made]]],
    entropies: Sequence[float] | None = None,
    norm: float | None = 1.0,
) -> list[str]:
    steps, rows = run_of(batches, entropies)
    return [a.name for a in diagnose("random", 0, steps, rows, norm).alarms]


RIGHT = Made(1.0, 0.5, "correct", "correct", "correct")
WRONG = Made(0.0, -0.5)
SOUND = [[[RIGHT, WRONG, RIGHT, WRONG]] * 4] * 10


def test_a_sound_run_raises_no_alarm() -> None:
    assert alarms(SOUND) == []


# Groups without a gradient.


def test_a_group_of_equal_rewards_is_dead_in_spite_of_rounding_noise() -> None:
    # TRL's advantage of eight rewards of 1.2 is 1.2e-3, not 0 (TRL_FACTS 19).
    noisy = [1.2, 1.2 + 2e-16, 1.2 - 2e-16, 1.2]
    group = rollouts([[Made(r, 1.2e-3) for r in noisy]])
    assert zero_variance(group)
    assert wrong_advantage_fraction(group) is None


def test_rewards_a_hair_apart_for_a_reason_are_not_dead() -> None:
    assert not zero_variance(rollouts([[Made(0.0), Made(1e-6)]]))


def test_a_run_of_dead_groups_is_called_dead_from_95_percent_on() -> None:
    dead, live = [WRONG] * 4, [RIGHT, WRONG, WRONG, WRONG]
    assert "dead_run" in alarms([[dead] * 19 + [live]])  # 19 of 20
    assert "dead_run" not in alarms([[dead] * 18 + [live] * 2])


# The advantage of wrong answers.


def test_wrong_advantage_is_the_share_of_positive_advantage_on_wrong_answers() -> None:
    groups = [
        [Made(1.0, 1.5, "correct"), Made(0.2, 0.5), Made(0.0, -2.0), Made(0.0, 0.0)],
        [Made(1.0, 1.0, "wrong"), Made(0.0, -1.0, "correct")],
        [Made(0.7, 9.0), Made(0.7, 9.0)],  # dead: its advantage is rounding noise
    ]
    # positive: 1.5 right, .5 wrong, 1.0 wrong -> 1.5 of 3.0
    assert wrong_advantage_fraction(rollouts(groups)) == pytest.approx(0.5)


def test_without_a_positive_advantage_its_share_is_unknown_not_zero() -> None:
    assert wrong_advantage_fraction(rollouts([[Made(1.0, 0.0), Made(0.0, -1.0)]])) is None
    assert wrong_advantage_fraction([]) is None


def test_groups_of_one_prompt_in_two_steps_are_two_groups() -> None:
    rows = rollouts([[RIGHT, WRONG]], step=0) + rollouts([[RIGHT, WRONG]], step=1)
    assert [len(g) for g in groups_of(rows)] == [2, 2]


# Advantages as TRL computes them.


def test_advantages_are_deviations_over_the_sample_deviation() -> None:
    # rewards 1 0 0 1: mean .5, sample sd sqrt(4 * .25 / 3) = .57735
    expected = 0.5 / (0.5773502691896258 + 1e-4)
    found = advantages_from_rewards([1.0, 0.0, 0.0, 1.0], "group")
    assert found == pytest.approx([expected, -expected, -expected, expected])
    assert advantages_from_rewards([1.0, 0.0], "none") == [0.5, -0.5]


def test_advantages_that_cannot_be_known_from_the_group_are_none() -> None:
    assert advantages_from_rewards([1.0, 0.0], "batch") is None
    assert advantages_from_rewards([1.0], "group") is None
    assert advantages_from_rewards([], "none") is None


# The figures of one step.


def test_the_figures_of_a_step_by_hand() -> None:
    groups = [
        [
            Made(1.0, 1.0, "correct", "correct", "correct", tokens=3, text="a"),
            Made(0.0, -1.0, "correct", "unparsed", "correct", tokens=5, text="wait, b"),
        ],
        [
            Made(0.5, 0.0, tokens=8, finish="length", lenient="truncated", text="c"),
            Made(0.5, 0.0, tokens=8, historical="correct", text="c"),
        ],
    ]
    found = step_figures(rollouts(groups))
    assert found["reward_mean"] == pytest.approx(0.5)
    assert found["reward_std"] == pytest.approx(0.125**0.5)  # squares .25 .25 0 0 over 4
    assert found["zero_variance_fraction"] == 0.5
    assert (found["all_right_fraction"], found["all_wrong_fraction"]) == (0.0, 0.5)
    assert (found["strict_fraction"], found["lenient_fraction"]) == (0.25, 0.5)
    assert found["historical_fraction"] == 0.75
    assert found["components"] == {"correct_strict": 0.5, "other": 0.5}
    assert found["mixed_fraction"] == 0.5  # the first group
    assert found["paid_though_wrong_fraction"] == 0.25  # the fourth
    assert found["unpaid_though_right_fraction"] == 0.0
    assert found["formatted_fraction"] == 1.0
    assert found["repetition_mean"] == 0.0
    assert found["unrewarded_fraction"] == 0.0
    assert found["truncated_fraction"] == 0.25
    assert found["length_mean_tokens"] == 6.0
    assert (found["length_right_tokens"], found["length_wrong_tokens"]) == (4.0, 8.0)
    assert found["unique_completions"] == 1.5  # two in the first group, one in the second
    assert found["scorer_disagreement_fraction"] == 0.5  # the second and the fourth
    assert found["wrong_advantage_fraction"] == 0.0
    assert found["reflection_fraction"] == 0.25


def test_a_step_that_reused_a_batch_has_unknown_figures_never_zero() -> None:
    found = step_figures([])
    assert found.pop("components") == {}
    assert set(found.values()) == {None}


def test_the_trends_are_means_over_the_first_and_last_fifth() -> None:
    # Ten steps, two a fifth: rewards 0, 1/4, ..., the last two 3/4 and 1.
    ladder = [0, 1, 2, 2, 2, 2, 2, 2, 3, 4]
    steps, rows = run_of([[[RIGHT] * k + [WRONG] * (4 - k)] for k in ladder])
    found = diagnose("random", 0, steps, rows, 1.0)
    assert (found.reward.first, found.reward.last) == (0.125, 0.875)
    assert found.components["correct_strict"] == found.reward
    assert (found.steps, found.rollouts) == (10, 40)


def test_the_parsers_are_set_against_each_other_over_the_whole_run() -> None:
    paid = Made(1.0, 1.0, historical="correct")
    unpaid = Made(0.0, -1.0, "correct", "correct")
    steps, rows = run_of([[[paid, unpaid, unpaid, WRONG]]] * 5)
    found = diagnose("historical", 0, steps, rows, 1.0)
    assert (found.paid_though_wrong_fraction, found.unpaid_though_right_fraction) == (0.25, 0.5)
    assert found.wrong_advantage_fraction == 1.0


def test_a_run_without_rows_is_unknown_throughout() -> None:
    found = diagnose("random", 0, [], [], None)
    assert (found.reward.first, found.zero_variance_fraction) == (None, None)
    assert found.alarms == ()


# Truncation, entropy, groups, effect.


def test_truncation_is_told_from_a_fifth_of_the_last_completions_on() -> None:
    cut = Made(0.0, -0.5, "truncated", "truncated", finish="length")
    quiet = [[RIGHT, WRONG, RIGHT, WRONG]]
    assert "truncation" in alarms([quiet] * 4 + [[[cut, WRONG, RIGHT, RIGHT]]])
    assert "truncation" not in alarms([[[cut, cut, RIGHT, RIGHT]]] * 4 + [quiet])


def test_entropy_that_falls_to_a_fifth_is_a_collapse() -> None:
    assert "entropy_collapse" in alarms(SOUND, [0.5] * 5 + [0.1] * 5)
    assert "entropy_collapse" not in alarms(SOUND, [0.5] * 5 + [0.11] * 5)


def test_an_adapter_without_effect_learned_nothing_and_an_unknown_one_is_not_accused() -> None:
    assert "nothing_learned" in alarms(SOUND, norm=0.0)
    assert "nothing_learned" not in alarms(SOUND, norm=1e-9)
    assert "nothing_learned" not in alarms(SOUND, norm=None)


def test_small_groups_are_coarse_and_the_reason_fits_their_size() -> None:
    def told(size: int) -> list[str]:
        steps, rows = run_of([[[RIGHT, WRONG, WRONG, WRONG][:size]]] * 5)
        found = diagnose("random", 0, steps, rows, 1.0).alarms
        return [a.evidence for a in found if a.name == "group_below_4"]

    assert "+-0.7" in told(2)[0]
    assert "+-0.7" not in told(3)[0]
    assert told(4) == []


# Reward that rises while accuracy does not.


def paid_for(rise: float, right: int = 0, groups: int = 16) -> list[list[list[Made]]]:
    """Ten steps; the reward of half the rollouts grows by twice `rise` in the last two steps."""

    def batch(extra: float) -> list[list[Made]]:
        half = [Made(0.5 + extra, 0.5), Made(0.3 + extra, 0.5)]
        good = [RIGHT] * right if extra else []
        return [[*good, *[*half, WRONG, WRONG][: 4 - len(good)]]] * groups

    return [batch(0.0)] * 8 + [batch(2 * rise)] * 2


def test_a_reward_that_rises_while_accuracy_is_flat_is_told() -> None:
    assert "reward_without_accuracy" in alarms(paid_for(0.2))


def test_a_reward_that_rises_with_accuracy_is_not() -> None:
    assert "reward_without_accuracy" not in alarms(paid_for(0.2, right=2))


def test_a_rise_below_a_tenth_is_not_told_however_sure() -> None:
    assert "reward_without_accuracy" not in alarms(paid_for(0.04))


@pytest.mark.parametrize("rise", [0.125, 0.1])  # half of a printed digit; the threshold
def test_another_last_digit_of_a_step_changes_nothing_that_is_told(rise: float) -> None:
    steps, rows = run_of(paid_for(rise))
    told = []
    for nudge in (-4e-16, 0.0, 4e-16):
        nudged = [*steps[:-1], replace(steps[-1], reward_mean=(steps[-1].reward_mean or 0) + nudge)]
        told.append(diagnose("historical", 1, nudged, rows, 1.0).alarms)
    assert told[0] == told[1] == told[2]
    assert "reward_without_accuracy" in {alarm.name for alarm in told[0]}


def placebo(dice: random.Random, steps: int, groups: int) -> Iterator[list[list[Made]]]:
    """A reward of coin flips: each group of four shares no luck with the next."""
    for _ in range(steps):
        yield [
            [Made(float(dice.random() < 0.5), dice.choice([-1.0, 1.0])) for _ in range(4)]
            for _ in range(groups)
        ]


def test_a_placebo_on_a_short_run_hardly_ever_raises_it() -> None:
    # One step a fifth of 8 groups of 4: the rise has a standard error of .125, so that .1 alone
    # is passed in a fifth of runs; two standard errors are passed in about one of 44, and with
    # the error itself estimated from so few groups in about one of 30.
    raised = plain = 0
    for seed in range(300):
        steps, rows = run_of(list(placebo(random.Random(seed), 5, 8)))  # noqa: S311
        found = diagnose("random", 0, steps, rows, 1.0)
        raised += any(a.name == "reward_without_accuracy" for a in found.alarms)
        plain += (found.reward.last or 0) - (found.reward.first or 0) >= 0.1
    assert plain > 45  # the threshold alone would cry wolf
    assert raised <= 18  # expected about 9


def test_the_error_of_a_rise_is_that_of_group_means_by_hand() -> None:
    # First fifth: group means 0 and .5, last: .5 and 1. Each fifth: variance .125 over 2 groups;
    # error sqrt(.0625 + .0625) = .354, twice that is more than the rise of .5.
    low, middle, high = (
        [Made(0.0)] * 4,
        [Made(0.0), Made(0.0), Made(1.0), Made(1.0)],
        [Made(1.0)] * 4,
    )
    assert "reward_without_accuracy" not in alarms([[low, middle]] * 4 + [[middle, high]])
    # Eight groups in each: variance .0714 (8/7 * .0625) over 8, error .134: the rise stands.
    many = alarms([[low, middle] * 4] * 4 + [[middle, high] * 4])
    assert "reward_without_accuracy" in many


def test_a_fifth_of_one_group_is_too_little_to_tell() -> None:
    low, high = [Made(0.0)] * 4, [Made(1.0), Made(1.0), Made(1.0), Made(0.9)]
    assert "reward_without_accuracy" not in alarms([[low]] * 4 + [[high]])
