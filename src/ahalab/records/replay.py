"""What came of generating the evaluation again from saved weights."""

from __future__ import annotations

from typing import Literal

from ahalab.records.base import Record
from ahalab.records.comparison import VerdictWord
from ahalab.records.terms import Metric


class ReplayDifference(Record, frozen=True, kw_only=True):
    """One field in which a replay's protocol differs from the evaluation's."""

    field: str  # nested ones as `versions.torch`
    first: str  # the evaluation's
    again: str  # the replay's


class ReplayedAnswers(Record, frozen=True, kw_only=True):
    """One answer set beside its replay, paired by prompt and sample."""

    answers: str  # path of the evaluation's set
    n: int  # answers
    equal: int  # to the byte, apart from the digest of the protocol that each row carries
    strict_gained: int  # not correct in the evaluation, correct in the replay
    strict_lost: int
    lenient_gained: int
    lenient_lost: int
    protocol: tuple[ReplayDifference, ...]  # empty: the same machine kind and versions


class ChangedVerdict(Record, frozen=True, kw_only=True):
    """One verdict that the replayed answers do not give again."""

    arm: str
    seed: int | None  # None: the arm over its seeds
    against: Literal["base", "control"]
    metric: Metric
    first: VerdictWord
    again: VerdictWord


class Replay(Record, frozen=True, kw_only=True):
    """The replay of a study: equal answers, flipped verdicts, and whether the conclusion stands."""

    schema: Literal["ahalab.replay/1"] = "ahalab.replay/1"
    plan_digest: str
    sets: tuple[ReplayedAnswers, ...]  # those that were generated again
    missing: tuple[str, ...]  # cells of the evaluation that were not
    n: int  # answers of all sets, as the five that follow
    equal: int
    strict_gained: int
    strict_lost: int
    lenient_gained: int
    lenient_lost: int
    conclusion: Literal["stands", "changed", "not drawn"]  # not drawn: a set is missing
    verdicts: int | None  # compared: each arm's, and the adapter's where an arm has one seed
    changed: tuple[ChangedVerdict, ...]
