"""What our trainer costs over plain TRL, and what the lean step saves: pair by pair, CPU time.

Run as `python -m benchmarks.training [--pairs 30] [--steps 8]`; for a model of one's own
`--model FOLDER --pairs 10 --steps 2 --length 64` (docs: tools/make_smollm2.py makes one).

Each pair trains the same plan and seed three times, in alternating order, each in a fork of one
process that has imported everything: plain TRL with the arm's reward, ours with every row in the
training pass, and ours with the lean step. The completions must be the same in all three.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import statistics
import sys
import tempfile
import time
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ahalab.plan.load import parse_plan
from ahalab.records.plan import Plan
from benchmarks import at_least_one
from benchmarks.agreement import shared_data

KINDS = ("plain", "full", "lean")
ORGANISM = """\
name: bench
model: {id: organism}
task: {name: arithmetic, train_prompts: 64, eval_prompts: 4}
"""
FOLDER_MODEL = """\
name: bench
model: {id: %s, threads: 2}
task:
  name: gsm8k
  path: %s
  train_prompts: 16
  eval_prompts: 4
  template: "{question}\\nEnd with a line #### N, where N is the answer as a number."
"""
REST = """\
arms: [correctness, random]
control: random
seeds: [1]
grpo:
  max_steps: %d
  num_generations: 8
  per_device_train_batch_size: %d
  max_completion_length: %d
  learning_rate: 1e-4
  save_steps: %d
lora: {r: 8}
evaluation: {max_new_tokens: %d}
training: {lean_step: %s}
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """One training."""

    cpu_seconds: float  # of the steps, without what comes before the first and after the last
    pass_cpu_seconds: float  # of these, in the training pass: forward, backward, optimizer
    wall_seconds: float
    peak_mb: float  # of the process, imports and all
    completions: str  # digest of every completion's token ids, in order
    dead_fraction: float | None  # completions with an advantage of exactly 0
    adapter: str  # folder


def plan_of(options: argparse.Namespace, kind: str) -> Plan:
    """Return the plan that all three trainings share, but for the lean step."""
    head = ORGANISM
    if options.model:
        head = FOLDER_MODEL % (options.model, shared_data() / "gsm8k_openai")
    length, steps = options.length, options.steps
    lean = str(kind == "lean").lower()
    rest = REST % (steps, options.batch, length, steps, length, lean)
    return parse_plan(head + rest, "benchmarks.training")


def train(options: argparse.Namespace, kind: str, folder: Path) -> Measured:
    """Train once, in this process, and measure it."""
    from ahalab.store.layout import StudyPaths
    from ahalab.store.models import resolve_model
    from ahalab.tasks.prepare import prepare_prompts

    plan = plan_of(options, kind)
    paths = StudyPaths(folder / "bench")
    prepare_prompts(plan, paths, resolve_model(plan.model))
    clock = Clock()
    adapter = _plain(plan, paths, clock) if kind == "plain" else _ours(plan, paths, clock)
    return Measured(
        clock.cpu, clock.pass_cpu, clock.wall,
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        clock.completions.hexdigest(), clock.dead_fraction, str(adapter),
    )  # fmt: skip


class Clock:
    """Takes the times of a trainer's steps; the same hooks on plain TRL and on ours."""

    def __init__(self) -> None:
        self.cpu = self.wall = self.pass_cpu = 0.0
        self.completions = hashlib.sha256()
        self.rows = self.dead = 0
        self._preparing = 0.0

    @property
    def dead_fraction(self) -> float | None:
        """Completions with an advantage of exactly 0."""
        return self.dead / self.rows if self.rows else None

    def hook(self, trainer: Any) -> None:
        """Time the training and, apart from generation and rewards, its passes."""
        prepare, step, score, whole = (
            trainer._prepare_inputs,
            trainer.training_step,
            trainer._generate_and_score_completions,
            trainer._inner_training_loop,
        )

        def timed_prepare(inputs: Any) -> Any:
            began = time.process_time()
            try:
                return prepare(inputs)
            finally:
                self._preparing += time.process_time() - began

        def timed_step(*arguments: Any, **named: Any) -> Any:
            began, self._preparing = time.process_time(), 0.0
            try:
                return step(*arguments, **named)
            finally:
                self.pass_cpu += time.process_time() - began - self._preparing

        def seen_score(inputs: Any) -> Any:
            output = score(inputs)
            self.rows += len(output["advantages"])
            self.dead += int((output["advantages"] == 0).sum())
            ids = output["completion_ids"] * output["completion_mask"]
            self.completions.update(json.dumps(ids.tolist()).encode())
            return output

        def timed_whole(*arguments: Any, **named: Any) -> Any:
            cpu, wall = time.process_time(), time.monotonic()
            try:
                return whole(*arguments, **named)
            finally:
                self.cpu, self.wall = time.process_time() - cpu, time.monotonic() - wall

        trainer._prepare_inputs = timed_prepare
        trainer.training_step = timed_step
        trainer._generate_and_score_completions = seen_score
        trainer._inner_training_loop = timed_whole


def _ours(plan: Plan, paths: Any, clock: Clock) -> Path:
    from ahalab.plan.cells import run_cell
    from ahalab.train import trainer as module
    from ahalab.train.arm import train_arm

    class Timed(module.RecordedTrainer):  # type: ignore[misc]
        def __init__(self, **arguments: Any) -> None:
            super().__init__(**arguments)
            clock.hook(self)

    module.RecordedTrainer = Timed  # type: ignore[misc]
    train_arm(plan, paths, run_cell("correctness", 1), pilot=None, on_step=lambda step: None)
    return Path(paths.run("correctness", 1).adapter)


def _plain(plan: Plan, paths: Any, clock: Clock) -> Path:
    """Train as TRL's documentation shows it, with the arm's reward and nothing else."""
    import torch
    from datasets import Dataset
    from peft import LoraConfig
    from transformers import PrinterCallback, set_seed
    from trl import GRPOTrainer

    from ahalab.scoring.answers import score_answer
    from ahalab.store.models import load_model, quiet_libraries, resolve_model
    from ahalab.tasks.prepare import read_prompts
    from ahalab.tasks.questions import asked_of
    from ahalab.tasks.render import load_tokenizer, messages
    from ahalab.train.trl_compat import grpo_config

    folder = resolve_model(plan.model)
    asked = asked_of(plan.task, plan.answer_format)

    def correctness(completions: Any, gold: Any, **_: Any) -> list[float]:
        return [
            float(score_answer(c[0]["content"], g, asked=asked).strict.outcome == "correct")
            for c, g in zip(completions, gold, strict=True)
        ]

    torch.set_num_threads(plan.model.threads)
    set_seed(1)
    rows = [
        {"prompt": messages(plan.task, p.question), "gold": p.gold}
        for p in read_prompts(paths, "train")
    ]
    with quiet_libraries():
        trainer = GRPOTrainer(
            model=load_model(plan.model, folder),
            args=grpo_config(plan, 1, paths.work / "plain"),
            reward_funcs=[correctness],
            train_dataset=Dataset.from_list(rows),
            processing_class=load_tokenizer(folder),
            peft_config=LoraConfig(**plan.lora, task_type="CAUSAL_LM"),
        )
        trainer.remove_callback(PrinterCallback)
        clock.hook(trainer)
        trainer.train()
        adapter = paths.work / "adapter"
        trainer.save_model(str(adapter))
    return Path(adapter)


def forked(options: argparse.Namespace, kind: str, folder: Path) -> Measured:
    """Train in a fork, so that every training begins alike."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(read)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            measured = train(options, kind, folder)
            os.write(write, json.dumps(asdict(measured)).encode())
            code = 0
        except BaseException:  # noqa: BLE001 - told, and the parent stops
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        told = pipe.read()
    _, status = os.waitpid(pid, 0)
    if status:
        raise SystemExit(f"benchmarks.training: {kind} failed")
    return Measured(**json.loads(told))


def worst_difference(one: str, other: str) -> float:
    """Return the largest relative norm of a difference between two adapters' tensors."""
    from safetensors.torch import load_file

    a, b = (load_file(Path(folder) / "adapter_model.safetensors") for folder in (one, other))
    if a.keys() != b.keys():
        raise SystemExit("benchmarks.training: the adapters are of other modules")
    return max(float((a[n] - b[n]).norm() / b[n].norm().clamp(min=1e-12)) for n in a)


@dataclass(frozen=True, slots=True)
class Pair:
    """One pair: three trainings of one plan and seed."""

    full_over_plain: float  # CPU time
    lean_over_plain: float
    lean_pass_over_plain: float  # CPU time of the training pass alone
    pass_fraction: float  # share of plain TRL's CPU time in the training pass
    dead_fraction: float
    full_memory: float  # peak, over plain TRL's
    lean_memory: float
    full_difference: float  # of the adapters, over plain TRL's
    lean_difference: float


def measure_pair(options: argparse.Namespace, number: int, folder: Path) -> Pair:
    """Train the three kinds in an order that alternates, and compare them."""
    order = KINDS[number % 3 :] + KINDS[: number % 3]
    found = {kind: forked(options, kind, folder / f"{number}-{kind}") for kind in order}
    plain, full, lean = (found[kind] for kind in KINDS)
    if len({m.completions for m in found.values()}) != 1:
        raise SystemExit("benchmarks.training: the three trainings generated other completions")
    return Pair(
        full.cpu_seconds / plain.cpu_seconds,
        lean.cpu_seconds / plain.cpu_seconds,
        lean.pass_cpu_seconds / plain.pass_cpu_seconds,
        plain.pass_cpu_seconds / plain.cpu_seconds,
        plain.dead_fraction or 0.0,
        full.peak_mb / plain.peak_mb,
        lean.peak_mb / plain.peak_mb,
        worst_difference(full.adapter, plain.adapter),
        worst_difference(lean.adapter, plain.adapter),
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--pairs", type=at_least_one, default=30)
    parser.add_argument("--steps", type=at_least_one, default=8)
    parser.add_argument("--batch", type=at_least_one, default=32)
    parser.add_argument("--length", type=at_least_one, default=40)
    parser.add_argument("--model", default="")
    options = parser.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import datasets  # noqa: F401 - imported once, before the forks
    import peft  # noqa: F401
    import trl

    _ = trl.GRPOTrainer
    pairs = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.pairs):
            pairs.append(measure_pair(options, number, Path(folder)))
            last = pairs[-1]
            print(
                f"pair {number + 1}/{options.pairs}: full {last.full_over_plain:.3f}, lean "
                f"{last.lean_over_plain:.3f} of plain TRL's CPU time",
                file=sys.stderr,
                flush=True,
            )
    figures = {
        name: statistics.median(getattr(pair, name) for pair in pairs)
        for name in Pair.__dataclass_fields__
    }
    bound = statistics.median(1 - 0.8 * p.dead_fraction * p.pass_fraction for p in pairs)
    worst = max(max(p.full_difference, p.lean_difference) for p in pairs)
    print(f"{'median of ' + str(len(pairs)) + ' pairs':<44}{'measured':>10}{'target':>10}")
    for name, target in (
        ("full_over_plain", 1.02), ("lean_over_plain", bound), ("lean_pass_over_plain", None),
        ("pass_fraction", None), ("dead_fraction", None), ("full_memory", 1.02),
        ("lean_memory", 1.02),
    ):  # fmt: skip
        told = "" if target is None else f"{target:.3f}"
        print(f"{name:<44}{figures[name]:>10.3f}{told:>10}")
    print(f"{'worst difference of a tensor (relative norm)':<44}{worst:>10.1e}{1e-5:>10.0e}")
    print(json.dumps({"pairs": len(pairs), **figures, "lean_bound": bound, "worst": worst}))


if __name__ == "__main__":
    main()
