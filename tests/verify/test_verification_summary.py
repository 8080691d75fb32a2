"""The statement for supply-chain tools: in-toto Statement v1, SLSA verification summary v1."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ahalab.errors import IncompleteError
from ahalab.verify.study import Held, examine, open_study
from ahalab.verify.vsa import policy_digest, summary
from tampering import edit_row

MOMENT = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)


def statement(root: Path, expected_root: str | None = None) -> dict[str, Any]:
    study = open_study(root)
    return summary(study, examine(study, Held(expected_root)), "1.2.3", MOMENT)


def root_of(root: Path) -> str:
    manifest: dict[str, str] = json.loads((root / "manifest.json").read_bytes())
    return manifest["root"]


def test_a_sound_study_gets_the_required_fields_and_its_root_as_subject(sound_study: Path) -> None:
    made = statement(sound_study)
    digest = root_of(sound_study).removeprefix("sha256:")
    assert made["_type"] == "https://in-toto.io/Statement/v1"
    assert made["predicateType"] == "https://slsa.dev/verification_summary/v1"
    assert made["subject"] == [{"name": "synthetic", "digest": {"sha256": digest}}]
    predicate = made["predicate"]
    assert predicate["verifier"]["version"] == {"ahalab": "1.2.3"}
    assert predicate["timeVerified"] == "2026-01-02T03:04:05Z"
    assert predicate["resourceUri"].endswith(f"checksum=sha256:{digest}")
    assert predicate["policy"]["digest"] == {"sha256": policy_digest()}
    assert predicate["verificationResult"] == "PASSED"
    assert predicate["verifiedLevels"] == ["AHALAB_EVIDENCE_RECOMPUTED"]
    own = {key for key in predicate if ":" in key}  # an extension field must be named by a URI
    assert own == {"pkg:pypi/ahalab#result", "pkg:pypi/ahalab#checks"}
    assert not any(level.startswith("SLSA_") for level in predicate["verifiedLevels"])


def test_a_root_held_from_outside_is_a_level_of_its_own(sound_study: Path) -> None:
    anchored = statement(sound_study, root_of(sound_study))["predicate"]
    assert anchored["verifiedLevels"] == ["AHALAB_EVIDENCE_RECOMPUTED_AND_ANCHORED"]


def test_a_failure_and_an_unfinished_study_are_failed_and_told_apart(study: Path) -> None:
    (study / "report.html").unlink()
    manifest = study / "manifest.json"
    tree = json.loads(manifest.read_bytes())
    tree["derived"] = []
    manifest.write_bytes((json.dumps(tree, indent=1) + "\n").encode())
    unfinished = statement(study)["predicate"]
    assert unfinished["verificationResult"] == "FAILED"
    assert unfinished["pkg:pypi/ahalab#result"] == "INCOMPLETE"
    edit_row(study / "arms/historical/seed-1/rollouts.jsonl", 3, advantage=9.0)
    failed = statement(study)["predicate"]
    assert (failed["verificationResult"], failed["verifiedLevels"]) == ("FAILED", ["FAILED"])
    checks = {check["name"]: check for check in failed["pkg:pypi/ahalab#checks"]}
    assert checks["advantage"]["failures"][0]["line"] == 3


def test_a_study_that_is_not_sealed_has_no_root_to_make_a_statement_on(study: Path) -> None:
    (study / "manifest.json").unlink()
    with pytest.raises(IncompleteError, match="expected a sealed study"):
        statement(study)
