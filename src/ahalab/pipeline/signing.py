"""Signing a sealed study: the statement and the signature over it, beside the manifest."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ahalab.errors import InputError
from ahalab.pipeline.study import read_manifest
from ahalab.plan.load import load_plan
from ahalab.records.base import digest, encode_pretty
from ahalab.records.signature import Statement
from ahalab.store.durable import replace_file
from ahalab.store.layout import StudyPaths
from ahalab.store.manifest import evidence_entries, root_digest
from ahalab.store.ssh import parse_signature, sign


@dataclass(frozen=True, slots=True)
class Signed:
    """What was signed, by which key."""

    statement: Statement
    key: str  # fingerprint


def statement_of(paths: StudyPaths) -> Statement:
    """Return what can be said of a sealed study, its evidence hashed now.

    Raises:
        InputError: It is not sealed, or not as it was sealed.
        RecordError: The manifest is malformed.
    """
    manifest = read_manifest(paths)
    if manifest is None:
        raise InputError(
            f"{paths.root}: expected a sealed study, found no manifest.json. `ahalab run` seals it."
        )
    plan = load_plan(paths.plan)
    found = root_digest(digest(plan), evidence_entries(paths.root))
    if found != manifest.root or manifest.plan_digest != digest(plan):
        raise InputError(
            f"{paths.manifest}: expected the root of the files that lie there ({found}), found "
            f"{manifest.root}. `ahalab verify {paths.root}` names the files; sign nothing that it "
            "fails."
        )
    return Statement(study=plan.name, plan_digest=manifest.plan_digest, root=manifest.root)


def sign_study(paths: StudyPaths, key: Path) -> Signed:
    """Sign a sealed study; an earlier signature gives way.

    Raises:
        InputError: The study can't be signed (see `statement_of`), or the key can't sign.
        MissingError: ssh-keygen is not here.
    """
    statement = statement_of(paths)
    payload = encode_pretty(statement)
    signature = sign(payload, key)
    # Between these two a kill leaves a signature that does not fit: verify says so, and the same
    # command mends it.
    replace_file(paths.statement, payload)
    replace_file(paths.signature, signature)
    return Signed(statement, parse_signature(signature).key)
