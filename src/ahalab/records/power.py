"""What `ahalab power` says of studies that have not been made: printed, never part of a study."""

from __future__ import annotations

from typing import Literal

from ahalab.records.base import Record


class PowerAssumptions(Record, frozen=True, kw_only=True):
    """What the figures rest on, from a pilot or as given."""

    source: str  # the pilot's folder, or "given"
    base_accuracy: float | None  # fraction
    discordance: float  # share of questions where one answer of each side differs in outcome
    seed_sd_points: float | None  # spread of true accuracy over training seeds; None: unknown
    shared: float  # share of a question's variance that is the same for all seeds
    sampling_share: float  # share of the discordance that is sampling noise; greedy: 0
    told: tuple[str, ...]  # all of it in sentences, and what else is assumed


class PowerDesign(Record, frozen=True, kw_only=True):
    """One size of study, and what it would find."""

    claim: Literal["adapter", "reward"]
    seeds: int
    samples: int  # answers a question
    questions: int
    power: float  # chance of finding the effect; 0: this claim cannot be made
    detectable_points: float | None  # smallest effect found with the wanted power


class PowerNeed(Record, frozen=True, kw_only=True):
    """How many questions are enough for the effect, for so many seeds and samples."""

    claim: Literal["adapter", "reward"]
    seeds: int
    samples: int
    questions: int | None  # None: a million would not do
    answers: int | None  # to generate, the base's included


class PowerTable(Record, frozen=True, kw_only=True):
    """Questions, samples and seeds for a wanted effect."""

    schema: Literal["ahalab.power/1"] = "ahalab.power/1"
    effect_points: float
    wanted_power: float
    alpha: float
    assumptions: PowerAssumptions
    designs: tuple[PowerDesign, ...]
    needs: tuple[PowerNeed, ...]
