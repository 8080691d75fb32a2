"""Base and adapter answering 64 GSM8K questions: ours, lm-eval run twice, bare `generate`.

Run as `python -m benchmarks.evaluation --model FOLDER [--rounds 3]` (tools/make_smollm2.py makes
a folder; lm-eval 0.4.13 is found on PYTHONPATH or left out). Greedy, 128 tokens, 8 questions a
side at once, two threads. Each is a process of its own, start and loading of the model and all,
one after the other in one session. The adapter comes from one real training step.

`--organism` measures something else: base, floor aside, and 12 adapters on 500 questions each.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ahalab.store.layout import StudyPaths
from ahalab.tasks.prepare import read_prompts
from benchmarks import at_least_one
from benchmarks.agreement import shared_data

ASK = "{question}\nEnd with a line #### N, where N is the answer as a number."
GSM8K = """\
name: evaluation
model: {id: %s, threads: 2}
task:
  name: gsm8k
  path: %s
  train_prompts: 2
  eval_prompts: %d
  template: "{question}\\nEnd with a line #### N, where N is the answer as a number."
arms: [random]
control: random
seeds: [1]
grpo: {max_steps: 1, num_generations: 2, per_device_train_batch_size: 4, max_completion_length: 8,
       learning_rate: 1e-3}
lora: {r: 16}
evaluation: {max_new_tokens: %d, batch_size: %d, floor_batch_size: 6, cells_per_batch: 2}
"""
ORGANISM = """\
name: evaluation
model: {id: organism, threads: 1}
task: {name: arithmetic, train_prompts: 16, eval_prompts: 500}
arms: [historical, correctness, format_only, random]
control: random
seeds: [1, 2, 3]
grpo: {max_steps: 1, num_generations: 4, per_device_train_batch_size: 16, max_completion_length: 16}
lora: {r: 16}
evaluation: {max_new_tokens: 56, batch_size: 64}
"""
TASK = """\
task: bench_gsm8k
dataset_path: json
dataset_kwargs:
  data_files: {test: %s}
test_split: test
output_type: generate_until
doc_to_text: "{{prompt}}"
doc_to_target: "{{gold}}"
generation_kwargs: {until: ["<|im_end|>"], do_sample: false, max_gen_toks: %d}
metric_list: [{metric: exact_match}]
"""
BARE = """
import json, sys, torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig
model, adapter, file, tokens, size = sys.argv[1:4] + [int(n) for n in sys.argv[4:]]
torch.set_num_threads(2)
tokenizer = AutoTokenizer.from_pretrained(model, padding_side="left")
base = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32).eval()
prompts = [json.loads(line)["ids"] for line in open(file)]
generation = GenerationConfig(
    max_new_tokens=tokens, do_sample=False, eos_token_id=tokenizer.eos_token_id,
    pad_token_id=tokenizer.pad_token_id,
)
def answer(model):
    for at in range(0, len(prompts), size):
        batch = tokenizer.pad({"input_ids": prompts[at:at + size]}, return_tensors="pt")
        model.generate(**batch, generation_config=generation)
with torch.inference_mode():
    answer(base)
    answer(PeftModel.from_pretrained(base, adapter).eval())
"""


@dataclass(frozen=True, slots=True)
class Took:
    """What one way of answering took."""

    wall_seconds: float
    cpu_seconds: float  # user and system, of all its processes


def timed(*commands: list[str], folder: Path) -> Took:
    """Run commands one after the other and take the time."""
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    for command in commands:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{command[:6]} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Took(time.monotonic() - began, cpu)


def ahalab(*arguments: object) -> list[str]:
    """Return one of our command lines."""
    return [sys.executable, "-m", "ahalab", *map(str, arguments)]


def prepare(plan: str, folder: Path) -> StudyPaths:
    """Train every adapter of a plan, really."""
    file = folder / "study.yaml"
    file.write_text(plan, "utf-8")
    paths = StudyPaths(folder / "results" / "evaluation")
    from ahalab.plan.cells import training_cells
    from ahalab.plan.load import load_plan

    for cell in training_cells(load_plan(file)):
        where = ("--out", folder / "results", "--arm", cell.arm, "--seed", cell.seed)
        timed(ahalab("train", file, *where, "--force", "--quiet"), folder=folder)
    return paths


def ours(paths: StudyPaths, cells: list[str]) -> Took:
    """Evaluate from nothing."""
    shutil.rmtree(paths.base_answers().answers.parent, ignore_errors=True)
    for path in paths.root.glob("arms/*/*/answers*"):
        path.unlink()
    options = [part for cell in cells for part in ("--cell", cell)]
    return timed(ahalab("evaluate", paths.root, *options, "--quiet"), folder=paths.root)


def write_inputs(paths: StudyPaths, folder: Path, tokens: int) -> Path:
    """Write the same questions for lm-eval, as messages, and for `generate`, as ids."""
    prompts = sorted(read_prompts(paths, "eval"), key=lambda p: p.prompt_tokens)
    rows = [
        {
            "prompt": ASK.replace("{question}", p.question),
            "gold": p.gold,
            "ids": list(p.prompt_ids),
        }
        for p in prompts
    ]
    file = folder / "questions.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    (folder / "tasks").mkdir()
    (folder / "tasks" / "bench.yaml").write_text(TASK % (file, tokens), "utf-8")
    return file


def lm_eval(folder: Path, model: str, size: int, adapter: Path | None) -> list[str]:
    """Return the command line of one lm-eval run."""
    peft = "" if adapter is None else f",peft={adapter}"
    return [
        sys.executable, "-m", "lm_eval", "run", "--model", "hf", "--model_args",
        f"pretrained={model},dtype=float32{peft}", "--include_path", str(folder / "tasks"),
        "--tasks", "bench_gsm8k", "--device", "cpu", "--batch_size", str(size),
        "--apply_chat_template",
    ]  # fmt: skip


def measure_pair(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Measure base and one adapter, every way, round by round."""
    plan = GSM8K % (
        options.model, shared_data() / "gsm8k_openai", options.prompts, options.tokens,
        options.batch,
    )  # fmt: skip
    paths = prepare(plan, folder)
    adapter = paths.run("random", 1).adapter
    file = write_inputs(paths, folder, options.tokens)
    bare = [
        sys.executable, "-c", BARE, options.model, str(adapter), str(file), str(options.tokens),
        str(options.batch),
    ]  # fmt: skip
    found: dict[str, list[Took]] = {"ours": [], "generate": [], "lm_eval": []}
    with_lm_eval = importlib.util.find_spec("lm_eval") is not None
    for number in range(options.rounds):
        found["ours"].append(ours(paths, ["base", "arms/random/seed-1"]))
        found["generate"].append(timed(bare, folder=folder))
        if with_lm_eval:
            twice = [lm_eval(folder, options.model, options.batch, a) for a in (None, adapter)]
            found["lm_eval"].append(timed(*twice, folder=folder))
        told = ", ".join(f"{k} {v[-1].wall_seconds:.0f} s" for k, v in found.items() if v)
        print(f"round {number + 1}/{options.rounds}: {told}", file=sys.stderr, flush=True)
    return _figures(found, options.rounds)


def _figures(found: dict[str, list[Took]], rounds: int) -> dict[str, Any]:
    figures: dict[str, Any] = {"rounds": rounds}
    for what in ("wall", "cpu"):
        seconds = {
            name: [getattr(took, f"{what}_seconds") for took in runs]
            for name, runs in found.items()
            if runs
        }
        for name, values in seconds.items():
            figures[f"{name}_{what}_seconds"] = round(statistics.median(values), 1)
        for name in seconds.keys() - {"ours"}:
            pairs = zip(seconds["ours"], seconds[name], strict=True)
            figures[f"{what}_over_{name}"] = round(statistics.median(a / b for a, b in pairs), 3)
    return figures


def measure_organism(folder: Path) -> dict[str, Any]:
    """Measure base and 12 adapters on 500 questions each, two processes side by side."""
    paths = prepare(ORGANISM, folder)
    cells = ["base", *sorted(f"arms/{p.parent.name}/{p.name}" for p in paths.root.glob("arms/*/*"))]
    began = time.monotonic()
    running = [
        subprocess.Popen(
            ahalab(
                "evaluate", paths.root, "--quiet",
                *(part for cell in cells[half::2] for part in ("--cell", cell)),
            )
        )
        for half in (0, 1)
    ]  # fmt: skip
    if any(code for code in [process.wait() for process in running]):
        raise SystemExit("an evaluation failed; its message stands above")
    return {"answer_sets": len(cells), "seconds": round(time.monotonic() - began, 1), "target": 60}


def main(arguments: list[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--model", help="folder of a pretrained model")
    parser.add_argument("--organism", action="store_true", help="13 answer sets of 500 questions")
    parser.add_argument("--rounds", type=at_least_one, default=3)
    parser.add_argument("--prompts", type=at_least_one, default=64)
    parser.add_argument("--tokens", type=at_least_one, default=128)
    parser.add_argument("--batch", type=at_least_one, default=8)
    options = parser.parse_args(arguments)
    if bool(options.model) == options.organism:
        parser.error("expected --model FOLDER, or --organism")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        figures = measure_organism(folder) if options.organism else measure_pair(options, folder)
    for key, value in figures.items():
        print(f"{key:<28} {value}")
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
