"""What the tests of training, evaluation and the pipeline share: a tiny plan and its commands."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ahalab.evaluate.backends import Batch, Side
from ahalab.plan.load import parse_plan
from ahalab.records.plan import Plan
from ahalab.records.prompt import Prompt
from ahalab.records.rollout import Rollout
from ahalab.store.layout import RunPaths, StudyPaths
from ahalab.store.reading import read_rows
from ahalab.tasks.generation import Completion

SERVER = Path(__file__).with_name("warm_server.py")
# 12 prompts, 4 a step: an epoch is 3 steps, and the checkpoint of step 4 lies within the second.
PLAN = """\
name: tiny
model: {id: organism}
task: {name: arithmetic, train_prompts: 12, eval_prompts: 12}
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
evaluation: {max_new_tokens: 40, batch_size: 4, floor_batch_size: 3, replay: true}
"""
# Two slices a generation batch, each batch used twice: a batch serves two optimizer steps.
WINDOWED = (
    PLAN.replace("name: tiny", "name: windowed")
    .replace("max_steps: 6", "max_steps: 4")
    .replace(
        "per_device_train_batch_size: 16",
        "per_device_train_batch_size: 8\n  gradient_accumulation_steps: 2\n"
        "  steps_per_generation: 2\n  num_iterations: 2",
    )
)
SAMPLED = PLAN.replace("name: tiny", "name: sampled").replace(
    "replay: true", "temperature: 0.8, samples: 2, seed: 5"
)


def plan_of(text: str = PLAN) -> Plan:
    return parse_plan(text, "study.yaml")


def write_plan(folder: Path, text: str = PLAN) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "study.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def rollouts_of(run: RunPaths) -> list[Rollout]:
    return [row for _, row in read_rows(run.rollouts, Rollout)]


def kinds(journal: Path) -> list[str]:
    """Return the kinds of a journal's whole lines, in order."""
    if not journal.exists():
        return []
    return [json.loads(line)["kind"] for line in journal.read_bytes().split(b"\n")[:-1]]


class Answerer:
    """The backend of the evaluation, one side at a time, asked with bare token ids."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        from ahalab.evaluate.backends.transformers import TransformersBackend
        from ahalab.tasks.render import load_tokenizer

        self.backend = TransformersBackend(plan, folder, load_tokenizer(folder))
        self.use_base()

    def use_base(self) -> None:
        self.backend.serve([Side("base")])

    def use_adapter(self, folder: Path) -> None:
        self.backend.serve([Side("adapter", folder)])

    def generate(self, prompts: Sequence[tuple[int, ...]], seed: int) -> list[Completion]:
        return self.backend.generate(batch_of(prompts, seed))[0]


def batch_of(prompts: Sequence[tuple[int, ...]], seed: int = 0) -> Batch:
    """Return a batch that asks with these token ids, each (T,)."""
    asked = [
        Prompt(
            prompt_id=f"{n:05d}", question="?", gold="1", source="here", split="eval",
            prompt_ids=ids, prompt_tokens=len(ids),
        )
        for n, ids in enumerate(prompts)
    ]  # fmt: skip
    return Batch(tuple((prompt, 0) for prompt in asked), seed)


def batches_in(journal: Path) -> int:
    return kinds(journal).count("batch")


# What must repeat to the byte; journals, clocks and run.json (attempts, times) apart.
REPEATED = (
    "rollouts.jsonl",
    "steps.jsonl",
    "diagnostics.json",
    "adapter/adapter_model.safetensors",
    "adapter/adapter_config.json",
)


def repeated_bytes(run: RunPaths) -> dict[str, bytes]:
    return {name: (run.folder / name).read_bytes() for name in REPEATED}


@dataclass(slots=True)
class Command:
    """An `ahalab` command line that runs in a fork."""

    lab: WarmLab
    pid: int
    log: Path
    code: int | None = None  # of exit; -9 after a SIGKILL

    def running(self) -> bool:
        if self.code is None:
            self.code = self.lab.ask({"wait": self.pid, "block": False})
        return self.code is None

    def finish(self) -> int:
        if self.code is None:
            self.code = self.lab.ask({"wait": self.pid, "block": True})
        assert self.code is not None
        return self.code

    def kill_when(self, ready: Callable[[], bool], number: int = signal.SIGKILL) -> int:
        """Signal the whole process group as soon as `ready()` holds; return the exit code."""
        while self.running() and not ready():
            time.sleep(0.001)
        assert self.code is None, f"it ended before it could be killed: {self.text()}"
        os.killpg(self.pid, number)
        return self.finish()

    def text(self) -> str:
        return self.log.read_text("utf-8") if self.log.exists() else ""


class WarmLab:
    """Starts commands in forks of one process that has imported torch already."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.number = 0
        with (folder / "server.log").open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(SERVER)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=environment(),
            )
        assert self._read() == "ready"

    def ask(self, request: dict[str, Any]) -> Any:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return self._read()

    def _read(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, (self.folder / "server.log").read_text("utf-8")
        return json.loads(line)

    def start(self, *arguments: object) -> Command:
        self.number += 1
        log = self.folder / f"{self.number}.log"
        pid = self.ask({"start": [str(a) for a in arguments], "log": str(log)})
        return Command(self, pid, log)

    def run(self, *arguments: object, code: int = 0) -> str:
        """Run a command to its end, check its exit code, return what it printed."""
        command = self.start(*arguments)
        found = command.finish()
        assert found == code, f"exit code {found}: {command.text()}"
        return command.text()

    def close(self) -> None:
        self.process.communicate(timeout=20)


def environment(**more: str) -> dict[str, str]:
    quiet = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "NO_COLOR": "1", "COLUMNS": "200"}
    return {**os.environ, **quiet, **more}


def ahalab(*arguments: object, **more: str) -> subprocess.CompletedProcess[str]:
    """Run the real command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "ahalab", *(str(a) for a in arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=environment(**more),
    )


def start_ahalab(*arguments: object) -> subprocess.Popen[str]:
    """Start the real command in a session of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "ahalab", *(str(a) for a in arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=environment(),
    )


def signal_when(
    process: subprocess.Popen[str], ready: Callable[[], bool], number: int = signal.SIGKILL
) -> tuple[int, str, str]:
    """Signal the process group of a real command once `ready()`; return code, stdout, stderr."""
    while process.poll() is None and not ready():
        time.sleep(0.002)
    assert process.poll() is None, process.communicate()
    os.killpg(process.pid, number)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


@dataclass(frozen=True, slots=True)
class Trained:
    """The one trained study that many tests read, and none may write to."""

    plan: Plan
    plan_file: Path
    paths: StudyPaths

    def run(self, arm: str) -> RunPaths:
        return self.paths.run(arm, 1)
