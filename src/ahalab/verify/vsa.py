"""The result as a verification summary that supply-chain tools read (SLSA, in-toto).

https://slsa.dev/spec/v1.1/verification_summary and in-toto Statement v1. What is verified is the
evidence root, so that is the subject's digest; the policy is the list of checks. It is not signed:
whoever verified signs it, in an envelope of their choice, with their own key.
"""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from typing import Any
from urllib.parse import quote

from ahalab.errors import IncompleteError
from ahalab.records.manifest import Manifest
from ahalab.store.manifest import root_digest
from ahalab.verify.checks import CHECKS, Verification
from ahalab.verify.reading import Study

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://slsa.dev/verification_summary/v1"
SLSA = "1.1"
VERIFIER = "pkg:pypi/ahalab"  # a package URL; extension fields must be named by URIs too
RECOMPUTED = "AHALAB_EVIDENCE_RECOMPUTED"  # a level of our own: no SLSA track is evaluated
ANCHORED = "AHALAB_EVIDENCE_RECOMPUTED_AND_ANCHORED"  # and the root is one held from outside


def summary(
    study: Study, verification: Verification, version: str, moment: datetime
) -> dict[str, Any]:
    """Return the statement on a verification, as plain JSON.

    Args:
        study: What was verified.
        verification: Its checks.
        version: Of ahalab.
        moment: When, in UTC.

    Raises:
        IncompleteError: The study is not sealed, so there is no root to make a statement on.
    """
    manifest = study.record(study.paths.manifest, Manifest)
    if manifest is None:
        raise IncompleteError(
            f"{study.root}: expected a sealed study to make a statement on, found no readable "
            "manifest.json. `ahalab run` seals it; --format json tells the checks meanwhile."
        )
    digest = root_digest(manifest.plan_digest, manifest.evidence).removeprefix("sha256:")
    name = study.plan.name if study.plan is not None else study.root.resolve().name
    passed = verification.result == "PASSED"
    anchored = any(c.name == "root.anchor" and c.status == "passed" for c in verification.checks)
    level = ANCHORED if anchored else RECOMPUTED
    return {
        "_type": STATEMENT,
        "subject": [{"name": name, "digest": {"sha256": digest}}],
        "predicateType": PREDICATE,
        "predicate": {
            "verifier": {"id": VERIFIER, "version": {"ahalab": version}},
            "timeVerified": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "resourceUri": f"pkg:generic/{quote(name, safe='')}?checksum=sha256:{digest}",
            "policy": {
                "uri": f"{VERIFIER}@{version}#docs/evidence.md",
                "digest": {"sha256": policy_digest()},
            },
            "verificationResult": "PASSED" if passed else "FAILED",
            "verifiedLevels": [level if passed else "FAILED"],
            "slsaVersion": SLSA,
            f"{VERIFIER}#result": verification.result,  # INCOMPLETE is told apart here
            f"{VERIFIER}#checks": json.loads(verification.to_json())["checks"],
        },
    }


def policy_digest() -> str:
    """Return the sha256 of the list of checks: every name and what it promises."""
    lines = "".join(f"{name}: {promise}\n" for name, promise in CHECKS.items())
    return hashlib.sha256(lines.encode()).hexdigest()
