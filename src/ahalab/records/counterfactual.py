"""What other arms would have paid and taught, computed from the rollouts of finished runs."""

from __future__ import annotations

from typing import Literal

from ahalab.records.base import Record
from ahalab.records.terms import Metric, Outcome


class OverSeeds(Record, frozen=True, kw_only=True):
    """One figure over the seeds of an arm."""

    mean: float | None  # over the seeds that have it
    sd: float | None  # sample deviation; None for fewer than two seeds
    by_seed: tuple[float | None, ...]  # in the order of `seeds`


class MassOnAnswers(Record, frozen=True, kw_only=True):
    """Where the mass of an arm's advantages lies, as fractions; None: it has no such mass."""

    metric: Metric  # which reading says what is right
    weighting: Literal["response", "loss"]  # every response alike, or as the run's loss weighs it
    absolute_on_wrong: OverSeeds  # of the sum of |advantage|, on answers that are not right
    positive_on_wrong: OverSeeds  # of the positive advantage, on answers that are not right
    negative_on_right: OverSeeds  # of the negative advantage, on right answers


class ArmOnRollouts(Record, frozen=True, kw_only=True):
    """One arm on rollouts that were made under another, or under itself."""

    arm: str
    components: dict[str, float]
    control: bool
    recorded: bool  # the arm that the runs were trained with, as its rewards were recorded
    paid_right: OverSeeds  # mean reward of right answers, lenient
    paid_wrong: OverSeeds  # and of the others
    unrewarded_fraction: OverSeeds  # rollouts without a reward
    dead_group_fraction: OverSeeds  # groups of equal rewards, which teach nothing
    mean_absolute_advantage: OverSeeds
    flipped_fraction: OverSeeds  # rollouts with the opposite sign of the recorded advantage
    silenced_fraction: OverSeeds  # rollouts with advantage 0 where the recorded one is not
    awakened_fraction: OverSeeds  # rollouts with an advantage where the recorded one is 0
    correlation: float | None  # of its advantages with the recorded ones; None: it taught nothing
    mass: tuple[MassOnAnswers, ...]


class LeftOut(Record, frozen=True, kw_only=True):
    """An arm that could not be scored."""

    arm: str
    reason: str


class Merge(Record, frozen=True, kw_only=True):
    """One branch of the clustering."""

    arms: tuple[str, ...]
    correlation: float  # mean between its two halves


class RecordedRollouts(Record, frozen=True, kw_only=True):
    """The rollouts of one arm, over its seeds, under every arm."""

    study: str
    arm: str  # that was trained
    seeds: tuple[int, ...]
    runs: tuple[str, ...]  # relative to the study
    rollouts: int
    groups: int
    group_size: int
    scale_rewards: str
    loss_type: str
    outcomes_changed: int  # rollouts whose outcome was another when they were recorded
    rewards_changed: int | None  # whose own reward comes out otherwise now; None: not computed
    advantages_off: int  # whose recorded advantage is not that of its group's rewards
    arms: tuple[ArmOnRollouts, ...]  # the recorded one first, then like beside like
    left_out: tuple[LeftOut, ...]
    correlations: tuple[tuple[float | None, ...], ...]  # Pearson's r of advantages, as `arms`
    merges: tuple[Merge, ...]  # average linkage over 1 - r
    clusters: tuple[tuple[str, ...], ...]
    sentence: str


class Counterfactual(Record, frozen=True, kw_only=True):
    """What `ahalab counterfactual` prints."""

    schema: Literal["ahalab.counterfactual/1"] = "ahalab.counterfactual/1"
    scorer_version: str  # that says what is right
    training_parser_version: str
    steps: int | None  # only rollouts generated before so many steps were done; None: all
    cluster_at: float  # mean correlation from which arms count as one cluster
    missing: tuple[str, ...]  # runs of the plan that are not finished
    sources: tuple[RecordedRollouts, ...]
    limit: str  # what this can't say


class CounterfactualRow(Record, frozen=True, kw_only=True):
    """One rollout under every arm, as `--rows FILE` writes it."""

    schema: Literal["counterfactual-row/1"] = "counterfactual-row/1"
    study: str
    run: str
    step: int
    group: int
    prompt_id: str
    sample: int
    strict: Outcome
    lenient: Outcome
    rewards: dict[str, float | None]  # by arm, the recorded one first
    advantages: dict[str, float]  # 0 where nothing is taught
