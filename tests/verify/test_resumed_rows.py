"""What a resume cut and generated again: compared from the journal, said, and no fault."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from ahalab.cli.stages import _tell_trained
from ahalab.plan.load import load_plan
from ahalab.records.base import decode_file, digest
from ahalab.records.run import RunRecord
from ahalab.records.step import Step
from ahalab.store.layout import StudyPaths
from ahalab.store.reading import changed_on_resume, journal_path, read_rows
from ahalab.store.rows import RowFile, RowWriter
from ahalab.verify.checks import Ledger
from ahalab.verify.journals import check_journals
from ahalab.verify.reading import Study


def resumed(study: Path, *, otherwise: bool) -> None:
    """Write the steps of a run again as a killed and resumed process leaves them."""
    paths = StudyPaths(study)
    run = paths.run("historical", 1)
    rows = [row for _, row in read_rows(run.steps, Step)]
    for path in (run.steps, journal_path(run.steps)):
        path.unlink()
    file = RowFile(run.steps, "step/1", digest(load_plan(paths.plan)), run.name, paths.broken)
    with RowWriter[Step](file) as writer:
        writer.append(rows[:1])
        writer.append([replace(rows[1], loss=0.25) if otherwise else rows[1]])
        writer.cut(1)
        for row in rows[1:]:
            writer.append([row])
        writer.seal()


@pytest.mark.parametrize("otherwise", [False, True])
def test_rows_that_came_out_otherwise_after_a_resume_are_told_and_not_flagged(
    study: Path, otherwise: bool
) -> None:
    resumed(study, otherwise=otherwise)
    ledger = Ledger(None)
    check_journals(Study(study, ledger))
    checks = {check.name: check for check in ledger.verification().checks}
    assert {checks[name].status for name in ("chain", "chain.run", "seal", "attempts")} == {
        "passed"
    }
    told = (
        "arms/historical/seed-1/steps.jsonl: 1 batches came out otherwise when they were generated "
        "again after a resume, the first is batch 1"
    )
    assert checks["attempts"].note == (told if otherwise else "")
    run = StudyPaths(study).run("historical", 1)
    said = changed_on_resume((run.rollouts, run.steps, run.validation))
    assert (said is not None) == otherwise
    assert said is None or said.endswith("the second time: steps.jsonl (batch 1)")


def test_training_tells_of_rows_that_came_out_otherwise(
    study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = StudyPaths(study).run("historical", 1)
    record = decode_file(run.record.read_bytes(), RunRecord, str(run.record))
    _tell_trained(record, run)
    assert "otherwise" not in capsys.readouterr().err
    resumed(study, otherwise=True)
    _tell_trained(record, run)
    assert "the second time: steps.jsonl (batch 1). Was it resumed on another machine" in (
        capsys.readouterr().err
    )
