from __future__ import annotations

import json
from pathlib import Path

import pytest
from mutations import PLAIN, REBUILT, RESEALED, Mutation
from tampering import rebuild, reseal

from ahalab.verify.checks import Check
from ahalab.verify.study import verify_study


def caught(root: Path, mutation: Mutation) -> Check:
    """Verify, and return the check that must have told; check place, expected and found."""
    verification = verify_study(root)
    assert verification.result != "PASSED"
    check = next(c for c in verification.checks if c.name == mutation.check)
    if not mutation.file:  # a planned cell that is gone: nothing to point at
        assert check.status == "incomplete"
        assert check.note
        return check
    assert verification.result == "FAILED"
    assert check.status == "failed", [(c.name, c.failures[:2]) for c in verification.checks if c.failed]
    places = [(f.file.removesuffix(".zst"), f.line) for f in check.failures]
    assert (mutation.file, mutation.line) in places, places
    assert all(f.expected and f.found for f in check.failures)
    return check


@pytest.mark.parametrize("mutation", PLAIN, ids=lambda m: m.name)
def test_tampering_with_files_is_named_with_file_and_line(study: Path, mutation: Mutation) -> None:
    mutation.tamper(study)
    caught(study, mutation)


@pytest.mark.parametrize("mutation", RESEALED, ids=lambda m: m.name)
def test_tampering_is_named_though_journals_and_manifest_were_mended(
    study: Path, mutation: Mutation
) -> None:
    mutation.tamper(study)
    reseal(study)
    check = caught(study, mutation)
    assert check.name == mutation.check


@pytest.mark.parametrize("mutation", REBUILT, ids=lambda m: m.name)
def test_tampering_is_named_though_the_owner_rebuilt_everything(
    study: Path, mutation: Mutation
) -> None:
    mutation.tamper(study)
    rebuild(study)
    caught(study, mutation)


@pytest.mark.parametrize("mutation", RESEALED, ids=lambda m: m.name)
def test_a_root_held_from_outside_catches_every_reseal(
    sound_study: Path, study: Path, mutation: Mutation
) -> None:
    published = _root(sound_study)
    mutation.tamper(study)
    reseal(study)
    if _root(study) == published:
        assert mutation.file == "report.html"  # made from the evidence, so outside its root
        return
    verification = verify_study(study, expected_root=published)
    anchor = next(c for c in verification.checks if c.name == "root.anchor")
    assert anchor.status == "failed"


def _root(study: Path) -> str:
    return str(json.loads((study / "manifest.json").read_bytes())["root"])
