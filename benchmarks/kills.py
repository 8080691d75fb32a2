"""A run killed at every write, fsync and rename, and at random instants, then resumed: same bytes?

Run as `python -m benchmarks.kills [--stage train|greedy|sampled] [--every 1] [--random 60]`:
training, or the evaluation of base, floor and an adapter, greedy or sampled. Each run is a fork of
one process that has imported everything, and each kill is a SIGKILL. Faults are injected at our
own writes: the n-th `os.write` puts half of its bytes on the disk and dies, the n-th `os.fsync` or
`os.replace` dies before it, and once more after it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import at_least_one

PLAN = """\
name: killed
model: {id: organism}
task: {name: arithmetic, train_prompts: 8, eval_prompts: 4}
arms: [historical, random]
control: random
seeds: [1]
grpo:
  max_steps: 4
  num_generations: 4
  per_device_train_batch_size: 16
  max_completion_length: 40
  learning_rate: 1e-4
  save_steps: 2
lora: {r: 4}
evaluation: {max_new_tokens: 40, batch_size: 3, cells_per_batch: 2%s}
"""
STUDY = "results/killed"
RUN = f"{STUDY}/arms/historical/seed-1"
CELLS = ("--cell", "base", "--cell", "floor")  # the adapter shares the base's batches


@dataclass(frozen=True, slots=True)
class Stage:
    """What is killed."""

    sampling: str  # keys of the plan's evaluation
    arguments: tuple[str, ...]  # of our command
    repeated: tuple[str, ...]  # must repeat to the byte; journals, clocks and run.json differ
    trained: bool = True  # it begins with a trained study


TRAIN = ("train", "study.yaml", "--out", "results", "--arm", "historical", "--seed", "1", "--quiet")
TRAINING = Stage(
    "",
    TRAIN,
    tuple(
        f"{RUN}/{name}"
        for name in (
            "rollouts.jsonl",
            "steps.jsonl",
            "diagnostics.json",
            "adapter/adapter_model.safetensors",
            "adapter/adapter_config.json",
        )
    ),
    trained=False,
)
ANSWERS = tuple(
    f"{STUDY}/{name}"
    for side in ("base/answers", "base/floor", "arms/historical/seed-1/answers")
    for name in (f"{side}.jsonl", f"{side}.protocol.json")
)
STAGES = {
    "train": TRAINING,
    "greedy": Stage("", ("evaluate", STUDY, *CELLS, "--quiet"), ANSWERS),
    "sampled": Stage(
        ", temperature: 0.8, samples: 2, seed: 5", ("evaluate", STUDY, *CELLS, "--quiet"), ANSWERS
    ),
}


@dataclass(slots=True)
class Faults:
    """Counts our writes, fsyncs and renames, and dies at one of them."""

    at: int | None  # None: only count
    after: bool = False  # of an fsync or a rename: after it
    count: int = 0

    def install(self) -> None:
        """Put the faults in the place of the calls, in this process."""
        write, fsync, replace = os.write, os.fsync, os.replace

        def faulty_write(descriptor: int, payload: Any) -> int:
            if self._reached():
                half = bytes(payload)[: len(payload) // 2]
                write(descriptor, half)
                die()
            return write(descriptor, payload)

        def faulty(call: Callable[..., Any]) -> Callable[..., Any]:
            def called(*arguments: Any, **named: Any) -> Any:
                reached = self._reached()
                if reached and not self.after:
                    die()
                found = call(*arguments, **named)
                if reached:
                    die()
                return found

            return called

        os.write, os.fsync, os.replace = faulty_write, faulty(fsync), faulty(replace)

    def _reached(self) -> bool:
        self.count += 1
        return self.count == self.at


def die() -> None:
    """End this process as a power cut would."""
    os.kill(os.getpid(), signal.SIGKILL)


def start(
    folder: Path, arguments: tuple[str, ...], faults: Faults | None = None, log: Path | None = None
) -> int:
    """Start our command in a fork; return its process id."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        from ahalab.cli import main

        said = os.open(log or folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(said, 1)
        os.dup2(said, 2)
        os.chdir(folder)
        sys.argv = ["ahalab", *arguments]
        if faults is not None:
            faults.install()
        code = main()
        if faults is not None:
            Path("events").write_text(str(faults.count), "ascii")
    finally:
        os._exit(code)


def wait(pid: int) -> int:
    """Return the exit code of a fork, negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class Runs:
    """Runs of one stage, each in a folder of its own that begins alike."""

    def __init__(self, stage: Stage, folder: Path) -> None:
        self.stage, self.folder = stage, folder
        self.begin = folder / "begin"
        self.begin.mkdir()
        (self.begin / "study.yaml").write_text(PLAN % stage.sampling, "utf-8")
        if stage.trained and wait(start(self.begin, TRAIN)) != 0:
            raise SystemExit((self.begin / "log").read_text("utf-8"))
        if wait(start(self.fresh("whole"), stage.arguments, Faults(None))) != 0:
            raise SystemExit((folder / "whole" / "log").read_text("utf-8"))
        self.expected = self._bytes(folder / "whole")
        again, began = self.fresh("again"), time.monotonic()
        if faults := self.resumed(again, "undisturbed, again"):
            raise SystemExit("\n".join(faults))
        self.seconds = time.monotonic() - began
        self.events = int((folder / "whole" / "events").read_text("ascii"))

    def fresh(self, name: str = "faulty") -> Path:
        """Return a folder as the stage finds it."""
        shutil.rmtree(self.folder / name, ignore_errors=True)
        return Path(shutil.copytree(self.begin, self.folder / name))

    def resumed(self, where: Path, name: str) -> list[str]:
        """Resume a killed run to its end and return what differs."""
        code = wait(start(where, self.stage.arguments))
        if code != 0:
            return [f"{name}: exit code {code}: {(where / 'log').read_text('utf-8')[-300:]}"]
        found = self._bytes(where)
        return [f"{name}: {n}" for n, b in found.items() if b != self.expected[n]]

    def _bytes(self, where: Path) -> dict[str, bytes]:
        return {name: (where / name).read_bytes() for name in self.stage.repeated}


def main() -> None:
    """Kill, resume, compare and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument(
        "--every", type=at_least_one, default=1, help="kill at each N-th event only"
    )
    parser.add_argument("--random", type=int, default=60, help="kills at random instants")
    parser.add_argument("--stage", choices=sorted(STAGES), default="train")
    options = parser.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import datasets  # noqa: F401 - imported once, before the forks
    import peft  # noqa: F401
    import trl

    _ = trl.GRPOTrainer
    stage = STAGES[options.stage]
    with tempfile.TemporaryDirectory() as name:
        runs = Runs(stage, Path(name))
        wrong, injected, late = [], 0, 0
        for at in range(1, runs.events + 1, options.every):
            for after in (False, True):
                where = runs.fresh()
                if wait(start(where, stage.arguments, Faults(at, after))) != -signal.SIGKILL:
                    wrong.append(f"event {at}: it was not killed")
                injected += 1
                wrong += runs.resumed(where, f"event {at}{' after' * after}")
            print(
                f"event {at}/{runs.events}: {len(wrong)} differences", file=sys.stderr, flush=True
            )
        dice = random.Random(1)  # noqa: S311 - which instants, no secret
        for number in range(options.random):
            where = runs.fresh()
            pid = start(where, stage.arguments)
            time.sleep(dice.uniform(0.0, runs.seconds))
            os.kill(pid, signal.SIGKILL)
            late += wait(pid) == 0
            wrong += runs.resumed(where, f"random kill {number}")
            print(f"kill {number + 1}/{options.random}", file=sys.stderr, flush=True)
    events = runs.events
    for line in wrong:
        print(line)
    figures = {
        "stage": options.stage, "events": events, "injected": injected, "random": options.random,
        "ended_before_the_kill": late, "differences": len(wrong),
    }  # fmt: skip
    print(f"{injected} kills at the {events} writes, fsyncs and renames of {options.stage}")
    print(f"{options.random} kills at random instants, {late} of them after the end")
    print(f"{len(wrong)} ends that differ from the undisturbed run")
    print(json.dumps(figures))
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
