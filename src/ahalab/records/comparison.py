"""What the analysis found: adapters against the base, arms against base and control."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

from ahalab.records.base import Record
from ahalab.records.run import Alarm
from ahalab.records.terms import Metric, Outcome

VerdictWord = Literal["improved", "worse", "equivalent", "no evidence", "not comparable"]


class AdapterComparison(Record, frozen=True, kw_only=True):
    """One adapter (one arm, one seed) against the base, paired by question."""

    arm: str
    seed: int
    metric: Metric
    n: int  # questions
    base_correct: float  # questions; a fraction of one when k > 1
    adapter_correct: float
    gained: int | None  # discordant pairs; None when k > 1
    lost: int | None
    difference_points: float
    interval_points: tuple[float, float]
    interval_covers: Literal["questions"]
    p_value: float | None  # primary: mid-p McNemar; by question when k > 1
    p_exact: float | None  # exact McNemar, for tables that quote it
    verdict: VerdictWord
    sentence: str
    # at 80 % power; None: too little changed to tell. Both are absent from earlier records.
    minimal_detectable_points: float | UnsetType | None = UNSET
    # corrected for all adapters of the study (max-T); exploratory. None: nothing differs
    p_max_t: float | UnsetType | None = UNSET
    # true: every completion is the base's, to the letter, so nothing was learned that shows
    same_answers: bool | UnsetType = UNSET


class ArmComparison(Record, frozen=True, kw_only=True):
    """One reward design against the base or the control arm, over all its seeds."""

    arm: str
    against: Literal["base", "control"]
    metric: Metric
    primary: bool  # planned and on the plan's primary metric; otherwise exploratory
    n: int  # questions
    seeds: int
    accuracy: float  # fraction, mean over seeds
    reference_accuracy: float
    gained_mean: float | None  # discordant pairs per seed
    lost_mean: float | None
    difference_points: float
    seed_differences_points: tuple[
        float, ...
    ]  # one per seed, in plan order (against the mean control)
    interval_points: tuple[float, float] | None  # None: one seed carries no claim on the reward
    interval_covers: Literal["questions and seeds", "nothing"]
    p_value: float | None
    p_holm: float | None  # adjusted over the planned arms
    minimal_detectable_points: float | None
    verdict: VerdictWord
    notes: tuple[str, ...]  # as "format gain", "borderline", "smaller than the margin", "one seed"
    sentence: str


class NoiseFloor(Record, frozen=True, kw_only=True):
    """The base against itself under a second batch plan."""

    n: int
    changed_completions: int
    strict_gained: int
    strict_lost: int
    lenient_gained: int
    lenient_lost: int
    sentence: str


class PassAt(Record, frozen=True, kw_only=True):
    """pass@k of an answer set, without bias (Chen et al. 2021)."""

    k: int
    strict: float  # probability, mean over questions
    lenient: float


class ReadingRates(Record, frozen=True, kw_only=True):
    """How one answer set read: counts of outcomes, for truncation and parsing to be seen."""

    answers: str  # path of the answer set
    n: int
    strict: dict[Outcome, int]
    lenient: dict[Outcome, int]
    mean_tokens: float | None  # None: an endpoint that tells no token ids
    # Absent with one answer a question.
    pass_at: tuple[PassAt, ...] | UnsetType = UNSET


class AllowedDifference(Record, frozen=True, kw_only=True):
    """An exception: a field of the protocol in which an answer set differs from the base's."""

    answers: str  # path of the answer set
    field: str  # nested ones as `versions.torch`
    base: str  # the value in the base's protocol
    found: str


class Comparison(Record, frozen=True, kw_only=True):
    """The study's verdicts."""

    schema: Literal["ahalab.comparison/1"] = "ahalab.comparison/1"
    plan_digest: str
    protocol_digest: str  # of everything but the adapter
    control: str  # name of the control arm
    primary: Metric
    alpha: float
    confidence: float
    margin_points: float
    missing: tuple[str, ...]  # planned cells without answers
    # Answer sets, runs and adapters in the study that the plan does not have; absent when none.
    unplanned: tuple[str, ...] | UnsetType = UNSET
    # Absent when none was made, and not null: then the protocol was one, and nothing is said.
    allowed: tuple[AllowedDifference, ...] | UnsetType = UNSET
    adapters: tuple[AdapterComparison, ...]
    arms: tuple[ArmComparison, ...]
    floor: NoiseFloor | None
    rates: tuple[ReadingRates, ...]


class ChangedAnswer(Record, frozen=True, kw_only=True):
    """One question on which base and adapter differ in outcome."""

    arm: str
    seed: int
    prompt_id: str
    sample: int
    metric: Metric
    change: Literal["gained", "lost"]
    kind: Literal["format", "arithmetic", "truncated", "extraction"]
    question: str
    gold: str
    base_completion: str
    adapter_completion: str
    base_extracted: str | None
    adapter_extracted: str | None
    base_outcome: Outcome
    adapter_outcome: Outcome
    base_rule: str  # that took the answer, by the lenient reading
    adapter_rule: str
    parted_at: int | None  # tokens that both share before they part; None: ids unknown, or no part


class ChangedResponses(Record, frozen=True, kw_only=True):
    """All gained and lost answers of a study."""

    schema: Literal["ahalab.changed/2"] = "ahalab.changed/2"
    plan_digest: str
    # Fields in which the protocols were allowed to differ; absent when none.
    allowed: tuple[str, ...] | UnsetType = UNSET
    changed: tuple[ChangedAnswer, ...]


class AblationCell(Record, frozen=True, kw_only=True):
    """One arm and one seed: what it was paid and what it learned."""

    arm: str
    seed: int
    reward_first: float | None
    reward_last: float | None
    own_score_base: float | None  # the arm's own reward on the base's evaluation answers
    own_score_adapter: float | None
    strict_accuracy: float
    lenient_accuracy: float
    strict_difference_points: float
    lenient_difference_points: float
    identical_fraction: float  # answers that equal the base's to the letter
    alarms: tuple[str, ...]


class AblationArm(Record, frozen=True, kw_only=True):
    """One arm over its seeds."""

    arm: str
    control: bool
    components: dict[str, float]
    seeds: int
    strict_difference_points: float
    lenient_difference_points: float
    strict_seed_spread_points: float | None  # standard deviation over seeds
    lenient_seed_spread_points: float | None
    own_score_difference: float | None
    alarms: tuple[Alarm, ...]  # those that need all its seeds


class RankedArm(Record, frozen=True, kw_only=True):
    """Where an arm stands by change on the primary metric, and how sure that is."""

    arm: str
    best_fraction: float  # of resamples of questions and seeds in which no arm is better
    rank_low: int  # interval of its rank at the plan's confidence, 1 is best
    rank_high: int


class ComponentEffect(Record, frozen=True, kw_only=True):
    """Two arms that differ in one component, compared directly; exploratory, uncorrected."""

    component: str
    arm: str  # the one with the larger weight
    weight: float
    against: str
    against_weight: float  # 0: without the component
    metric: Metric
    difference_points: float
    interval_points: tuple[float, float] | None  # questions and seeds; None: one seed in an arm
    p_value: float | None


class Ablation(Record, frozen=True, kw_only=True):
    """Arms x seeds in one table."""

    schema: Literal["ahalab.ablation/2"] = "ahalab.ablation/2"
    plan_digest: str
    # Fields in which the protocols were allowed to differ; absent when none.
    allowed: tuple[str, ...] | UnsetType = UNSET
    cells: tuple[AblationCell, ...]
    arms: tuple[AblationArm, ...]
    ranking: tuple[RankedArm, ...]  # best first
    components: tuple[ComponentEffect, ...]


class AblationStage(Record, frozen=True, kw_only=True):
    """One study among several that are summarised together."""

    study: str  # as it was named
    ablation: Ablation


class StagedAblation(Record, frozen=True, kw_only=True):
    """Several studies in one table: printed by `ahalab ablate`, part of none of them."""

    schema: Literal["ahalab.stages/1"] = "ahalab.stages/1"
    stages: tuple[AblationStage, ...]
    ranking: tuple[RankedArm, ...] | None  # over all arms, as `study:arm`; None: not comparable
    not_comparable: str | None  # why the arms of different studies are not ranked together
