from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ahalab.statistics.counterfactual import ArmFigures, Batch, Tally, loss_weights, taught
from ahalab.statistics.likeness import cluster, correlations

Rewards = Sequence[float | None]

# Rewards as arms pay them: few values, some missing; scaled by what keeps them far above 1e-9.
REWARD = st.one_of(st.none(), st.sampled_from([-1.0, 0.0, 0.2, 0.5, 1.0, 1.2]))
GROUPS = st.lists(st.lists(REWARD, min_size=4, max_size=4), min_size=1, max_size=4)


def flat(groups: Sequence[Rewards]) -> list[float | None]:
    return [reward for group in groups for reward in group]


def figures(
    arms: Sequence[Rewards], right: Sequence[bool], size: int = 4, tokens: Sequence[int] = ()
) -> list[ArmFigures]:
    """Return every arm's figures over one batch under group scaling and the dapo loss."""
    weights = loss_weights(tokens or [1] * len(right), None, "dapo")
    tally = Tally(len(arms))
    tally.add(
        Batch(
            [taught(rewards, size, "group") for rewards in arms],
            np.array([right, right]),
            np.stack([np.ones(len(right)), weights]),
            len(right) // size,
        )
    )
    return [tally.figures(arm) for arm in range(len(arms))]


def test_a_group_is_centred_and_divided_by_its_sample_deviation() -> None:
    # Mean 0.5; squares 4 x 0.25 over 3: deviation 0.57735.
    found = taught([1.0, 0.0, 0.0, 1.0], 4, "group")
    assert found.advantages == pytest.approx(np.array([1, -1, -1, 1]) * 0.5 / 0.57745, abs=1e-5)
    assert found.dead_groups == 0


def test_no_scaling_leaves_the_difference_from_the_mean() -> None:
    assert list(taught([1.0, 0.0, 0.0, 1.0], 4, "none").advantages) == [0.5, -0.5, -0.5, 0.5]


def test_batch_scaling_divides_every_group_by_the_deviation_of_the_batch() -> None:
    rewards = [1.0, 0.0, 3.0, 3.0, 0.2, 0.4]
    centred = np.array(rewards) - np.repeat([0.5, 3.0, 0.3], 2)
    expected = centred / (np.std(rewards, ddof=1) + 1e-4)
    assert taught(rewards, 2, "batch").advantages == pytest.approx(expected, abs=1e-12)


def test_a_dead_group_teaches_exactly_nothing() -> None:
    # Float means leave 1.2 - mean(8 x 1.2) = 2e-16, which over 1e-4 is no 0 (TRL_FACTS 19).
    found = taught([0.1 + 0.2, 0.3, 0.3, 0.3], 4, "group")
    assert list(found.advantages) == [0.0] * 4
    assert found.dead_groups == 1


def test_a_reward_that_is_the_mean_of_its_group_has_no_sign() -> None:
    found = taught([0.1, 0.2, 0.3], 3, "group").advantages
    assert found[1] == 0.0
    assert np.sign(found).tolist() == [-1, 0, 1]


def test_a_rollout_without_a_reward_has_no_advantage_and_no_part_in_the_mean() -> None:
    found = taught([1.0, None, 0.0], 3, "none")
    assert found.advantages.tolist() == [0.5, 0.0, -0.5]
    assert np.isnan(found.rewards).tolist() == [False, True, False]
    assert taught([None, None, None], 3, "group").dead_groups == 1


@pytest.mark.parametrize(("rewards", "size"), [([1.0, 0.0, 1.0], 2), ([1.0, 0.0], 1)])
def test_groups_that_are_not_whole_are_refused(rewards: list[float | None], size: int) -> None:
    with pytest.raises(ValueError, match="whole groups of 2"):
        taught(rewards, size, "group")


def test_an_unknown_scale_is_refused() -> None:
    with pytest.raises(ValueError, match="scale_rewards: expected group, batch or none"):
        taught([1.0, 0.0], 2, "rank")


@pytest.mark.parametrize(
    ("loss", "cut", "expected"),
    [
        ("grpo", None, [0.25, 0.25, 0.25, 0.25]),
        ("dapo", None, [0.1, 0.2, 0.3, 0.4]),
        ("bnpo", None, [0.1, 0.2, 0.3, 0.4]),
        ("dr_grpo", None, [2.5, 5.0, 7.5, 10.0]),
        ("dapo", [False, False, False, True], [1 / 6, 2 / 6, 3 / 6, 0.0]),
        ("grpo", [False, False, False, True], [0.25, 0.25, 0.25, 0.0]),
    ],
)
def test_a_loss_weighs_responses_or_their_tokens(
    loss: str, cut: list[bool] | None, expected: list[float]
) -> None:
    assert loss_weights([10, 20, 30, 40], cut, loss) == pytest.approx(expected)


def test_a_loss_whose_normaliser_is_unknown_is_refused() -> None:
    with pytest.raises(ValueError, match=r"loss_type: expected one of bnpo, .*found 'new'"):
        loss_weights([1], None, "new")


def test_signs_that_turn_vanish_and_appear_are_counted_apart() -> None:
    recorded = [1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0]  # live, dead
    turned = [0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0]  # two turn; four appear
    silent = [0.5] * 8  # four vanish
    own, other, none = figures([recorded, turned, silent], [True] * 8)
    assert (own.flipped, own.silenced, own.awakened, own.dead) == (0.0, 0.0, 0.0, 0.5)
    assert (other.flipped, other.silenced, other.awakened, other.dead) == (0.25, 0.0, 0.5, 0.0)
    assert (none.flipped, none.silenced, none.awakened, none.dead) == (0.0, 0.5, 0.0, 1.0)
    assert none.magnitude == 0.0


def test_mass_on_wrong_answers_is_weighed_by_the_tokens_of_the_loss() -> None:
    # Two are paid, of 10 and 30 tokens; the longer one is wrong. Advantages are +a and -a.
    (paid,) = figures([[1.0, 1.0, 0.0, 0.0]], [True, False, True, False], tokens=[10, 30, 15, 25])
    for by_response, by_loss in paid.shares:
        assert by_response.positive_on_wrong == pytest.approx(0.5)
        assert by_loss.positive_on_wrong == pytest.approx(30 / 40)
        assert by_loss.absolute_on_wrong == pytest.approx(55 / 80)
        assert by_loss.negative_on_right == pytest.approx(15 / 40)


def test_the_mean_payment_of_right_and_wrong_answers_leaves_out_what_was_not_paid() -> None:
    (paid,) = figures([[1.0, None, 0.2, 0.0]], [True, True, False, False])
    assert (paid.paid_right, paid.paid_wrong) == (1.0, pytest.approx(0.1))
    assert paid.unrewarded == 0.25


def test_what_has_no_mass_has_no_share() -> None:
    (paid,) = figures([[1.0] * 4], [False] * 4)
    assert paid.shares[1][1].positive_on_wrong is None
    assert paid.paid_right is None


def test_figures_of_no_rollout_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one rollout"):
        Tally(1).figures(0)


@given(GROUPS)
def test_an_arm_against_itself_turns_nothing(groups: list[Rewards]) -> None:
    rewards = flat(groups)
    _, again = figures([rewards, list(rewards)], [True] * len(rewards))
    assert (again.flipped, again.silenced, again.awakened) == (0.0, 0.0, 0.0)


@given(GROUPS, st.sampled_from([0.5, 2.0, 10.0]), st.sampled_from([-3.0, 0.0, 7.0]))
def test_scale_and_offset_of_a_reward_teach_the_same(
    groups: list[Rewards], factor: float, offset: float
) -> None:
    rewards = flat(groups)
    other = taught([None if r is None else factor * r + offset for r in rewards], 4, "group")
    own = taught(rewards, 4, "group")
    assert np.sign(other.advantages).tolist() == np.sign(own.advantages).tolist()
    # The smallest deviation here is 0.1, scaled 0.05, to which TRL adds 1e-4.
    assert other.advantages == pytest.approx(own.advantages, rel=3e-3)


@given(GROUPS, st.randoms(use_true_random=False))
def test_the_order_within_a_group_moves_advantages_and_nothing_else(
    groups: list[Rewards], rng: np.random.Generator
) -> None:
    order = [0, 1, 2, 3]
    rng.shuffle(order)
    own = taught(flat(groups), 4, "group").advantages.reshape(-1, 4)
    moved = taught(flat([[g[i] for i in order] for g in groups]), 4, "group").advantages
    assert moved == pytest.approx(own[:, order].ravel(), abs=1e-12)


@settings(max_examples=30)
@given(GROUPS, GROUPS)
def test_two_batches_in_turn_make_the_sums_of_both(
    one: list[Rewards], other: list[Rewards]
) -> None:
    def batch(groups: list[Rewards]) -> Batch:
        rewards = flat(groups)
        right = np.array([r == 1.0 for r in rewards])
        arms = [taught(rewards, 4, "none"), taught([-(r or 0.0) for r in rewards], 4, "none")]
        weights = np.ones((2, len(rewards)))
        return Batch(arms, np.stack([right, right]), weights, len(groups))

    apart, together = Tally(2), Tally(2)
    apart.add(batch(one))
    apart.add(batch(other))
    together.add(batch([*one, *other]))
    assert apart.products == pytest.approx(together.products, abs=1e-9)
    for arm in range(2):
        assert apart.figures(arm).flipped == together.figures(arm).flipped
        assert apart.figures(arm).dead == together.figures(arm).dead
        assert apart.figures(arm).magnitude == pytest.approx(together.figures(arm).magnitude)


def test_correlations_are_those_of_numpy() -> None:
    rng = np.random.default_rng(1)
    groups = rng.integers(0, 3, size=(3, 10, 4)).astype(float)  # three arms, ten groups
    advantages = [taught(list(arm.ravel()), 4, "group").advantages for arm in groups]
    stacked = np.stack(advantages)
    found = correlations(stacked @ stacked.T)
    assert np.array(found, dtype=float) == pytest.approx(np.corrcoef(stacked), abs=1e-9)
    assert [found[i][i] for i in range(3)] == [1.0, 1.0, 1.0]


def test_an_arm_that_teaches_nothing_has_no_correlation_and_stands_in_no_cluster() -> None:
    found = correlations(np.array([[4.0, 0.0, 2.0], [0.0, 0.0, 0.0], [2.0, 0.0, 1.0]]))
    assert found[1] == [None, None, None]
    assert found[0][2] == 1.0
    tree = cluster(found)
    assert sorted(tree.order) == [0, 2]
    assert [sorted(members) for members in tree.clusters] == [[0, 2]]


def test_average_linkage_joins_the_likest_first() -> None:
    # By hand: 0 and 2 join at .9; then 1 and 3 at .7; the halves at the mean of .1 .2 .3 .4.
    matrix = [
        [1.0, 0.1, 0.9, 0.2],
        [0.1, 1.0, 0.3, 0.7],
        [0.9, 0.3, 1.0, 0.4],
        [0.2, 0.7, 0.4, 1.0],
    ]
    tree = cluster(matrix)
    assert [(sorted(members), round(r, 9)) for members, r in tree.merges] == [
        ([0, 2], 0.9),
        ([1, 3], 0.7),
        ([0, 1, 2, 3], 0.25),
    ]
    assert sorted(sorted(members) for members in tree.clusters) == [[0, 2], [1], [3]]
    assert sorted(tree.order) == [0, 1, 2, 3]
    assert abs(tree.order.index(0) - tree.order.index(2)) == 1


def test_one_arm_alone_is_a_cluster_and_none_are_none() -> None:
    assert cluster([[1.0]]).clusters == ((0,),)
    assert cluster([[None]]).clusters == ()
