"""Reflection: answers finished without it, and what markers go with and what they cause."""

from __future__ import annotations

from typing import Literal

from ahalab.records.answer import Protocol
from ahalab.records.base import Record
from ahalab.records.terms import Finish, Metric, Outcome, Side

ReflectionVerdict = Literal[
    "caused right answers",
    "caused wrong answers",
    "no evidence",
    "no answer reflected",
    "not measured",
]


class ReflectionProtocol(Record, frozen=True, kw_only=True):
    """How answers were cut before their markers and finished."""

    schema: Literal["ahalab.reflection_protocol/1"] = "ahalab.reflection_protocol/1"
    answers: str  # digest of the Protocol of the answers that were cut
    answering: Protocol  # that one, with what generated here, one side at a time
    markers: str  # version of the list of markers
    turns: int  # cuts of one answer, at most


class Turn(Record, frozen=True, kw_only=True):
    """One cut: what stood there, and what may not begin it again."""

    at: int  # tokens of the completion before the cut
    marker: str  # lower case
    wrote: tuple[int, ...]  # token ids from the cut to the end of the marker
    forbidden: tuple[int, ...]  # token ids that may not stand at the cut, in order


class Ending(Record, frozen=True, kw_only=True):
    """A completion that was finished from a cut, whole, with its outcomes."""

    completion: str
    completion_ids: tuple[int, ...]
    finish: Finish
    extracted: str | None  # by the lenient reading
    rule: str  # the rule that took it
    status: str  # of the lenient reading: "ok", or why there is no verdict on a value
    strict: Outcome
    lenient: Outcome


class Continuation(Record, frozen=True, kw_only=True):
    """One answer with a marker, finished from before the marker: freely, and without reflecting."""

    schema: Literal["continuation/1"] = "continuation/1"
    protocol: str  # digest of the ReflectionProtocol
    side: Side
    prompt_id: str
    sample: int
    turns: tuple[Turn, ...]  # the first one cuts the answer, each later one what came of the last
    kept: Ending  # from the first cut with nothing forbidden: the floor of this check
    without: Ending  # from the last cut
    reflects: bool  # `without` still holds a marker, after as many turns as there may be


class MarkerBucket(Record, frozen=True, kw_only=True):
    """Rollouts of some steps."""

    first_step: int  # as in the rollouts, from 0
    last_step: int
    rollouts: int
    marked: int  # with a marker


class TrainingMarkers(Record, frozen=True, kw_only=True):
    """Markers over one training run."""

    arm: str
    seed: int
    rollouts: int
    marked: int
    buckets: tuple[MarkerBucket, ...]  # up to ten, of about as many steps each


class GroupAccuracy(Record, frozen=True, kw_only=True):
    """The accuracy of answers with, or without, a marker."""

    answers: int
    questions: int
    correct: int
    accuracy: float | None  # fraction; None: no such answer
    interval: tuple[float, float] | None  # fractions; covers questions


class MarkedAccuracy(Record, frozen=True, kw_only=True):
    """Answers with a marker beside those without: an association, not what the marker causes."""

    metric: Metric
    marked: GroupAccuracy
    unmarked: GroupAccuracy
    difference_points: float | None  # marked minus unmarked
    interval_points: tuple[float, float] | None  # covers questions


class SideMarkers(Record, frozen=True, kw_only=True):
    """Markers in one answer set."""

    answers: str  # its name
    n: int
    marked: int  # answers with a marker
    markers: dict[str, int]  # how often each one stands there
    accuracy: tuple[MarkedAccuracy, ...]  # strict and lenient


class ReflectionEffect(Record, frozen=True, kw_only=True):
    """What reflecting does to the answers of one side that reflect: as written minus without."""

    metric: Metric
    pairs: int  # answers compared
    questions: int
    correct_with: int  # as they were written
    correct_without: int
    gained: int  # right as written, not right without
    lost: int  # right without alone
    difference_points: float | None  # mean over questions; None: nothing to compare
    interval_points: tuple[float, float] | None  # covers questions
    p_value: float | None
    p_holm: float | None  # over the sides
    kept_difference_points: float | None  # continued freely minus without
    kept_p_value: float | None
    only_as_written: bool  # a change by the answers as written, none by those continued freely
    detectable_points: float | None
    verdict: ReflectionVerdict
    sentence: str


class SideReflection(Record, frozen=True, kw_only=True):
    """The causal check of one side."""

    answers: str  # name of the answer set
    n: int  # its answers
    marked: int  # with a marker: each was cut
    still: int  # of these, those that still reflect, which no comparison holds
    truncated_with: int  # of those compared, cut by the token limit as written
    truncated_without: int
    kept_same: int  # of those cut, the same to the token when continued freely
    kept_strict: int  # other outcomes when continued freely
    kept_lenient: int
    floor: str  # a sentence on these
    effects: tuple[ReflectionEffect, ...]  # strict and lenient


class ArmReflection(Record, frozen=True, kw_only=True):
    """What reflecting contributes to the accuracy of one arm, over all questions and its seeds."""

    arm: str
    metric: Metric
    seeds: int
    difference_points: float  # answers that don't reflect, or still do, count as unchanged
    seed_differences_points: tuple[float, ...]
    interval_points: tuple[float, float] | None  # covers questions and seeds; None: one seed
    p_value: float | None
    p_holm: float | None  # over the arms
    detectable_points: float | None
    verdict: ReflectionVerdict
    sentence: str


class Reflection(Record, frozen=True, kw_only=True):
    """Reflection in a study; exploratory: no plan decides by it."""

    schema: Literal["ahalab.reflection/1"] = "ahalab.reflection/1"
    plan_digest: str
    markers: str  # version of the list of markers
    primary: Metric  # the plan's; a text tells its sentences
    confidence: float
    alpha: float
    training: tuple[TrainingMarkers, ...]
    sides: tuple[SideMarkers, ...]
    causal: tuple[SideReflection, ...]  # the sides that were checked
    arms: tuple[ArmReflection, ...]  # whose every seed was checked
