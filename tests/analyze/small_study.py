"""Writes small studies from strings of outcomes, for analysis, command line and demo.

One letter per question: C correct in the asked format, F correct but not in that format, W wrong,
U no answer, T cut before an answer. The texts are such that the real scorer says the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ahalab.plan.load import dump_plan, parse_plan
from ahalab.records.answer import Answer, Protocol
from ahalab.records.base import digest, digest_bytes, encode_pretty
from ahalab.records.plan import Plan
from ahalab.records.prompt import Prompt
from ahalab.records.terms import Finish, Outcome
from ahalab.statistics.diagnostics import diagnose
from ahalab.store.layout import AnswerPaths, StudyPaths
from ahalab.store.rows import RowFile, write_rows
from ahalab.tasks.questions import Question
from ahalab.tasks.selection import prompt_id

PLAN = """\
name: small
model: {{id: organism}}
task: {{name: arithmetic, train_prompts: 16, eval_prompts: {questions}}}
arms: [{arms}]
control: random
seeds: [{seeds}]
grpo: {{max_steps: 5}}
lora: {{r: 4}}
evaluation: {{max_new_tokens: 16, samples: {samples}, temperature: {temperature}}}
analysis: {{margin_points: {margin}, primary: {primary}}}
"""
GOLD = "7"
# letter: completion, finish, extracted, rule, strict, lenient
LETTERS: dict[str, tuple[str, Finish, str | None, str, Outcome, Outcome]] = {
    "C": ("#### 7", "eos", "7", "hashes", "correct", "correct"),
    "F": ("The answer is 7.", "eos", "7", "statement", "unparsed", "correct"),
    "W": ("#### 8", "eos", "8", "hashes", "wrong", "wrong"),
    "U": ("I do not know.", "eos", None, "none", "unparsed", "unparsed"),
    "T": ("First we take", "length", None, "none", "truncated", "truncated"),
}
Sets = Mapping[tuple[str, int], str | Sequence[str]]


def make_plan(
    adapters: Sequence[tuple[str, int]],
    questions: int,
    samples: int = 1,
    margin: float = 2.0,
    primary: str = "strict",
) -> Plan:
    arms = list(dict.fromkeys([*(arm for arm, _ in adapters), "random"]))
    seeds = sorted({seed for _, seed in adapters})
    text = PLAN.format(
        questions=questions,
        arms=", ".join(arms),
        seeds=", ".join(map(str, seeds)),
        samples=samples,
        temperature=0.0 if samples == 1 else 1.0,
        margin=margin,
        primary=primary,
    )
    return parse_plan(text, "small.yaml")


def make_protocol(plan: Plan, **changes: object) -> Protocol:
    fields: dict[str, object] = {
        "plan_digest": digest(plan),
        "answer_format": "hashes",
        "task": "gsm8k",
        "prompts_digest": digest_bytes(b"prompts"),
        "template_digest": digest_bytes(b"template"),
        "tokenizer_digest": digest_bytes(b"tokenizer"),
        "base_digest": digest_bytes(b"base"),
        "adapter_digest": None,
        "generation": {"do_sample": False, "max_new_tokens": 16},
        "dtype": "float32",
        "device": "cpu, 1 threads",
        "backend": "transformers",
        "decoder": "rows",
        "versions": {"torch": "2.13.0"},
        "batch_size": 64,
        "cells_per_batch": 1,
        "companions": (),
        "limit": None,
        "seed": 0,
        "samples": plan.evaluation.samples,
        "scorer_version": "1",
    }
    return Protocol(**(fields | changes))  # type: ignore[arg-type]


def write_study(
    root: Path,
    base: str | Sequence[str],
    adapters: Sets,
    *,
    floor: str | Sequence[str] | None = None,
    questions: Sequence[str] | None = None,
    margin: float = 2.0,
    primary: str = "strict",
    unfinished: Sequence[tuple[str, int]] = (),
) -> tuple[Plan, StudyPaths]:
    """Write a study whose answers are given as letters, one string per sample.

    Args:
        root: The study's folder.
        base: Letters of the base, a string, or one string per sample.
        adapters: Letters by (arm, seed).
        floor: Letters of the base's second run.
        questions: Texts; different ones by default.
        margin: The plan's margin, in points.
        primary: The plan's primary metric.
        unfinished: Planned cells (arm, seed) left without answers.
    """
    sets = [base] if isinstance(base, str) else list(base)
    count = len(sets[0])
    cells = [*adapters, *unfinished]
    plan = make_plan(cells, count, len(sets), margin, primary)
    paths = StudyPaths(root)
    put(paths.plan, dump_plan(plan).encode())
    texts = questions or [f"What is {n} + 7 - {n}?" for n in range(count)]
    prompts = [make_prompt(n, text) for n, text in enumerate(texts)]
    file = RowFile(paths.prompts("eval"), "prompt/1", digest(plan), "prompts/eval", paths.broken)
    write_rows(file, prompts)
    write_answers(plan, paths, paths.base_answers(), base, make_protocol(plan))
    if floor is not None:
        protocol = make_protocol(plan, batch_size=48)
        write_answers(plan, paths, paths.floor_answers, floor, protocol)
    for (arm, seed), letters in adapters.items():
        protocol = make_protocol(plan, adapter_digest=digest_bytes(f"{arm}{seed}".encode()))
        write_answers(plan, paths, paths.answers(arm, seed), letters, protocol)
        diagnostics = diagnose(arm, seed, [], [], None)
        put(paths.run(arm, seed).diagnostics, encode_pretty(diagnostics))
    return plan, paths


def make_prompt(number: int, text: str) -> Prompt:
    name = prompt_id(number, Question(text, GOLD, "here"))
    return Prompt(
        prompt_id=name,
        question=text,
        gold=GOLD,
        source=f"here:{number}",
        split="eval",
        prompt_ids=(1, 2, 3),
        prompt_tokens=3,
    )


def make_answers(
    paths: StudyPaths, letters: str | Sequence[str], protocol: Protocol
) -> list[Answer]:
    from ahalab.tasks.prepare import read_prompts

    prompts = read_prompts(paths, "eval")
    rows = []
    for sample, line in enumerate([letters] if isinstance(letters, str) else letters):
        for prompt, letter in zip(prompts, line, strict=True):
            text, finish, extracted, rule, strict, lenient = LETTERS[letter]
            rows.append(
                Answer(
                    protocol=digest(protocol),
                    side="base" if protocol.adapter_digest is None else "adapter",
                    prompt_id=prompt.prompt_id,
                    sample=sample,
                    completion=text,
                    completion_ids=tuple(text.encode()),
                    finish=finish,
                    extracted=extracted,
                    rule=rule,
                    status="ok",
                    strict=strict,
                    lenient=lenient,
                )
            )
    return rows


def write_answers(
    plan: Plan,
    paths: StudyPaths,
    target: AnswerPaths,
    letters: str | Sequence[str],
    protocol: Protocol,
) -> None:
    put_answers(plan, paths, target, make_answers(paths, letters, protocol), protocol)


def put_answers(
    plan: Plan, paths: StudyPaths, target: AnswerPaths, rows: list[Answer], protocol: Protocol
) -> None:
    """Write an answer set, in place of one that is there."""
    put(target.protocol, encode_pretty(protocol))
    for old in target.answers.parent.glob(f"{target.answers.stem}.*jsonl*"):
        old.unlink()
    file = RowFile(target.answers, "answer/1", digest(plan), target.name, paths.broken)
    write_rows(file, rows)


def put(path: Path, payload: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(payload)


def pair(gained: int, lost: int, n: int) -> tuple[str, str]:
    """Return base and adapter letters with so many gained and lost of n, the rest half right."""
    rest = n - gained - lost
    same = "C" * (rest // 2) + "W" * (rest - rest // 2)
    return "W" * gained + "C" * lost + same, "C" * gained + "W" * lost + same
