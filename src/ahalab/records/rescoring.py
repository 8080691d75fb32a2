"""What another scorer says of saved answers; printed by `ahalab rescore`, no file of a study."""

from __future__ import annotations

from typing import Literal

from ahalab.records.base import Record
from ahalab.records.comparison import VerdictWord
from ahalab.records.terms import Metric, Outcome


class Judged(Record, frozen=True, kw_only=True):
    """What a scorer says of one answer."""

    strict: Outcome
    lenient: Outcome
    extracted: str | None  # by the lenient reading
    rule: str  # the rule that took it
    status: str


class Regraded(Record, frozen=True, kw_only=True):
    """One answer of which two scorers do not say the same."""

    answers: str  # path of the answer set
    line: int  # from 1
    prompt_id: str
    sample: int
    before: Judged  # as recorded
    after: Judged  # by the installed scorer


class RescoredSide(Record, frozen=True, kw_only=True):
    """One answer set under both scorers."""

    answers: str  # path of the answer set
    scorer_version: str  # as recorded, before any rescore that is under way
    n: int
    kinds: dict[str, int]  # as "strict wrong -> correct": answers
    strict_correct_before: int
    strict_correct: int
    lenient_correct_before: int
    lenient_correct: int


class RescoredVerdict(Record, frozen=True, kw_only=True):
    """One comparison of an arm under both scorers."""

    arm: str
    against: Literal["base", "control"]
    metric: Metric
    primary: bool
    difference_points_before: float | None  # None: the answers were under several scorers
    difference_points: float
    verdict_before: VerdictWord | None
    verdict: VerdictWord


class Rescoring(Record, frozen=True, kw_only=True):
    """Everything that the installed scorer says otherwise than the study's records."""

    schema: Literal["ahalab.rescoring/1"] = "ahalab.rescoring/1"
    plan_digest: str
    scorer_version: str  # installed
    written: bool  # the answers of the study stand under it now
    sides: tuple[RescoredSide, ...]  # replays apart: they are the same completions
    changed: tuple[Regraded, ...]
    unlike: tuple[Regraded, ...]  # recorded under the installed version, and not what it says
    by_clock: int  # answers where the scorer ran out of time, which need not repeat
    verdicts: tuple[RescoredVerdict, ...]
