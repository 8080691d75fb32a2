"""The catalogue: each entry tampers with a sound study, and names the check, file and line that must tell."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from study_builder import write_tensors
from tampering import Row, chain, edit_json, edit_row, edit_rows, read_lines

from ahalab.store.fingerprint import ADAPTER_CONFIG, ADAPTER_WEIGHTS
from ahalab.store.rows import journal_path

RUN = "arms/historical/seed-1"
OTHER = "arms/additive_format/seed-1"
ROLLOUTS = f"{RUN}/rollouts.jsonl"
RANDOM = "arms/random/seed-2/rollouts.jsonl"
STEPS = f"{RUN}/steps.jsonl"
ANSWERS = f"{RUN}/answers.jsonl"
BASE = "base/answers.jsonl"
COMPARISON = "analysis/comparison.json"
CHANGED = "analysis/changed_responses.json"
Tamper = Callable[[Path], None]


@dataclass(frozen=True, slots=True)
class Mutation:
    """One way to tamper, and who must notice."""

    name: str
    tamper: Tamper
    check: str
    file: str
    line: int | None = None


def row(file: str, line: int, **fields: Any) -> Tamper:
    """Change fields of one row."""
    return lambda root: edit_row(root / file, line, **fields)


def rows(file: str, edit: Callable[[list[Row]], list[Row] | None]) -> Tamper:
    """Change a row file as a whole."""
    return lambda root: edit_rows(root / file, edit)


def record(file: str, *path: str | int, to: Any) -> Tamper:
    """Set one field of a single-record file."""

    def edit(tree: Any) -> None:
        for step in path[:-1]:
            tree = tree[step]
        tree[path[-1]] = to(tree[path[-1]]) if callable(to) else to

    return lambda root: edit_json(root / file, edit)


def text(file: str, old: str, new: str) -> Tamper:
    """Replace the first occurrence of a text."""

    def tamper(root: Path) -> None:
        content = (root / file).read_text(encoding="utf-8")
        assert old in content
        (root / file).write_text(content.replace(old, new, 1), encoding="utf-8")

    return tamper


def raw(file: str, line: int, old: bytes, new: bytes) -> Tamper:
    """Replace bytes within one line."""

    def tamper(root: Path) -> None:
        lines = read_lines(root / file)
        assert old in lines[line - 1]
        lines[line - 1] = lines[line - 1].replace(old, new, 1)
        (root / file).write_bytes(b"".join(lines))

    return tamper


def journal(file: str, edit: Callable[[list[Row]], list[Row] | None], *, chained: bool = True) -> Tamper:
    """Change the journal of a row file, with the chain mended or not."""

    def tamper(root: Path) -> None:
        path = journal_path(root / file)
        entries = [json.loads(line) for line in read_lines(path)]
        changed = edit(entries)
        entries = entries if changed is None else changed
        if chained:
            chain(path, entries)
        else:
            path.write_bytes(b"".join(json.dumps(e, separators=(",", ":")).encode() + b"\n" for e in entries))

    return tamper


def flip(file: str) -> Tamper:
    """Flip the lowest bit of a byte in the middle."""

    def tamper(root: Path) -> None:
        payload = bytearray((root / file).read_bytes())
        payload[len(payload) // 2] ^= 1
        (root / file).write_bytes(payload)

    return tamper


def _swap(rows_: list[Row]) -> None:
    rows_[2], rows_[3] = rows_[3], rows_[2]


def _symlink(root: Path) -> None:
    moved = root.parent / "elsewhere.jsonl"
    shutil.move(root / ROLLOUTS, moved)
    (root / ROLLOUTS).symlink_to(moved)


def _manifest_entry(root: Path, **fields: Any) -> None:
    def edit(tree: Row) -> None:
        tree["evidence"].append({**tree["evidence"][0], **fields})

    edit_json(root / "manifest.json", edit)


def _swap_adapters(root: Path) -> None:
    ours, theirs = root / RUN / "adapter", root / OTHER / "adapter"
    ours.rename(root / "spare")
    theirs.rename(ours)
    (root / "spare").rename(theirs)


def _swap_runs(root: Path) -> None:
    (root / RUN).rename(root / "spare")
    (root / OTHER).rename(root / RUN)
    (root / "spare").rename(root / OTHER)


def _tensors(root: Path, change: Callable[[np.ndarray[Any, Any]], None]) -> None:
    stem = "base_model.model.layers.0.self_attn.q_proj"
    values = {f"{stem}.lora_A.weight": np.ones((2, 6), "<f4"), f"{stem}.lora_B.weight": np.ones((6, 2), "<f4")}
    change(values[f"{stem}.lora_B.weight"])
    write_tensors(root / RUN / "adapter" / ADAPTER_WEIGHTS, values)


def _zeros(weights: np.ndarray[Any, Any]) -> None:
    weights[:] = 0


def _nan(weights: np.ndarray[Any, Any]) -> None:
    weights[0, 0] = np.nan


def _remove(*names: str) -> Tamper:
    def tamper(root: Path) -> None:
        for name in names:
            path = root / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    return tamper


def _shift(rows_: list[Row]) -> None:
    ids = [r["prompt_id"] for r in rows_]
    for entry, prompt in zip(rows_, ids[1:] + ids[:1], strict=True):
        entry["prompt_id"] = prompt


def _drop_last_batch(entries: list[Row]) -> list[Row]:
    last = max(i for i, e in enumerate(entries) if e["kind"] == "batch")
    return entries[:last] + entries[last + 1 :]


def _erase_attempt(entries: list[Row]) -> list[Row]:
    last = max(i for i, e in enumerate(entries) if e["kind"] == "attempt")
    return entries[:last] + entries[last + 1 :]


def _half(value: float) -> float:
    return value / 2


def _torn(root: Path) -> None:
    path = root / STEPS
    path.write_bytes(path.read_bytes() + b'{"schema":"step/1","st')


# Left as they are: digests tell.
PLAIN = [
    Mutation("a byte of a row file is flipped", flip(ROLLOUTS), "file.hash", ROLLOUTS),
    Mutation("a byte of a row file is flipped, seen by the chain", flip(ROLLOUTS), "chain", ROLLOUTS, 9),
    Mutation("a byte of the adapter is flipped", flip(f"{RUN}/adapter/{ADAPTER_WEIGHTS}"), "file.hash",
             f"{RUN}/adapter/{ADAPTER_WEIGHTS}"),
    Mutation("a byte of the report is flipped", flip("report.html"), "file.hash", "report.html"),
    Mutation("a file is added", lambda r: (r / "more.txt").write_text("x"), "file.extra", "more.txt"),
    Mutation("a file is removed", _remove(f"{RUN}/timings.jsonl"), "file.missing", f"{RUN}/timings.jsonl"),
    Mutation("a file is renamed", lambda r: (r / STEPS).rename(r / RUN / "old.jsonl"), "file.path", STEPS),
    Mutation("a row file becomes a link to the same content", _symlink, "file.type", ROLLOUTS),
    Mutation("a file becomes a pipe", lambda r: os.mkfifo(r / "pipe"), "file.type", "pipe"),
    Mutation("the manifest leaves the folder", lambda r: _manifest_entry(r, path="../x"), "path.safe",
             "manifest.json"),
    Mutation("a manifest entry stands twice", _manifest_entry, "manifest.unique", "manifest.json"),
    Mutation("an ignore list is added", lambda r: edit_json(r / "manifest.json", lambda t: t.update(ignore=["x"])),
             "manifest.closed", "manifest.json"),
    Mutation("an unknown field is added", lambda r: edit_json(r / "manifest.json", lambda t: t.update(by="me")),
             "manifest.schema", "manifest.json"),
    Mutation("the root is edited", record("manifest.json", "root", to="sha256:" + "0" * 64), "root",
             "manifest.json"),
    Mutation("a row is deleted", rows(ROLLOUTS, lambda x: x[:4] + x[5:]), "chain", ROLLOUTS, 1),
    Mutation("rows are reordered", rows(ROLLOUTS, _swap), "chain", ROLLOUTS, 1),
    Mutation("a row is appended after the seal", rows(ROLLOUTS, lambda x: [*x, x[-1]]), "seal", ROLLOUTS, 33),
    Mutation("a torn tail is called complete", _torn, "seal", STEPS, 5),
    Mutation("a journal is removed", _remove(f"{RUN}/rollouts.journal.jsonl"), "chain",
             f"{RUN}/rollouts.journal.jsonl"),
    Mutation("a line of a journal is removed", journal(ROLLOUTS, lambda e: e[:2] + e[3:], chained=False), "chain",
             f"{RUN}/rollouts.journal.jsonl", 3),
]  # fmt: skip

# Journals and manifest are mended afterwards: only what is recomputed tells.
RESEALED = [
    Mutation("a row is doubled", rows(ROLLOUTS, lambda x: [*x, x[-1]]), "row.unique", ROLLOUTS, 33),
    Mutation("a row is deleted, all digests mended", rows(ROLLOUTS, lambda x: x[:-1]), "cover", ROLLOUTS),
    Mutation("a row is deleted in the middle", rows(ROLLOUTS, lambda x: x[:4] + x[5:]), "cover", ROLLOUTS, 5),
    Mutation("an answer is doubled", rows(ANSWERS, lambda x: [*x, x[-1]]), "row.unique", ANSWERS, 25),
    Mutation("a question is dropped from the answers", rows(ANSWERS, lambda x: x[:-1]), "cover", ANSWERS),
    Mutation("a key stands twice in a row", raw(ROLLOUTS, 3, b'"sample":2', b'"sample":1,"sample":2'),
             "json.strict", ROLLOUTS, 3),
    Mutation("a reward is NaN", raw(ROLLOUTS, 2, b'"reward":', b'"reward":NaN,"was":'), "json.finite",
             ROLLOUTS, 2),
    Mutation("a sample is true", raw(ROLLOUTS, 2, b'"sample":1', b'"sample":true'), "schema.type", ROLLOUTS, 2),
    Mutation("a field is unknown", row(ROLLOUTS, 2, score=1), "schema.type", ROLLOUTS, 2),
    Mutation("a reward is raised", row(ROLLOUTS, 1, reward=7.0), "regrade", ROLLOUTS, 1),
    Mutation("a reward is not the sum of its components", row(ROLLOUTS, 1, reward=7.0), "reward.sum", ROLLOUTS, 1),
    Mutation("a component says that it timed out", row(ROLLOUTS, 1, components={"historical_correct":
             {"value": 0.0, "status": "timeout"}}), "grade.status", ROLLOUTS, 1),
    Mutation("a coin of the control arm is turned", rows(RANDOM, lambda x: x[0]["components"]["random"].update(
             value=1.0 - x[0]["components"]["random"]["value"])), "grade.status", RANDOM, 1),
    Mutation("a completion is edited", row(ROLLOUTS, 2, completion="#### 1000000"), "extract", ROLLOUTS, 2),
    Mutation("an outcome of training is raised", row(ROLLOUTS, 1, strict="error"), "regrade", ROLLOUTS, 1),
    Mutation("the training parser's outcome is edited", row(ROLLOUTS, 1, historical="error"), "regrade",
             ROLLOUTS, 1),
    Mutation("reflection markers are invented", row(ROLLOUTS, 1, reflection=["aha"]), "regrade", ROLLOUTS, 1),
    Mutation("an outcome of the evaluation is edited", row(ANSWERS, 4, strict="error"), "regrade", ANSWERS, 4),
    Mutation("an answer is edited", row(ANSWERS, 4, completion="#### 1000000"), "extract", ANSWERS, 4),
    Mutation("an extracted answer is edited", row(ANSWERS, 4, extracted="77"), "extract", ANSWERS, 4),
    Mutation("a rule is edited", row(ANSWERS, 4, rule="guess"), "extract", ANSWERS, 4),
    Mutation("an advantage is edited", row(ROLLOUTS, 3, advantage=2.5), "advantage", ROLLOUTS, 3),
    Mutation("a completion is called cut", row(ROLLOUTS, 1, completion_ids=[5, 2], finish="length"), "finish",
             ROLLOUTS, 1),
    Mutation("a cut answer is called finished", row(ANSWERS, 1, completion_ids=[5, 6], finish="eos"), "finish",
             ANSWERS, 1),
    Mutation("ids go on after the end token", row(ANSWERS, 1, completion_ids=[2, 6, 2]), "finish", ANSWERS, 1),
    Mutation("an answer is longer than allowed", row(ANSWERS, 1, completion_ids=[9] * 20), "tokens", ANSWERS, 1),
    Mutation("token ids are dropped", row(ROLLOUTS, 1, completion_ids=[2]), "tokens", STEPS, 1),
    Mutation("a count of tokens is edited", row(STEPS, 2, tokens=1), "tokens", STEPS, 2),
    Mutation("a prompt's count of tokens is edited", row("prompts/train.jsonl", 2, prompt_tokens=4), "tokens",
             "prompts/train.jsonl", 2),
    Mutation("a figure of a step is edited", row(STEPS, 2, reward_mean=0.9), "steps", STEPS, 2),
    Mutation("a step is left out", rows(STEPS, lambda x: x[:1] + x[2:]), "steps", STEPS, 2),
    Mutation("a run stopped early", rows(STEPS, lambda x: x[:-1]), "plan.n", STEPS),
    Mutation("a summary is edited", record(f"{RUN}/diagnostics.json", "reward", "last", to=0.99), "diagnostics",
             f"{RUN}/diagnostics.json"),
    Mutation("an alarm is silenced", record(f"{RUN}/run.json", "alarms", to=[]), "diagnostics", f"{RUN}/run.json"),
    Mutation("a gold answer is edited", row("prompts/eval.jsonl", 3, gold="1"), "dataset.hash",
             "prompts/eval.jsonl", 3),
    Mutation("a question is edited", row("prompts/train.jsonl", 1, question="1 + 1 = ?"), "dataset.source",
             "prompts/train.jsonl", 1),
    Mutation("a question is dropped from the prompts", rows("prompts/eval.jsonl", lambda x: x[:-1]), "cover",
             "prompts/eval.jsonl"),
    Mutation("a prompt stands twice", rows("prompts/train.jsonl", lambda x: [*x, x[-1]]), "row.unique",
             "prompts/train.jsonl", 7),
    Mutation("a training question is evaluated", lambda r: edit_row(r / "prompts/eval.jsonl", 2, question=json.loads(
             read_lines(r / "prompts/train.jsonl")[0])["question"]), "split", "prompts/eval.jsonl", 2),
    Mutation("a prompt is rendered otherwise", row("prompts/eval.jsonl", 1, prompt_ids=[5] * 5, prompt_tokens=5),
             "prompt.hash", "base/answers.protocol.json"),
    Mutation("the seeds of the plan change", text("study.yaml", "- 2\n", "- 3\n"), "plan.match", "manifest.json"),
    Mutation("the margin of the plan changes", text("study.yaml", "margin_points: 2.0", "margin_points: 90.0"),
             "plan.match", COMPARISON),
    Mutation("the plan is not readable", text("study.yaml", "seeds:", "seeds: ["), "plan.match", "study.yaml", 29),
    Mutation("a run claims another seed", record(f"{RUN}/run.json", "seed", to=2), "plan.match", f"{RUN}/run.json"),
    Mutation("an arm was trained hotter", record(f"{RUN}/run.json", "effective_grpo", "temperature", to=1.3),
             "arm.config", f"{RUN}/run.json"),
    Mutation("an arm was trained on other software", record(f"{RUN}/run.json", "versions", "torch", to="9"),
             "arm.config", "arms/historical/seed-2/run.json"),
    Mutation("a run was asked for something else", record(f"{RUN}/run.json", "requested_grpo", "beta", to=0.1),
             "arm.config", f"{RUN}/run.json"),
    Mutation("an arm saw other prompts", rows(f"{OTHER}/rollouts.jsonl", lambda x: [
             r.update(prompt_id=x[4]["prompt_id"]) for r in x[:4]] and None), "arm.order",
             f"{OTHER}/rollouts.jsonl", 1),
    Mutation("a run claims fewer completions", record(f"{RUN}/run.json", "rollouts_written", to=31), "plan.n",
             f"{RUN}/run.json"),
    Mutation("a run is left out", _remove(RUN, f"replay/{RUN}"), "arms.all", ""),
    Mutation("an unplanned run is added", lambda r: shutil.copytree(r / RUN, r / "arms/historical/seed-9"),
             "arms.all", "arms/historical/seed-9"),
    Mutation("an attempt is erased", journal(STEPS, _erase_attempt), "attempts", f"{RUN}/run.json"),
    Mutation("attempts are not numbered", journal(STEPS, lambda e: e[1].update(number=3)), "attempts",
             f"{RUN}/steps.journal.jsonl", 2),
    Mutation("rows of another run are spliced in", lambda r: [shutil.copy(r / OTHER / n, r / RUN / n) for n in (
             "rollouts.jsonl", "rollouts.journal.jsonl")] and None, "chain.run", f"{RUN}/rollouts.journal.jsonl", 1),
    Mutation("adapters are swapped", _swap_adapters, "adapter.fp", f"{RUN}/adapter"),
    Mutation("labels of two arms are exchanged", _swap_runs, "adapter.arm", f"{RUN}/run.json"),
    Mutation("components of a run are edited", record(f"{RUN}/run.json", "components", to={"length": 1.0}),
             "adapter.arm", f"{RUN}/run.json"),
    Mutation("alpha of an adapter is edited", record(f"{RUN}/adapter/{ADAPTER_CONFIG}", "lora_alpha", to=8),
             "adapter.config", f"{RUN}/adapter/{ADAPTER_CONFIG}"),
    Mutation("an adapter names another base", record(f"{RUN}/adapter/{ADAPTER_CONFIG}", "base_model_name_or_path",
             to="gpt2"), "adapter.config", f"{RUN}/adapter/{ADAPTER_CONFIG}"),
    Mutation("an adapter holds NaN", lambda r: _tensors(r, _nan), "tensor.finite",
             f"{RUN}/adapter/{ADAPTER_WEIGHTS}"),
    Mutation("an adapter is all zeros", lambda r: _tensors(r, _zeros), "adapter.effect",
             f"{RUN}/adapter/{ADAPTER_WEIGHTS}"),
    Mutation("the digest of an adapter is edited", record(f"{RUN}/run.json", "adapter_digest", to="sha256:0"),
             "adapter.fp", f"{RUN}/adapter"),
    Mutation("a run was made on another base", record(f"{OTHER}/run.json", "base_digest", to="sha256:0"),
             "base.pin", f"{OTHER}/run.json"),
    Mutation("a side answered hotter", record(f"{RUN}/answers.protocol.json", "generation", "temperature", to=0.7),
             "protocol", f"{RUN}/answers.protocol.json"),
    Mutation("a side answered in other batches", record(f"{RUN}/answers.protocol.json", "batch_size", to=9),
             "protocol", f"{RUN}/answers.protocol.json"),
    Mutation("a side answered on another device", record("base/floor.protocol.json", "device", to="cuda, 1"),
             "protocol", "base/floor.protocol.json"),
    Mutation("pairs are shifted by one", rows(ANSWERS, _shift), "pair.key", ANSWERS, 1),
    Mutation("answers are called the base's", row(ANSWERS, 5, side="base"), "pair.key", ANSWERS, 5),
    Mutation("a replay differs", row(f"replay/{ANSWERS}", 6, completion="no"), "replay", f"replay/{ANSWERS}", 6),
    Mutation("p is halved", record(COMPARISON, "adapters", 0, "p_value", to=_half), "stat.recompute", COMPARISON),
    Mutation("the exact p is halved", record(COMPARISON, "adapters", 0, "p_exact", to=_half), "stat.recompute",
             COMPARISON),
    Mutation("an interval is narrowed", record(COMPARISON, "arms", 0, "interval_points", 0, to=0.5),
             "stat.recompute", COMPARISON),
    Mutation("Holm is left out", record(COMPARISON, "arms", 0, "p_holm", to=0.01), "stat.recompute", COMPARISON),
    Mutation("a sign is turned", record(COMPARISON, "arms", 2, "difference_points", to=lambda v: -v),
             "stat.recompute", COMPARISON),
    Mutation("a verdict is improved", record(COMPARISON, "arms", 0, "verdict", to="improved"), "stat.recompute",
             COMPARISON),
    Mutation("a denominator is halved", record(COMPARISON, "adapters", 0, "n", to=12), "stat.n", COMPARISON),
    Mutation("gained pairs are added", record(COMPARISON, "adapters", 1, "gained", to=20), "stat.n", COMPARISON),
    Mutation("the noise floor is lowered", record(COMPARISON, "floor", "n", to=9), "stat.n", COMPARISON),
    Mutation("counts of outcomes are edited", record(COMPARISON, "rates", 0, "strict", "correct", to=23), "stat.n",
             COMPARISON),
    Mutation("an interval is said to cover seeds", record(COMPARISON, "arms", 0, "interval_covers", to="nothing"),
             "stat.method", COMPARISON),
    Mutation("a sentence is edited", record(COMPARISON, "arms", 0, "sentence", to=lambda s: s.replace("+", "+9")),
             "stat.sentence", COMPARISON),
    Mutation("a sentence tells another verdict", record(COMPARISON, "adapters", 0, "sentence", to=lambda s: s.replace(
             "shows no evidence of a change from", "is better than")), "stat.sentence", COMPARISON),
    Mutation("a planned comparison is absent", record(COMPARISON, "arms", to=lambda a: a[1:]), "outcome.missing",
             COMPARISON),
    Mutation("the noise floor is left out", record(COMPARISON, "floor", to=None), "outcome.missing", COMPARISON),
    Mutation("another metric is called primary", record(COMPARISON, "primary", to="lenient"), "outcome.added",
             COMPARISON),
    Mutation("an exploratory comparison is called primary", record(COMPARISON, "arms", -1, "primary", to=True),
             "outcome.added", COMPARISON),
    Mutation("a missing cell is invented", record(COMPARISON, "missing", to=["x"]), "outcome.missing", COMPARISON),
    Mutation("a lost answer is left out", record(CHANGED, "changed", to=lambda c: c[1:]), "changed", CHANGED),
    Mutation("a lost answer is called gained", record(CHANGED, "changed", 0, "change", to=lambda c: "lost" if c ==
             "gained" else "gained"), "changed", CHANGED),
    Mutation("a quoted answer stands in no log", record(CHANGED, "changed", 0, "base_completion", to="#### 0"),
             "report.quote", CHANGED),
    Mutation("a cell of the ablation is edited", record("analysis/ablation.json", "cells", 0, "own_score_adapter",
             to=0.99), "ablation", "analysis/ablation.json"),
    Mutation("the spread over seeds is edited", record("analysis/ablation.json", "arms", 0,
             "strict_seed_spread_points", to=0.1), "ablation", "analysis/ablation.json"),
    Mutation("a claim is edited", record("claims.json", "claims", 4, "value", to=31.0), "claims", "claims.json"),
    Mutation("a claim is left out", record("claims.json", "claims", to=lambda c: c[1:]), "claims", "claims.json"),
    Mutation("a claim rests on other files", record("claims.json", "claims", 0, "inputs", to=["x"]), "claims",
             "claims.json"),
    Mutation("the report binds another value", text("report.html", '"value":"no evidence"', '"value":"improved"'),
             "report.bind", "report.html"),
    Mutation("the report prints another number", text("report.html", "+29.2</td>", "+39.2</td>"), "report.bind",
             "report.html"),
    Mutation("the report is stale", text("report.html", '"root":"sha256:', '"root":"sha256:0'), "report.root",
             "report.html"),
    Mutation("the report is not bound at all", text("report.html", 'id="ahalab-claims"', 'id="x"'), "report.bind",
             "report.html"),
    Mutation("another plan is named by the analysis", record(COMPARISON, "plan_digest", to="sha256:0"), "plan.match",
             COMPARISON),
]  # fmt: skip

# The owner analyses, reports and seals again with the tool's own means: only the rows themselves tell.
REBUILT = [
    Mutation("an outcome is raised, all rebuilt", row(ANSWERS, 4, strict="error"), "regrade", ANSWERS, 4),
    Mutation("an answer is edited, all rebuilt", row(ANSWERS, 4, completion="#### 1000000"), "extract", ANSWERS, 4),
    Mutation("a gold is edited, all rebuilt", row("prompts/eval.jsonl", 3, gold="1"), "dataset.hash",
             "prompts/eval.jsonl", 3),
    Mutation("a component is edited, all rebuilt", row(ROLLOUTS, 1, components={"historical_correct":
             {"value": 0.5, "status": "ok"}}, reward=0.5), "grade.status", ROLLOUTS, 1),
    Mutation("an advantage is edited, all rebuilt", row(ROLLOUTS, 3, advantage=2.5), "advantage", ROLLOUTS, 3),
    Mutation("the labels of arms are exchanged, all rebuilt", _swap_runs, "adapter.arm", f"{RUN}/run.json"),
    Mutation("an arm is left out, all rebuilt", _remove(RUN, f"replay/{RUN}"), "arms.all", ""),
]  # fmt: skip
