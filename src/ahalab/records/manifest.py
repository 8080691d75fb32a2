"""The inventory of a sealed folder, written last."""

from __future__ import annotations

from typing import Literal

from ahalab.records.base import Record


class ManifestEntry(Record, frozen=True, kw_only=True):
    """One file: path relative to the manifest, with forward slashes."""

    path: str
    bytes: int
    sha256: str  # 64 hex digits


class Manifest(Record, frozen=True, kw_only=True):
    """A closed world: every file below the folder stands here once.

    `root` is the digest over `evidence`; `derived` lists what is made from the evidence and
    carries its root.
    """

    schema: Literal["ahalab.manifest/1"] = "ahalab.manifest/1"
    plan_digest: str
    root: str
    evidence: tuple[ManifestEntry, ...]
    derived: tuple[ManifestEntry, ...]


class Claim(Record, frozen=True, kw_only=True):
    """One printed number and how it comes about."""

    id: str  # dotted path, as `arm.correctness.base.strict.difference_points`
    value: float | int | str | None
    unit: str  # points, fraction, count, probability, verdict, ...
    inputs: tuple[str, ...]  # files it rests on, relative to the study
    method: str


class Claims(Record, frozen=True, kw_only=True):
    """Every number that the report prints."""

    schema: Literal["ahalab.claims/1"] = "ahalab.claims/1"
    plan_digest: str
    claims: tuple[Claim, ...]
