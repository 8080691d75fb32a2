"""What an owner signs: one small statement that names a study, its plan and its evidence."""

from __future__ import annotations

from typing import Literal

from ahalab.records.base import Record


class Statement(Record, frozen=True, kw_only=True):
    """The bytes of this record are what is signed; the signature lies beside it.

    No time stands in it: it would be the signer's word, and signing again would change the bytes.
    """

    schema: Literal["ahalab.statement/1"] = "ahalab.statement/1"
    study: str  # name of the plan
    plan_digest: str
    root: str  # evidence root, as the manifest's
