"""One optimizer step of training, and, apart from it, how long it took."""

from __future__ import annotations

from typing import Literal

from ahalab.records.base import Record


class Step(Record, frozen=True, kw_only=True):
    """What one optimizer step did. Group figures are recomputed from the rollouts, never TRL's.

    The figures from `reward_mean` on describe the rollouts generated for this step; they are
    `None` on a step that reused an earlier generation batch.
    """

    schema: Literal["step/1"] = "step/1"
    step: int  # steps done after it, counted from 1
    loss: float | None
    grad_norm: float | None
    learning_rate: float | None
    entropy: float | None
    kl: float | None
    clip_low_fraction: float | None
    clip_high_fraction: float | None
    tokens: int | None  # tokens seen by the trainer so far
    reward_mean: float | None  # over the rollouts that have a reward
    unrewarded_fraction: float | None  # rollouts without one
    reward_std: float | None  # population standard deviation over the batch
    zero_variance_fraction: float | None  # groups whose rewards are all equal
    all_right_fraction: float | None  # groups, by the evaluation scorer, strict
    all_wrong_fraction: float | None
    mixed_fraction: float | None
    strict_fraction: float | None  # rollouts correct
    lenient_fraction: float | None
    historical_fraction: float | None
    formatted_fraction: float | None  # rollouts that meet the asked format
    components: dict[str, float | None]  # mean per component
    truncated_fraction: float | None
    length_mean_tokens: float | None
    length_right_tokens: float | None  # mean over rollouts correct by the lenient reading
    length_wrong_tokens: float | None
    unique_completions: float | None  # mean distinct completions per group
    repetition_mean: float | None  # repeated share of word sequences
    scorer_disagreement_fraction: float | None  # training parser against evaluation scorer (strict)
    paid_though_wrong_fraction: float | None  # training parser correct, lenient reading not
    unpaid_though_right_fraction: float | None
    wrong_advantage_fraction: float | None  # share of positive advantage that fell on wrong answers
    reflection_fraction: float | None

    @property
    def has_figures(self) -> bool:
        """Whether rollouts were generated for this step."""
        return self.strict_fraction is not None


class Timing(Record, frozen=True, kw_only=True):
    """Clock of one optimizer step; kept apart so that everything else repeats to the byte."""

    schema: Literal["timing/1"] = "timing/1"
    step: int
    seconds: float
    utc: str
