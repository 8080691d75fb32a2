"""What happens to sound evidence on its way to a reader is never flagged."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mutations.benign import BENIGN, ENVIRONMENTS, Benign
from mutations.judging import by_name, verify


def flagged(root: Path) -> list[str]:
    return [
        f"{c.name}: {c.failures[0]}"
        for c in verify(root).checks
        if c.status in ("failed", "incomplete")
    ]


@pytest.mark.parametrize("study", ["synthetic", "rich"])
@pytest.mark.parametrize("benign", BENIGN, ids=lambda b: b.name)
def test_it_is_not_flagged(
    studies: dict[str, Path], tmp_path: Path, benign: Benign, study: str
) -> None:
    copy = Path(shutil.copytree(studies[study], tmp_path / study))
    assert flagged(benign.change(copy)) == []


@pytest.mark.parametrize("setting", ENVIRONMENTS, ids=lambda s: s["TZ"])
def test_another_zone_locale_and_hash_seed_say_the_same(
    studies: dict[str, Path], setting: dict[str, str]
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ahalab", "verify", ".", "--format", "json", "--trust-rewards"],
        capture_output=True, text=True, check=False, cwd=studies["rich"],
        env={**os.environ, **setting},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["result"] == "PASSED"


def test_a_resume_that_the_journal_declares_and_samples_that_the_plan_declares_are_sound(
    studies: dict[str, Path],
) -> None:
    journal = studies["rich"] / "arms/correctness/seed-1/steps.journal.jsonl"
    kinds = [json.loads(line)["kind"] for line in journal.read_bytes().splitlines()]
    assert kinds.count("attempt") == 2
    assert "cut" in kinds
    assert flagged(studies["rich"]) == []


def test_a_torn_tail_of_what_is_not_sealed_is_incomplete_and_no_failure(
    studies: dict[str, Path], tmp_path: Path
) -> None:
    root = Path(shutil.copytree(studies["synthetic"], tmp_path / "synthetic"))
    for made_later in ("manifest.json", "claims.json", "report.html"):
        (root / made_later).unlink()
    for made_later in ("analysis", "replay"):
        shutil.rmtree(root / made_later)
    rows = root / "arms/random/seed-2/answers.jsonl"
    rows.write_bytes(rows.read_bytes() + b'{"schema":"answer/1","pro')
    journal = rows.with_name("answers.journal.jsonl")
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-1]))
    verification = verify(root)
    assert verification.result == "INCOMPLETE"
    assert by_name(verification)["seal"].status == "incomplete"
