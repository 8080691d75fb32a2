"""What `ahalab compare` says of two files of answers: printed, never part of a study."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

from ahalab.records.base import Record
from ahalab.records.comparison import AllowedDifference, VerdictWord
from ahalab.records.terms import Metric, Outcome


class ScoredRow(Record, frozen=True, kw_only=True):
    """One row of `ahalab score --format json`: the other kind of row that may be compared."""

    id: str | int  # what pairs the rows of two files
    sample: int = 0  # which answer to that question
    strict: Outcome
    lenient: Outcome
    extracted: str | UnsetType | None = UNSET
    rule: str | UnsetType = UNSET
    status: str | UnsetType = UNSET


class PairReading(Record, frozen=True, kw_only=True):
    """The second file (adapter) against the first (base), by one reading of the answers."""

    metric: Metric
    primary: bool  # the other one is exploratory
    n: int  # different questions
    base_correct: float  # questions; a fraction of one where a question has several answers
    adapter_correct: float
    gained: int | None  # questions; None where one has several answers that disagree
    lost: int | None
    difference_points: float
    interval_points: tuple[float, float]
    interval_covers: Literal["questions"] = "questions"
    bootstrap_points: tuple[float, float]  # percentile bootstrap, a check on the interval
    p_value: float | None  # primary: mid-p McNemar; by question with several answers
    p_exact: float | None  # exact McNemar, for tables that quote it
    p_sign_flip: float | None  # permutation test, a check on p where a question has several answers
    minimal_detectable_points: float | None  # at 80 % power; None where too little changed
    base_outcomes: dict[Outcome, int]  # answers
    adapter_outcomes: dict[Outcome, int]
    verdict: VerdictWord
    notes: tuple[str, ...]  # as "format gain", "borderline", "smaller than the margin"
    sentence: str


class PairComparison(Record, frozen=True, kw_only=True):
    """Two files of answers to the same questions."""

    schema: Literal["ahalab.pair/1"] = "ahalab.pair/1"
    base: str  # the first file, as it was named
    adapter: str  # the second
    answers: int  # pairs of answers
    samples: int  # answers to each prompt
    protocol: Literal["same", "allowed to differ", "unknown"]  # unknown: not beside both files
    allowed: tuple[AllowedDifference, ...]  # fields in which the protocols differ, by --allow
    primary: Metric
    alpha: float
    confidence: float  # of the intervals, 1 - alpha
    margin_points: float | None  # None: no margin was given, so nothing is called equivalent
    bootstrap_draws: int
    bootstrap_seed: int
    notes: tuple[str, ...]  # what a reader must know of the files
    strict: PairReading
    lenient: PairReading
