"""A study that trains, made up: as many rollouts as asked for, over 4 arms x 5 seeds.

Rows and journals are the real ones, committed batch by batch; one run is sealed and compressed.
The texts are drawn from a few hundred words, so that a word is found often or seldom.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from ahalab.plan.cells import Cell, training_cells
from ahalab.plan.load import parse_plan
from ahalab.records.base import digest, encode
from ahalab.records.journal import JournalBatch, JournalHead, JournalSeal
from ahalab.records.plan import Plan
from ahalab.records.prompt import Prompt
from ahalab.records.rollout import ComponentRow, Rollout
from ahalab.records.step import Step
from ahalab.records.terms import Outcome, Split
from ahalab.records.validation import ValidationAnswer
from ahalab.store.journal import JournalWriter, read_journal
from ahalab.store.layout import StudyPaths
from ahalab.store.reading import journal_path
from ahalab.store.rows import RowFile, compress_sealed, write_rows

ARMS = {"historical": "historical_correct", "correctness": "correct_strict",
        "format_only": "format", "random": "random"}  # fmt: skip
SEEDS = 5
GROUP = 8
BATCH = 512  # rollouts of a step
PROMPTS = 2_000
VALIDATION_PROMPTS = 500
PLAN = """\
name: {name}
model: {{id: organism}}
task: {{name: arithmetic, train_prompts: {prompts}, eval_prompts: 16}}
arms: [{arms}]
control: random
seeds: [{seeds}]
grpo: {{max_steps: {steps}, num_generations: 8, per_device_train_batch_size: 512}}
lora: {{r: 4}}
evaluation: {{max_new_tokens: 256}}
{validation}"""
SEEN = Callable[[int], None]


def make_study(
    results: Path, rollouts: int, answers: int = 0, told: SEEN = lambda _: None
) -> StudyPaths:
    """Write the study below a folder of results.

    Args:
        results: Where studies lie.
        rollouts: How many at least; a whole number of batches in each run.
        answers: Validation answers at least; a whole number of checkpoints of each run.
        told: Told how many are written, after each run.
    """
    cells = len(ARMS) * SEEDS
    steps = -(-rollouts // (BATCH * cells))
    text = PLAN.format(
        name="million", prompts=PROMPTS, arms=", ".join(ARMS), steps=steps,
        seeds=", ".join(map(str, range(SEEDS))),
        validation=f"validation: {{prompts: {VALIDATION_PROMPTS}}}\n" if answers else "",
    )  # fmt: skip
    plan = parse_plan(text, "million.yaml")
    paths = StudyPaths(results / plan.name)
    paths.root.mkdir(parents=True)
    paths.plan.write_text(text, encoding="utf-8")
    checkpoints = -(-answers // (VALIDATION_PROMPTS * cells))
    splits: list[tuple[Split, int]] = [("train", PROMPTS)]
    splits += [("validation", VALIDATION_PROMPTS)] if answers else []
    for split, count in splits:
        file = _file(paths, plan, paths.prompts(split), "prompt/1", "prompts")
        write_rows(file, _prompts(split, count))
    words = _words()
    for at, cell in enumerate(training_cells(plan)):
        rng = np.random.default_rng(at)
        run = paths.run(str(cell.arm), int(cell.seed or 0))
        batches = (_batch(cell, step, rng, words) for step in range(steps))
        _write(_file(paths, plan, run.rollouts, "rollout/1", run.name), batches, seal=at == 0)
        rows = [[_step(cell, step, rng)] for step in range(1, steps + 1)]
        _write(_file(paths, plan, run.steps, "step/1", run.name), iter(rows), seal=at == 0)
        if answers:
            committed = (_checkpoint(step, rng, words) for step in range(1, checkpoints + 1))
            file = _file(paths, plan, run.validation, "validation/1", run.name)
            _write(file, committed, seal=at == 0)
        told((at + 1) * steps * BATCH)
    return paths


def _file(paths: StudyPaths, plan: Plan, path: Path, schema: str, run: str) -> RowFile:
    return RowFile(path, schema, digest(plan), run, paths.broken)


def _write(file: RowFile, batches: Iterator[list], *, seal: bool) -> None:
    """Commit batches as `RowWriter` does, without reading each row back."""
    file.path.parent.mkdir(parents=True, exist_ok=True)
    journal = JournalWriter(journal_path(file.path), read_journal(journal_path(file.path)))
    journal.append(
        JournalHead(rows_schema=file.rows_schema, plan_digest=file.plan_digest, run=file.run,
                    previous="")
    )  # fmt: skip
    whole, end = hashlib.sha256(), 0
    with file.path.open("wb") as rows:
        for sequence, batch in enumerate(batches):
            payload = b"".join(encode(row) + b"\n" for row in batch)
            whole.update(payload)
            rows.write(payload)
            rows.flush()
            journal.append(
                JournalBatch(
                    sequence=sequence, rows=len(batch), start=end, end=end + len(payload),
                    sha256=hashlib.sha256(payload).hexdigest(), previous="",
                )
            )  # fmt: skip
            end += len(payload)
    if seal:
        journal.append(
            JournalSeal(rows=journal.state.rows, bytes=end, sha256=whole.hexdigest(), previous="")
        )
    journal.close()
    if seal:
        compress_sealed(file.path)


def _prompts(split: Split, count: int) -> list[Prompt]:
    return [
        Prompt(
            prompt_id=_id(number), question=f"Zoe has {number} jars of 9 coins. How many coins?",
            gold=str(9 * number), source="made up", split=split, prompt_ids=(1, 2, 3),
            prompt_tokens=3,
        )
        for number in range(count)
    ]  # fmt: skip


def _id(number: int) -> str:
    return f"{number:05d}-{number:012x}"


def _words() -> list[str]:
    """Return words, the first ones much more often than the last: 1/rank, as in a language."""
    syllables = [a + b for a in "bdfgklmnprst" for b in "aeiou"]
    return [one + other for one in syllables[:20] for other in syllables[:20]]


def _texts(count: int, rng: np.random.Generator, words: list[str]) -> list[str]:
    rank = 1 / np.arange(1, len(words) + 1)
    drawn = rng.choice(len(words), (count, 60), p=rank / rank.sum())
    lengths = rng.integers(10, 60, count)
    return [" ".join(words[w] for w in row[:n]) for row, n in zip(drawn, lengths, strict=True)]


def _checkpoint(step: int, rng: np.random.Generator, words: list[str]) -> list[ValidationAnswer]:
    """Return the answers of one checkpoint to every validation question."""
    texts = _texts(VALIDATION_PROMPTS, rng, words)
    tokens = rng.integers(20, 257, VALIDATION_PROMPTS)
    right = rng.random(VALIDATION_PROMPTS) < 0.2 + 0.3 * step / (step + 50)
    rows = []
    for at, text in enumerate(texts):
        outcome: Outcome = "correct" if right[at] else "wrong"
        rows.append(
            ValidationAnswer(
                step=step, prompt_id=_id(at), completion=f"{text}\n#### {at}",
                completion_ids=tuple(range(int(tokens[at]))), finish="eos", extracted=str(at),
                rule="hashes", status="ok", strict=outcome, lenient=outcome,
            )
        )  # fmt: skip
    return rows


def _batch(cell: Cell, step: int, rng: np.random.Generator, words: list[str]) -> list[Rollout]:
    texts = _texts(BATCH, rng, words)
    tokens = rng.integers(20, 257, BATCH)
    right = rng.random(BATCH) < 0.2 + 0.3 * step / (step + 50)
    parsed = rng.random(BATCH) < 0.7
    prompts = rng.integers(0, PROMPTS, BATCH // GROUP)
    rewards = right.astype(float).reshape(-1, GROUP)
    centred = rewards - rewards.mean(1, keepdims=True)
    advantages = (centred / (rewards.std(1, keepdims=True) + 1e-4)).ravel()
    name = ARMS[str(cell.arm)]
    return [
        _rollout(
            step, at, _id(int(prompts[at // GROUP])),
            texts[at],
            (int(tokens[at]), bool(right[at]), bool(parsed[at]), float(advantages[at]), name),
        )
        for at in range(BATCH)
    ]  # fmt: skip


def _rollout(
    step: int, at: int, prompt: str, text: str, drawn: tuple[int, bool, bool, float, str]
) -> Rollout:
    tokens, right, parsed, advantage, name = drawn
    cut = tokens == 256
    outcome = "truncated" if cut else "correct" if right else "wrong"
    answer = str(at) if parsed else None
    return Rollout(
        step=step, rank=0, group=at // GROUP, prompt_id=prompt, sample=at % GROUP,
        completion=f"{text}\n#### {at}" if parsed else text, completion_ids=tuple(range(tokens)),
        finish="length" if cut else "eos",
        components={name: ComponentRow(value=float(right), status="ok")},
        reward=float(right), advantage=advantage, historical="correct" if right else "wrong",
        strict=outcome if parsed or cut else "unparsed", lenient=outcome, status="ok",
        extracted=answer, formatted=parsed, repetition=0.0, reflection=(),
    )  # fmt: skip


def _step(cell: Cell, step: int, rng: np.random.Generator) -> Step:
    figure = float(rng.random())
    names = ("loss", "grad_norm", "learning_rate", "entropy", "reward_mean", "reward_std",
             "zero_variance_fraction", "strict_fraction", "lenient_fraction",
             "historical_fraction", "truncated_fraction", "length_mean_tokens")  # fmt: skip
    values: dict[str, object] = dict.fromkeys(
        name for name in Step.__struct_fields__ if name not in ("schema", "step", "components")
    )
    values |= dict.fromkeys(names, figure)
    return Step(step=step, components={ARMS[str(cell.arm)]: figure}, **values)  # type: ignore[arg-type]
