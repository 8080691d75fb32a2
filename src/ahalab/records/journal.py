"""The journal beside a row file: what was committed, in which order, by whom."""

from __future__ import annotations

from typing import Literal

from ahalab.records.base import Record


class JournalHead(Record, frozen=True, kw_only=True, tag="head", tag_field="kind"):
    """First line: what the row file belongs to."""

    schema: Literal["ahalab.journal/1"] = "ahalab.journal/1"
    rows_schema: str  # schema of the rows, as `rollout/1`
    plan_digest: str
    run: str  # the run's path within the study, as `arms/random/seed-0`
    previous: str  # digest of the previous line; of nothing, here


class JournalAttempt(Record, frozen=True, kw_only=True, tag="attempt", tag_field="kind"):
    """A process opened the file for writing."""

    number: int
    utc: str
    rows: int  # committed rows found
    bytes: int
    previous: str


class JournalBatch(Record, frozen=True, kw_only=True, tag="batch", tag_field="kind"):
    """A batch of rows was committed: bytes `start` to `end` of the row file."""

    sequence: int
    rows: int
    start: int
    end: int
    sha256: str
    previous: str


class JournalCut(Record, frozen=True, kw_only=True, tag="cut", tag_field="kind"):
    """Committed rows after a checkpoint were cut, to be generated again."""

    sequence: int  # batches kept
    rows: int  # rows kept
    end: int  # bytes kept
    cut_rows: int
    cut_sha256: str  # digest of the bytes cut
    previous: str


class JournalSeal(Record, frozen=True, kw_only=True, tag="seal", tag_field="kind"):
    """The file is complete."""

    rows: int
    bytes: int
    sha256: str  # of the whole (uncompressed) row file
    previous: str


JournalLine = JournalHead | JournalAttempt | JournalBatch | JournalCut | JournalSeal
