"""Trains the organism a few steps with the libraries of this interpreter, and checks what it left.

    build/compat/0.24/bin/python tools/compat_checks.py WORK [REFERENCE]

Prints one JSON object: the versions, and each check with "passed" or what was found. WORK is
emptied first. REFERENCE is the WORK of the newest set, made without one, on the same machine:
there, equal training leaves equal completions and an equal adapter.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ahalab.records.base import decode_file
from ahalab.records.rollout import Rollout
from ahalab.records.run import RunRecord
from ahalab.store.layout import RunPaths, StudyPaths
from ahalab.store.reading import read_rows
from ahalab.store.safetensors import load_float32

LIBRARIES = ("trl", "transformers", "peft", "accelerate", "datasets", "tokenizers", "torch")
# Two slices a step, so that a loss divided otherwise is another gradient; SGD, whose update is the
# gradient itself; 6 groups an epoch, so that the second checkpoint lies within the second.
PLAN = """\
name: compat
model: {id: organism}
task: {name: arithmetic, train_prompts: 12, eval_prompts: 4}
arms: [correctness, random]
control: random
seeds: [1]
grpo:
  max_steps: 4
  num_generations: 4
  per_device_train_batch_size: 8
  gradient_accumulation_steps: 2
  max_completion_length: 40
  learning_rate: 0.1
  optim: sgd
  save_steps: 2
lora: {r: 4}
evaluation: {max_new_tokens: 40}
"""
STEPS, GROUPS, GROUP_SIZE = 4, 4, 4
ARMS = ("correctness", "random")
# What `ahalab verify` has to find in a study that was trained and not yet evaluated.
VERIFIED = (
    *("chain", "chain.run", "attempts", "plan.match", "plan.n", "arm.config", "arm.order"),
    *("adapter.config", "adapter.fp", "adapter.effect", "tensor.finite", "base.pin"),
    *("cover", "row.unique", "regrade", "reward.sum", "advantage", "tokens"),
    *("steps", "diagnostics"),
)
REPEATED = (
    "rollouts.jsonl",
    "steps.jsonl",
    "diagnostics.json",
    "adapter/adapter_model.safetensors",
    "adapter/adapter_config.json",
)


class CheckError(Exception):
    """A check found something else than it should; the message says what."""


def expect(holds: bool, message: str) -> None:
    """Raise what was found when it does not hold."""
    if not holds:
        raise CheckError(message)


# Training, by the command line.


def start(folder: Path, *arguments: object) -> subprocess.Popen[str]:
    """Start an `ahalab` command in a session of its own, so that it can be killed whole."""
    return subprocess.Popen(
        [sys.executable, "-m", "ahalab", *(str(a) for a in arguments)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, cwd=folder,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "NO_COLOR": "1"},
    )  # fmt: skip


def command(folder: Path, *arguments: object, codes: tuple[int, ...] = (0,)) -> str:
    """Run an `ahalab` command to its end and return what it printed."""
    process = start(folder, *arguments)
    out, err = process.communicate(timeout=600)
    last = (err.strip().split("\n") or [""])[-1]
    expect(process.returncode in codes, f"ahalab {arguments[0]} ended {process.returncode}: {last}")
    return out


def training(folder: Path, arm: str, *more: object) -> tuple[object, ...]:
    """Return the arguments that train an arm of the plan that stands in a folder."""
    return ("train", folder / "study.yaml", "--out", folder, "--arm", arm, "--seed", 1, *more)


def study(folder: Path) -> StudyPaths:
    """Return the study that was trained in a folder."""
    return StudyPaths(folder / "compat")


def begin(folder: Path, text: str = PLAN) -> Path:
    """Make a folder that holds the plan."""
    folder.mkdir(parents=True)
    (folder / "study.yaml").write_text(text, encoding="utf-8")
    return folder


def train(work: Path) -> None:
    """Train both arms, the second after the first."""
    folder = begin(work / "whole")
    command(folder, *training(folder, "correctness"))
    pilot = study(folder).run("correctness", 1).folder
    command(folder, *training(folder, "random", "--like", pilot))


def train_killed(work: Path) -> None:
    """Train the first arm again, killed after its third generation batch, then resumed."""
    folder = begin(work / "killed")
    journal = study(folder).run("correctness", 1).folder / "rollouts.journal.jsonl"
    process = start(folder, *training(folder, "correctness"))
    while process.poll() is None and batches_in(journal) < 3:
        time.sleep(0.01)
    expect(process.poll() is None, "the run ended before it could be killed")
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    command(folder, *training(folder, "correctness"))


def batches_in(journal: Path) -> int:
    """Return how many generation batches a journal names."""
    return journal.read_bytes().count(b'"kind":"batch"') if journal.exists() else 0


def train_every_row(work: Path) -> None:
    """Train the first arm again, with every row in the training pass."""
    folder = begin(work / "every-row", PLAN + "training: {lean_step: false}\n")
    command(folder, *training(folder, "correctness"))


# What has to hold of what was written.


def rollouts(run: RunPaths) -> list[Rollout]:
    """Return the rows of a run."""
    return [row for _, row in read_rows(run.rollouts, Rollout)]


def record(run: RunPaths) -> RunRecord:
    """Return a run's own record."""
    return decode_file(run.record.read_bytes(), RunRecord, "run.json")


def rows_once(work: Path) -> None:
    """Every completion has one row, in the order in which it was generated."""
    train(work)
    expected = [
        (step, group, sample)
        for step in range(STEPS)
        for group in range(GROUPS)
        for sample in range(GROUP_SIZE)
    ]
    for arm in ARMS:
        found = [(r.step, r.group, r.sample) for r in rollouts(study(work / "whole").run(arm, 1))]
        expect(found == expected, f"{arm}: {len(found)} rows, {len(set(found))} different")


def advantages(work: Path) -> None:
    """Advantages are those of the rewards: deviation from the group's mean over its sample sd."""
    for arm in ARMS:
        rows = rollouts(study(work / "whole").run(arm, 1))
        for at in range(0, len(rows), GROUP_SIZE):
            group = rows[at : at + GROUP_SIZE]
            rewards = [float(row.reward or 0.0) for row in group]
            mean = sum(rewards) / GROUP_SIZE
            spread = math.sqrt(sum((r - mean) ** 2 for r in rewards) / (GROUP_SIZE - 1))
            for row, reward in zip(group, rewards, strict=True):
                ours = (reward - mean) / (spread + 1e-4)
                place = f"{arm}, step {row.step}, group {row.group}"
                expect(abs(row.advantage - ours) < 1e-3, f"{place}: {row.advantage}, not {ours}")


def resumed(work: Path) -> None:
    """A run that was killed and resumed leaves the bytes of one that was not."""
    train_killed(work)
    whole, killed = (study(work / name).run("correctness", 1) for name in ("whole", "killed"))
    for name in REPEATED:
        ours, theirs = ((run.folder / name).read_bytes() for run in (whole, killed))
        expect(ours == theirs, f"{name} differs after a kill")
    expect(len(record(killed).attempts) == 2, "the kill left no second attempt")


def lean_step(work: Path) -> None:
    """Rows without an advantage, left out of the training pass, leave the same adapter."""
    train_every_row(work)
    lean, full = (study(work / name).run("correctness", 1) for name in ("whole", "every-row"))
    expect(record(lean).lean_step == "on", f"the lean step was {record(lean).lean_step}")
    expect(record(full).lean_step.startswith("off"), "the lean step was not off")
    rows = rollouts(lean)
    expect(0 < sum(row.advantage == 0 for row in rows) < len(rows), "no row could be left out")
    expect(rows == rollouts(full), "the completions differ")
    expect_same_adapter(lean, full, 1e-5)


def verified(work: Path) -> None:
    """`ahalab verify` passes every check of the training."""
    output = command(work, "verify", study(work / "whole").root, "--format", "json", codes=(0, 4))
    found = {check["name"]: check for check in json.loads(output)["checks"]}
    for name, check in found.items():
        expect(check["status"] != "failed", f"{name} failed: {check['failures'][:1]}")
    left = [name for name in VERIFIED if found[name]["status"] != "passed"]
    expect(not left, f"not passed: {', '.join(left)}")


def as_newest(work: Path, reference: Path) -> None:
    """Completions, rewards, gradients and adapter are those of the newest set."""
    ours, theirs = (study(folder / "whole").run("correctness", 1) for folder in (work, reference))
    for mine, other in zip(rollouts(ours), rollouts(theirs), strict=True):
        expect(mine == other, f"step {mine.step}, group {mine.group}: another completion or reward")
    expect_same_adapter(ours, theirs, 1e-4)


def expect_same_adapter(ours: RunPaths, theirs: RunPaths, tolerance: float) -> None:
    """Compare two adapters, tensor by tensor, in relative norm."""
    mine, other = (
        load_float32(run.adapter / "adapter_model.safetensors") for run in (ours, theirs)
    )
    expect(sorted(mine) == sorted(other), "the adapters hold other tensors")
    for name, tensor in mine.items():
        distance = float(np.linalg.norm(tensor - other[name]))
        expect(
            distance <= tolerance * max(float(np.linalg.norm(other[name])), 1e-12),
            f"{name} differs by {distance:.1e}",
        )


def outcome(check: Callable[..., None], *arguments: Path) -> str:
    """Run a check; return "passed" or what it found."""
    try:
        check(*arguments)
    except CheckError as found:
        return str(found)
    return "passed"


def main(work: Path, reference: Path | None = None) -> dict[str, Any]:
    """Train, check, and return the versions with what each check found."""
    shutil.rmtree(work, ignore_errors=True)
    checks: dict[str, str] = {}
    planned: list[tuple[str, Callable[..., None], tuple[Path, ...]]] = [
        ("rows exactly once", rows_once, (work,)),
        ("advantages", advantages, (work,)),
    ]
    if reference is not None:
        planned += [
            ("as the newest", as_newest, (work, reference)),
            ("lean step", lean_step, (work,)),
            ("kill and resume", resumed, (work,)),
            ("verify", verified, (work,)),
        ]
    for name, check, places in planned:
        began = time.monotonic()
        checks[name] = outcome(check, *places)
        sys.stderr.write(f"    {name}: {checks[name]} ({time.monotonic() - began:.0f} s)\n")
        if name == "rows exactly once" and checks[name] != "passed":
            break  # there is nothing to look at
    versions = {"python": ".".join(map(str, sys.version_info[:2]))}
    return {"versions": versions | {n: version(n) for n in LIBRARIES}, "checks": checks}


if __name__ == "__main__":
    print(json.dumps(main(*(Path(argument).resolve() for argument in sys.argv[1:]))))
