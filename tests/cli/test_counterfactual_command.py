"""`ahalab counterfactual`, as a reader sees it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from command import TRAIN_EXTRA, Call, run_without
from rollouts_only import write_trained

from ahalab.records.base import decode_row
from ahalab.records.counterfactual import Counterfactual, CounterfactualRow


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_trained(tmp_path_factory.mktemp("trained") / "synthetic")


def test_the_table_fits_eighty_columns_and_says_its_limit(call: Call, trained: Path) -> None:
    said = call("counterfactual", trained, "--arm", "correct_strict + 0.25 length_cosine")
    assert said.code == 0
    assert max(map(len, said.out.splitlines())) <= 80
    text = " ".join(said.out.split())
    assert "synthetic, arm historical, seeds 1, 2: 64 rollouts in 16 groups of 4" in text
    assert "1 correct_strict + 0.25 length_cosine" in text
    assert "Of the positive advantage that historical paid," in text
    assert "no forecast of a run" in text
    assert said.err == "counterfactual: 192 of 192 rollouts" + said.err[35:]


def test_the_row_of_the_recorded_arm_turns_nothing(call: Call, trained: Path) -> None:
    said = call("counterfactual", trained / "arms/historical/seed-1")
    row = next(line for line in said.out.splitlines() if line.startswith("historical"))
    cells = row.split()
    assert cells[4:7] == ["0", "0", "0"]  # flip, off, on
    assert cells[-1] == "1.00"


def test_json_is_the_whole_record(call: Call, trained: Path) -> None:
    said = call("counterfactual", trained, "--steps", "1", "--format", "json", "--quiet")
    found = decode_row(said.out.rstrip("\n").encode(), Counterfactual, "stdout")
    assert (found.steps, len(found.sources), said.err) == (1, 3, "")
    assert json.loads(said.out)["schema"] == "ahalab.counterfactual/1"


def test_rows_are_written_whole_and_outside_the_study(
    call: Call, trained: Path, tmp_path: Path
) -> None:
    path = tmp_path / "rows.jsonl"
    run = trained / "arms/random/seed-2"
    assert call("counterfactual", run, "--rows", path).code == 0
    rows = [decode_row(line, CounterfactualRow, "rows") for line in path.read_bytes().splitlines()]
    assert len(rows) == 32
    assert list(tmp_path.iterdir()) == [path]

    said = call("counterfactual", run, "--rows", trained / "rows.jsonl")
    assert said.code == 2
    assert "expected a file outside the study synthetic" in said.line
    said = call("counterfactual", run, "--rows", tmp_path)
    assert (said.code, "expected a file, found a folder" in said.line) == (2, True)
    said = call("counterfactual", run, "--rows", tmp_path / "gone/rows.jsonl")
    assert (said.code, "No such file" in said.line) == (2, True)


def test_what_fails_midway_leaves_no_rows(call: Call, trained: Path, tmp_path: Path) -> None:
    study = Path(shutil.copytree(trained, tmp_path / "synthetic"))
    rollouts = study / "arms/historical/seed-1/rollouts.jsonl"
    rollouts.write_bytes(rollouts.read_bytes()[:-10])
    path = tmp_path / "rows.jsonl"
    path.write_text("as before")
    said = call("counterfactual", study, "--rows", path)
    assert said.code == 2
    assert "rollouts.jsonl:32: expected a whole line" in said.err
    assert path.read_text() == "as before"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["rows.jsonl", "synthetic"]


def test_an_unfinished_run_ends_with_4_and_how_to_train_it(call: Call, tmp_path: Path) -> None:
    study = write_trained(
        tmp_path / "half", unfinished=("arms/random/seed-1", "arms/random/seed-2")
    )
    said = call("counterfactual", study)
    assert said.out.startswith("Not finished, and so not read: synthetic/arms/random/seed-1,")
    (study / "arms/random/seed-1").mkdir(parents=True)
    said = call("counterfactual", study / "arms/random/seed-1")
    assert said.code == 4
    assert "expected a finished run, found none of 1. Train it first: ahalab train" in said.line


def test_an_arm_that_is_not_scored_is_named_with_the_remedy(
    call: Call, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wordy.py").write_text("def count(completions, **kwargs):\n    return [1.0]\n")
    run = trained / "arms/random/seed-2"
    said = call("counterfactual", run, "--arm", "wordy:count")
    assert "Note: arm 1 wordy:count is left out: wordy:count is code that was not run; " in (
        " ".join(said.out.split())
    )
    said = call("counterfactual", run, "--arm", "wordy:count", "--trust-rewards")
    assert "1 wordy:count has no reward for 100 % of the rollouts." in " ".join(said.out.split())
    said = call("counterfactual", run, "--arm", "gone:count", "--trust-rewards")
    assert (said.code, "expected a module gone" in said.err) == (2, True)


def test_it_needs_no_training_extra(trained: Path) -> None:
    said = run_without(TRAIN_EXTRA, "counterfactual", trained / "arms/random/seed-2")
    assert said.code == 0, said.err
    assert "arm random, seed 2" in said.out
