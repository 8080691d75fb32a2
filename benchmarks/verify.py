"""How long `ahalab verify` takes and what it holds: the quickstart, and a study of 200,000 rows.

Run as `python -m benchmarks.verify [--rows 100000]`. The large study is built here first, in a
temporary folder, by the builder of the verifier's tests (minutes): 12 runs of a half of the rows,
and 14 answer sets of the other; completions are invented, almost all different, and scored by the
real scorers; everything else is real code. Both must pass. Memory is that of all processes at once.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ahalab.verify.workers import LARGE
from benchmarks import at_least_one

PROJECT = Path(__file__).parents[1]
QUICKSTART = PROJECT / "results" / "quickstart"
RUNS, SETS, BATCH = 12, 14, 8  # of the plan below: runs, answer sets, completions a step
PLAN = """
name: synthetic
model: {{id: organism}}
task: {{name: arithmetic, train_prompts: 512, eval_prompts: {questions}}}
arms: [historical, additive_format, correctness, random]
control: random
seeds: [1, 2, 3]
grpo: {{max_steps: {steps}, num_generations: 4, per_device_train_batch_size: 8,
  max_completion_length: 48, save_steps: {steps}}}
lora: {{r: 2, lora_alpha: 4, target_modules: [q_proj]}}
evaluation: {{max_new_tokens: 48, batch_size: 64, floor_batch_size: 48}}
"""


@dataclass(frozen=True, slots=True)
class Verified:
    """One verification, timed in a process of its own."""

    name: str
    rows: int  # graded: rollouts and answers
    result: str
    best_seconds: float  # wall, start of the interpreter and all
    cpu_seconds: float  # of that one, all processes
    peak_mb: float  # resident memory of all processes together, the largest of the rounds
    target_seconds: float
    target_mb: float | None


def build(folder: Path, rows: int) -> Path:
    """Write a sealed study of so many rollouts, and as many answers."""
    importlib.import_module("benchmarks.invented")  # finds the tests' builder
    builder = importlib.import_module("study_builder")
    builder.write = wordy
    steps, questions = -(-rows // (RUNS * BATCH)), -(-rows // SETS)
    root: Path = builder.build(folder / "study", PLAN.format(steps=steps, questions=questions))
    return root


def wordy(rng: random.Random, gold: str, skill: float) -> Any:
    """Invent a completion of two sums and an answer, so that few of them are alike."""
    builder = importlib.import_module("study_builder")
    value = gold if rng.random() < skill else str(int(gold) + rng.randint(1, 9))
    first, second, third = (rng.randint(2, 99) for _ in range(3))
    sums = f"{first} + {second} = {first + second}\n{first + second} - {third} = "
    close = rng.choice(["#### {}", "#### {}", "The answer is {}.", "Wait. I check.\n#### {}"])
    text = f"{sums}{first + second - third}\n{close.format(value)}"
    ids = builder.TOKENIZER.encode(text).ids[: builder.LIMIT - 1]
    text = builder.TOKENIZER.decode(ids)
    return builder.Written(text, (*ids, builder.END), "eos")


def verified(study: Path, rounds: int, targets: tuple[float, float | None]) -> Verified:
    """Verify a study so often and take the quickest."""
    command = [sys.executable, "-m", "ahalab", "verify", str(study), "--format", "json"]
    walls, cpus, peaks = [], [], []
    for _ in range(rounds):
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        watch = Watch(process.pid)
        watch.start()
        said, _ = process.communicate()
        walls.append(time.monotonic() - began)
        peaks.append(watch.end())
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpus.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    found = json.loads(said)
    best = walls.index(min(walls))
    graded = next(check["count"] for check in found["checks"] if check["name"] == "finish")
    return Verified(
        study.name, graded, found["result"], walls[best], cpus[best], max(peaks), *targets
    )


class Watch(threading.Thread):
    """Looks at the resident memory of a process and those below it, twenty times a second."""

    def __init__(self, process: int) -> None:
        super().__init__(daemon=True)
        self._process = process
        self._over = threading.Event()
        self._peak = 0

    def run(self) -> None:
        """Take the largest sum."""
        while not self._over.wait(0.05):
            self._peak = max(self._peak, sum(map(resident, family(self._process))))

    def end(self) -> float:
        """Stop, and return the peak in MB."""
        self._over.set()
        self.join()
        return self._peak / 1e6


def family(process: int) -> list[int]:
    """Return a process and all below it (Linux; elsewhere the process alone)."""
    try:
        text = Path(f"/proc/{process}/task/{process}/children").read_text("ascii")
    except OSError:
        return [process]
    return [process, *(one for child in text.split() for one in family(int(child)))]


def resident(process: int) -> int:
    """Return the resident bytes of a process; 0 when it is gone, or not told."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text("ascii").split()[1])
    except (OSError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table and the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.verify", description=__doc__)
    parser.add_argument("--rows", type=at_least_one, default=100_000, help="rollouts, and answers")
    parser.add_argument("--rounds", type=at_least_one, default=3)
    parser.add_argument("--study", type=Path, help="a study built before, instead of a new one")
    options = parser.parse_args(arguments)
    found = [verified(QUICKSTART, options.rounds, (10.0, 300.0))]
    with tempfile.TemporaryDirectory() as folder:
        large = options.study or build(Path(folder), options.rows)
        found.append(verified(large, options.rounds, (30.0, None)))
    print(f"{'':<14}{'rows':>9}{'result':>10}{'wall':>9}{'CPU':>9}{'memory':>10}{'target':>18}")
    for one in found:
        target = f"{one.target_seconds:.0f} s" + (f", {one.target_mb} MB" if one.target_mb else "")
        told = f"{one.best_seconds:>7.1f} s{one.cpu_seconds:>7.1f} s{one.peak_mb:>7.0f} MB"
        print(f"{one.name:<14}{one.rows:>9,}{one.result:>10}{told}{target:>18}")
    load = os.getloadavg()[0]
    print(f"Load {load:.1f} on {os.cpu_count()} cores. From {LARGE:,} rows on every core is used.")
    print(json.dumps(figures(found, load)))
    return 0


def figures(found: Sequence[Verified], load: float) -> dict[str, object]:
    """Gather the figures for the last line."""
    return {
        "benchmark": "verify",
        "load": load,
        "studies": [asdict(one) for one in found],
        "met": all(
            one.result == "PASSED"
            and one.best_seconds <= one.target_seconds
            and (one.target_mb is None or one.peak_mb <= one.target_mb)
            for one in found
        ),
    }


if __name__ == "__main__":
    sys.exit(main())
