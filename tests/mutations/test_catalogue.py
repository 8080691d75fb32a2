from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ahalab.verify.checks import Check
from ahalab.verify.study import verify_study
from mutations.kinds import ANY_LINE, Mutation
from mutations.on_analysis import ANALYSIS
from mutations.on_files import PLAIN
from mutations.on_rebuilt import REBUILT
from mutations.on_records import RECORDS
from mutations.on_rows import ROWS
from mutations.on_templates import TEMPLATES
from mutations.on_validation import VALIDATION
from tampering import rebuild, reseal


@pytest.fixture
def study(studies: dict[str, Path], tmp_path: Path) -> Path:
    """A copy to tamper with."""
    return Path(shutil.copytree(studies["synthetic"], tmp_path / "synthetic"))


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
    assert check.status == "failed", [
        (c.name, c.failures[:2]) for c in verification.checks if c.failed
    ]
    lines = {f.line for f in check.failures if f.file.removesuffix(".zst") == mutation.file}
    if mutation.line == ANY_LINE:
        assert any(line is not None for line in lines)
    else:
        assert mutation.line in lines, check.failures
    assert all(f.expected and f.found for f in check.failures)
    return check


@pytest.mark.parametrize("mutation", PLAIN, ids=lambda m: m.name)
def test_tampering_with_files_is_named_with_file_and_line(study: Path, mutation: Mutation) -> None:
    mutation.tamper(study)
    caught(study, mutation)


@pytest.mark.parametrize(
    "mutation", [*ROWS, *VALIDATION, *TEMPLATES, *RECORDS, *ANALYSIS], ids=lambda m: m.name
)
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
