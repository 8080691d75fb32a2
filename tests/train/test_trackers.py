"""`report_to`: every tracker gets the recomputed figures, beside TRL's own, at each step."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ahalab.errors import MissingError
from ahalab.records.base import to_plain
from ahalab.records.step import Step
from ahalab.store.reading import read_rows
from ahalab.train import trackers
from ahalab.train.trackers import attach, missing_trackers, name_run, tracked, wanted_trackers
from lab import PLAN, Trained, WarmLab, environment, plan_of

Fresh = Callable[..., Trained]
NAMED = {
    "reward_mean", "strict_fraction", "lenient_fraction", "zero_variance_fraction",
    "truncated_fraction", "wrong_advantage_fraction", "unique_completions",
    "components/historical_correct",
}  # fmt: skip
TRAIN = ("--arm", "historical", "--seed", "1")
# A tracker of our own, known to transformers like any other, that keeps what it is handed.
RECORDING = """
import json, sys
from transformers import TrainerCallback
from transformers.integrations import integration_utils

class Recording(TrainerCallback):
    def on_train_begin(self, args, state, control, **_):
        print(json.dumps({"run_name": args.run_name}), file=open(PLACE, "a"))
    def on_log(self, args, state, control, logs=None, **_):
        print(json.dumps({"step": state.global_step, **logs}), file=open(PLACE, "a"))

PLACE = sys.argv[1]
integration_utils.INTEGRATION_TO_CALLBACK["recording"] = Recording
from ahalab.train import trackers
trackers.MODULES["recording"] = ("json",)
from ahalab.cli import main
sys.argv[1:] = sys.argv[2:]
sys.exit(main())
"""


def plan_text(tracker: str) -> str:
    return PLAN.replace("save_steps: 2", f"save_steps: 2\n  report_to: {tracker}")


def expected(study: Trained) -> dict[int, dict[str, float]]:
    """Return what each step's row holds, by step."""
    rows = [row for _, row in read_rows(study.paths.run("historical", 1).steps, Step)]
    return {row.step: to_plain(row) for row in rows}


def row_value(row: dict[str, Any], name: str) -> float:
    component = name.removeprefix("components/")
    value = row["components"][component] if component != name else row[name]
    assert isinstance(value, int | float)
    return value


@pytest.mark.train
def test_a_tracker_sees_each_steps_recomputed_figures_and_the_runs_name(
    warm: WarmLab, fresh: Fresh, tmp_path: Path
) -> None:
    study, place = fresh(plan_text("recording")), tmp_path / "seen.jsonl"
    done = subprocess.run(
        [sys.executable, "-c", RECORDING, str(place), "train", str(study.plan_file),
         "--out", str(study.paths.root.parent), *TRAIN],
        capture_output=True, text=True, check=False, env=environment(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    begun, *seen = [json.loads(line) for line in place.read_text().splitlines()]
    assert begun["run_name"] == "tiny/arms/historical/seed-1"
    rows = expected(study)
    logged = [line for line in seen if "loss" in line]
    assert [line["step"] for line in logged] == [1, 2, 3, 4, 5, 6]
    for line in logged:
        row = rows[line["step"]]
        ours = {k.removeprefix("ahalab/"): v for k, v in line.items() if k.startswith("ahalab/")}
        assert set(ours) >= NAMED - {"wrong_advantage_fraction"}  # none where all groups are dead
        assert {name: row_value(row, name) for name in ours} == ours
        assert "frac_reward_zero_std" in line  # TRL's own are still there
    assert "wrong_advantage_fraction" in str(logged)


@pytest.mark.train
@pytest.mark.skipif(importlib.util.find_spec("tensorboard") is None, reason="no tensorboard")
def test_tensorboard_has_them_in_files_that_outlive_the_checkpoints(
    warm: WarmLab, fresh: Fresh
) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    study = fresh(plan_text("tensorboard"))
    warm.run("train", study.plan_file, "--out", study.paths.root.parent, *TRAIN)
    folder = study.paths.work / "trackers" / "tensorboard" / "arms/historical/seed-1"
    events = EventAccumulator(str(folder))
    events.Reload()
    rows = expected(study)
    for name in NAMED - {"wrong_advantage_fraction"}:
        curve = {e.step: e.value for e in events.Scalars(f"train/ahalab/{name}")}
        assert set(curve) == set(rows)
        for step, value in curve.items():
            assert value == pytest.approx(row_value(rows[step], name), rel=1e-6)
    assert not (study.paths.work / "checkpoints" / "arms/historical/seed-1").exists()


@pytest.mark.train
def test_a_tracker_that_is_missing_ends_training_before_it_begins(
    warm: WarmLab, fresh: Fresh
) -> None:
    study = fresh(plan_text("[nowhere]"))
    said = warm.run(
        "train", study.plan_file, "--out", study.paths.root.parent, *TRAIN, "--force", code=1
    )
    assert "grpo.report_to names nowhere" in said
    assert "Traceback" not in said


class Config:
    run_name = None
    project = "huggingface"
    logging_dir = None


def test_names_and_folders_are_the_studys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = ("tensorboard", "trackio", "wandb")
    monkeypatch.setattr(trackers, "_installed", lambda: there)
    monkeypatch.setattr(trackers, "_is_installed", lambda name: name in there)
    for variable in ("WANDB_DIR", "WANDB_PROJECT"):
        monkeypatch.delenv(variable, raising=False)
        monkeypatch.setenv(variable, "")
        monkeypatch.delenv(variable)  # and gone again after the test
    plan, config = plan_of(plan_text("[trackio, wandb]")), Config()
    name_run(plan, config, tmp_path / "trackers", "arms/a/seed-1")
    assert (config.run_name, config.project) == ("tiny/arms/a/seed-1", "tiny")
    assert config.logging_dir == str(tmp_path / "trackers/tensorboard/arms/a/seed-1")
    import os

    assert os.environ["WANDB_DIR"] == str(tmp_path / "trackers")
    assert os.environ["WANDB_PROJECT"] == "tiny"
    assert wanted_trackers(plan) == ("trackio", "wandb")
    assert wanted_trackers(plan_of(plan_text("all"))) == ("tensorboard", "trackio", "wandb")
    for none in ("none", "null", "[]", "[none]"):
        assert wanted_trackers(plan_of(plan_text(none))) == ()
    assert missing_trackers(plan_of(plan_text("[wandb, wand]"))) == ("wand",)
    own = plan_of(plan_text("trackio"))
    own, config = replace(own, grpo={**own.grpo, "project": "mine"}), Config()
    name_run(own, config, tmp_path / "trackers", "arms/a/seed-1")
    assert config.project == "huggingface"  # the plan's own stands in TRL's configuration already
    with pytest.raises(MissingError, match="pip install wand,"):
        name_run(plan_of(plan_text("wand")), config, tmp_path, "arms/a/seed-1")


class TensorBoardCallback:
    logging_dir = None


class Trainer:
    def __init__(self) -> None:
        self.callback_handler = self
        self.callbacks: list[Any] = ["flow", TensorBoardCallback()]

    def add_callback(self, callback: Any) -> None:
        self.callbacks.append(callback)


def test_the_recorder_comes_before_every_tracker(tmp_path: Path) -> None:
    trainer, board = Trainer(), None
    attach(trainer, "recorder", tmp_path, "arms/a/seed-1")
    first, _, board = trainer.callbacks
    assert first == "recorder"
    assert board.logging_dir == str(tmp_path / "tensorboard/arms/a/seed-1")
    board.logging_dir = "chosen"
    attach(trainer, "again", tmp_path, "arms/a/seed-1")
    assert board.logging_dir == "chosen"


def test_unknown_figures_are_absent_not_zero(trained: Trained) -> None:
    row = next(row for _, row in read_rows(trained.run("historical").steps, Step))
    reused = replace(row, reward_mean=None, components={"historical_correct": None})
    assert tracked(reused).keys() == tracked(row).keys() - {
        "ahalab/reward_mean", "ahalab/components/historical_correct",
    }  # fmt: skip
