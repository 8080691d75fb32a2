"""A run killed at every write, fsync and rename, and at random instants, then resumed: same bytes?

Run as `python -m benchmarks.kills [--every 1] [--random 60]`. Each training is a fork of one
process that has imported everything, and each kill is a SIGKILL. Faults are injected at our own
writes: the n-th `os.write` puts half of its bytes on the disk and dies, the n-th `os.fsync` or
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
evaluation: {max_new_tokens: 40}
"""
RUN = "results/killed/arms/historical/seed-1"
# What must repeat to the byte; journals, clocks and run.json (attempts, times) differ.
REPEATED = (
    "rollouts.jsonl",
    "steps.jsonl",
    "diagnostics.json",
    "adapter/adapter_model.safetensors",
    "adapter/adapter_config.json",
)


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


def start(folder: Path, faults: Faults | None = None) -> int:
    """Start a training in a fork; return its process id."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        from ahalab.cli import main

        log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.chdir(folder)
        sys.argv = ["ahalab", "train", "study.yaml", "--out", "results"]
        sys.argv += ["--arm", "historical", "--seed", "1", "--quiet"]
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


def bytes_of(folder: Path) -> dict[str, bytes]:
    """Return what must repeat."""
    return {name: (folder / RUN / name).read_bytes() for name in REPEATED}


def fresh(folder: Path) -> Path:
    """Return an empty folder with the plan in it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "study.yaml").write_text(PLAN, "utf-8")
    return folder


def resumed(folder: Path, expected: dict[str, bytes], name: str) -> list[str]:
    """Resume a killed training to its end and return what differs."""
    code = wait(start(folder))
    if code != 0:
        return [f"{name}: exit code {code}: {(folder / 'log').read_text('utf-8')[-300:]}"]
    return [f"{name}: {n}" for n, b in bytes_of(folder).items() if b != expected[n]]


def main() -> None:
    """Kill, resume, compare and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument(
        "--every", type=at_least_one, default=1, help="kill at each N-th event only"
    )
    parser.add_argument("--random", type=int, default=60, help="kills at random instants")
    options = parser.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import datasets  # noqa: F401 - imported once, before the forks
    import peft  # noqa: F401
    import trl

    _ = trl.GRPOTrainer
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        began = time.monotonic()
        if wait(start(fresh(folder / "whole"), Faults(None))) != 0:
            raise SystemExit((folder / "whole" / "log").read_text("utf-8"))
        seconds = time.monotonic() - began
        expected = bytes_of(folder / "whole")
        events = int((folder / "whole" / "events").read_text("ascii"))
        wrong, injected, late = [], 0, 0
        for at in range(1, events + 1, options.every):
            for after in (False, True):
                where = fresh(folder / "faulty")
                if wait(start(where, Faults(at, after))) != -signal.SIGKILL:
                    wrong.append(f"event {at}: it was not killed")
                injected += 1
                wrong += resumed(where, expected, f"event {at}{' after' * after}")
            print(f"event {at}/{events}: {len(wrong)} differences", file=sys.stderr, flush=True)
        dice = random.Random(1)  # noqa: S311 - which instants, no secret
        for number in range(options.random):
            where = fresh(folder / "faulty")
            pid = start(where)
            time.sleep(dice.uniform(0.0, seconds))
            os.kill(pid, signal.SIGKILL)
            late += wait(pid) == 0
            wrong += resumed(where, expected, f"random kill {number}")
            print(f"kill {number + 1}/{options.random}", file=sys.stderr, flush=True)
    for line in wrong:
        print(line)
    figures = {
        "events": events, "injected": injected, "random": options.random,
        "ended_before_the_kill": late, "differences": len(wrong),
    }  # fmt: skip
    print(f"{injected} kills at the {events} writes, fsyncs and renames of a run of 4 steps")
    print(f"{options.random} kills at random instants, {late} of them after the end")
    print(f"{len(wrong)} ends that differ from the undisturbed run")
    print(json.dumps(figures))
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
