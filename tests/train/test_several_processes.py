"""One run in two processes (two gloo ranks): every row once, one writer, exact resume."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from ahalab.plan.load import parse_plan
from ahalab.records.base import decode_file
from ahalab.records.run import RunRecord
from ahalab.records.step import Step
from ahalab.records.validation import ValidationAnswer
from ahalab.store.layout import RunPaths, StudyPaths
from ahalab.store.reading import journal_path, read_rows
from ahalab.tasks.prepare import read_prompts
from ahalab.verify.study import verify_study
from lab import WarmLab, ahalab, batches_in, environment, repeated_bytes, rollouts_of

pytestmark = pytest.mark.train

ONE = """\
name: shared
model: {id: organism}
task: {name: arithmetic, train_prompts: 12, eval_prompts: 8}
arms: [historical, random]
control: random
seeds: [1]
grpo:
  max_steps: 6
  num_generations: 4
  per_device_train_batch_size: 16
  max_completion_length: 40
  learning_rate: 1e-4
  save_steps: 2
lora: {r: 4}
evaluation: {max_new_tokens: 40, batch_size: 4, floor_batch_size: 3}
"""
TWO = (
    ONE.replace("batch_size: 16", "batch_size: 8") + "training: {processes: 2}\n"
)  # the same global batch


def write(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "study.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def start(plan: Path, processes: int = 2) -> subprocess.Popen[str]:
    """Start a training under torchrun, in a session of its own."""
    launcher = (sys.executable, "-m", "torch.distributed.run", "--standalone")
    out = plan.parent / "results"
    return subprocess.Popen(
        [
            *launcher, "--nproc_per_node", str(processes), "--module", "ahalab", "train", str(plan),
            "--arm", "historical", "--seed", "1", "--out", str(out), "--quiet",
        ],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True, env=environment(ACCELERATE_LOG_LEVEL="info"),
    )  # fmt: skip


def finish(process: subprocess.Popen[str]) -> str:
    said, _ = process.communicate(timeout=300)
    assert process.returncode == 0, said[-3000:]
    return said


def run_of(folder: Path) -> RunPaths:
    return StudyPaths(folder / "results" / "shared").run("historical", 1)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two processes that nobody disturbed."""
    pytest.importorskip("torch", reason="pip install 'ahalab[train]'")
    folder = tmp_path_factory.mktemp("two")
    finish(start(write(folder, TWO)))
    return folder


def test_every_completion_has_one_row_with_the_rank_that_generated_it(two: Path) -> None:
    rows = rollouts_of(run_of(two))
    assert len(rows) == 6 * 16
    places = [(r.step, r.rank, r.group, r.sample) for r in rows]
    assert places == [
        (step, group // 2, group, sample)
        for step in range(6)
        for group in range(4)
        for sample in range(4)
    ]
    assert Counter(r.rank for r in rows) == {0: 48, 1: 48}
    halves = [[r.completion for r in rows if r.rank == rank] for rank in (0, 1)]
    assert halves[0] != halves[1]
    attempts = decode_file(run_of(two).record.read_bytes(), RunRecord, "run.json").attempts
    assert len(attempts) == 1


def test_the_prompts_of_each_step_are_those_of_one_process_with_the_same_batch(
    two: Path, warm: WarmLab, tmp_path: Path
) -> None:
    plan = write(tmp_path, ONE)
    warm.run("train", plan, "--out", tmp_path / "results", "--arm", "historical", "--seed", 1)
    one = rollouts_of(run_of(tmp_path))
    keys = [
        [(r.step, r.group, r.sample, r.prompt_id) for r in rows]
        for rows in (one, rollouts_of(run_of(two)))
    ]
    assert keys[0] == keys[1]
    assert {r.rank for r in one} == {0}


def test_steps_describe_the_rollouts_of_both_and_the_trainers_count_agrees(two: Path) -> None:
    run = run_of(two)
    steps = [row for _, row in read_rows(run.steps, Step)]
    rows = rollouts_of(run)
    for step in steps:
        batch = [r for r in rows if r.step == step.step - 1]
        assert step.reward_mean == pytest.approx(sum(r.reward or 0 for r in batch) / 16)
    assert [s.step for s in steps] == [1, 2, 3, 4, 5, 6]
    record = decode_file(run.record.read_bytes(), RunRecord, "run.json")
    assert record.lean_step == "off: 2 processes take every step together"


def signal_group(process: subprocess.Popen[str], run: RunPaths, batches: int) -> None:
    """Kill launcher and ranks (each in a group of its own) once some batches are committed."""
    journal = journal_path(run.rollouts)
    while process.poll() is None and batches_in(journal) < batches:
        time.sleep(0.002)
    assert process.poll() is None, process.communicate()
    for pid in [process.pid, *children(process.pid)]:
        os.kill(pid, signal.SIGKILL)
    process.communicate()


def children(pid: int) -> list[int]:
    told = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()
    return [int(child) for child in told]


@pytest.mark.parametrize("batches", [1, 4])
def test_killed_and_resumed_it_leaves_the_bytes_of_an_undisturbed_run(
    two: Path, tmp_path: Path, batches: int
) -> None:
    plan = write(tmp_path, TWO)
    signal_group(start(plan), run_of(tmp_path), batches)
    finish(start(plan))
    assert repeated_bytes(run_of(tmp_path)) == repeated_bytes(run_of(two))


def test_only_the_first_process_validates_and_training_is_the_same_with_and_without(
    two: Path, tmp_path: Path
) -> None:
    plan = write(tmp_path, TWO + "validation: {prompts: 5, batch_size: 3}\n")
    finish(start(plan))
    run = run_of(tmp_path)
    rows = [row for _, row in read_rows(run.validation, ValidationAnswer)]
    prompts = read_prompts(StudyPaths(tmp_path / "results" / "shared"), "validation")
    order = [p.prompt_id for p in sorted(prompts, key=lambda p: p.prompt_tokens)]
    assert [(r.step, r.prompt_id) for r in rows] == [(s, p) for s in (2, 4, 6) for p in order]
    ours, theirs = repeated_bytes(run), repeated_bytes(run_of(two))
    assert ours.pop("diagnostics.json") != theirs.pop("diagnostics.json")
    assert ours == theirs


def test_a_launcher_that_is_killed_takes_its_ranks_with_it(tmp_path: Path) -> None:
    plan = write(tmp_path, TWO.replace("max_steps: 6", "max_steps: 400"))
    process = start(plan)
    journal = journal_path(run_of(tmp_path).rollouts)
    while process.poll() is None and batches_in(journal) < 1:
        time.sleep(0.01)
    ranks = children(process.pid)
    assert len(ranks) == 2
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    until = time.monotonic() + 20
    while time.monotonic() < until and any(Path(f"/proc/{pid}").exists() for pid in ranks):
        time.sleep(0.1)
    assert not [pid for pid in ranks if Path(f"/proc/{pid}").exists()]


@pytest.mark.parametrize(("text", "processes"), [(TWO, 1), (ONE, 2)])
def test_another_number_of_processes_than_the_plans_is_refused(
    tmp_path: Path, text: str, processes: int
) -> None:
    plan = write(tmp_path, text)
    if processes == 1:
        done = ahalab(
            "train", plan, "--arm", "historical", "--seed", 1, "--out", tmp_path / "results"
        )
        code, said = done.returncode, done.stderr
    else:
        process = start(plan, processes)
        said, _ = process.communicate(timeout=120)
        code = 2
    assert code == 2
    assert "ahalab: training.processes: expected" in said
    assert not (tmp_path / "results").exists()


def test_a_group_never_spans_two_processes(tmp_path: Path) -> None:
    from ahalab.errors import PlanError

    odd = TWO.replace("per_device_train_batch_size: 8", "per_device_train_batch_size: 2")
    with pytest.raises(PlanError, match=r"in each process.*Nearest: per_device_train_batch_size=4"):
        parse_plan(odd, "study.yaml")


def test_a_study_runs_its_arms_so_and_verifies(tmp_path: Path) -> None:
    plan = write(tmp_path, TWO)
    done = ahalab("run", plan, "--out", tmp_path / "results", "--jobs", 2)
    assert done.returncode == 0, done.stderr[-3000:]
    root = tmp_path / "results" / "shared"
    assert verify_study(root).result == "PASSED"
    path = root / "arms" / "historical" / "seed-1" / "rollouts.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    row = json.loads(lines[9])
    row["rank"] = 1 - row["rank"]
    lines[9] = json.dumps(row, separators=(",", ":")).encode() + b"\n"
    path.write_bytes(b"".join(lines))
    failed = {c.name: c.failures for c in verify_study(root).checks if c.status == "failed"}
    assert [f.line for f in failed["cover"]] == [10]
