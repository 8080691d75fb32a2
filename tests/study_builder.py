"""Builds a small whole study without torch: completions are invented, all else is real code."""

from __future__ import annotations

import hashlib
import json
import random
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import UNSET
from tokenizers import Tokenizer

from ahalab.analyze.compare import analyze
from ahalab.plan.cells import (
    BASE,
    FLOOR,
    Cell,
    answer_cells,
    answer_seed,
    pilot_of,
    training_cells,
)
from ahalab.plan.load import dump_plan, parse_plan
from ahalab.plan.schedule import checkpoint_steps, expected_rollouts, prompts_asked
from ahalab.records.answer import Answer, Protocol
from ahalab.records.base import digest, digest_bytes, encode, encode_pretty
from ahalab.records.plan import Plan
from ahalab.records.prompt import Prompt, Selection
from ahalab.records.rollout import ComponentRow, Rollout
from ahalab.records.run import Attempt, RunRecord
from ahalab.records.step import Step, Timing
from ahalab.records.terms import Finish
from ahalab.records.validation import ValidationAnswer
from ahalab.report.html import write_report
from ahalab.scoring.answers import SCORER_VERSION, score_answer
from ahalab.scoring.arms import ArmDefinition, resolve_arm, score_batch
from ahalab.scoring.components import Origin, is_formatted, make_response, repeated_fraction
from ahalab.scoring.own import own_names
from ahalab.scoring.reflection import reflection_markers
from ahalab.scoring.training_parser import TRAINING_PARSER_VERSION
from ahalab.statistics.diagnostics import diagnose
from ahalab.statistics.training import generation_advantages, step_figures
from ahalab.store.adapters import adapter_effect_norm
from ahalab.store.base_tensors import fingerprint_base
from ahalab.store.fingerprint import (
    ADAPTER_CONFIG,
    ADAPTER_WEIGHTS,
    adapter_fingerprint,
    base_tensors,
    tokenizer_fingerprint,
    weights_digest,
)
from ahalab.store.journal import read_journal
from ahalab.store.layout import StudyPaths
from ahalab.store.manifest import write_manifest
from ahalab.store.models import organism_folder
from ahalab.store.reading import journal_path
from ahalab.store.rows import RowFile, RowWriter, write_rows
from ahalab.tasks.ngrams import measure_overlap
from ahalab.tasks.places import run_paths
from ahalab.tasks.questions import asked_of, load_questions
from ahalab.tasks.rewards import with_own_rewards
from ahalab.tasks.selection import prompt_id
from ahalab.tasks.validation import validation_questions

PLAN = """
name: synthetic
model: {id: organism}
task: {name: arithmetic, train_prompts: 6, eval_prompts: 24}
arms: [historical, additive_format, random]
control: random
seeds: [1, 2]
grpo: {max_steps: 4, num_generations: 4, per_device_train_batch_size: 8, max_completion_length: 48,
  save_steps: 2}
lora: {r: 2, lora_alpha: 4, target_modules: [q_proj]}
evaluation: {max_new_tokens: 48, batch_size: 8, floor_batch_size: 6, replay: true}
validation: {prompts: 5, batch_size: 2}
"""
TOKENIZER = Tokenizer.from_file(str(organism_folder() / "tokenizer.json"))
END = TOKENIZER.token_to_id("<|end|>")
LIMIT = 48  # tokens of a cut completion
ENDPOINT_GENERATION: dict[str, Any] = {  # of an endpoint that tells no token ids
    "api": "completions", "prompt": "text", "temperature": 0.0, "top_p": 1.0, "max_tokens": LIMIT,
    "n": 1, "stop": None, "stream": False, "presence_penalty": 0.0, "frequency_penalty": 0.0,
    "eos_token_id": [END],
}  # fmt: skip
VERSIONS = {"python": "3", "torch": "none"}
SKILL = {
    "base": 0.2,
    "correctness": 0.7,
    "historical": 0.55,
    "additive_format": 0.9,
    "random": 0.2,
}  # chance to be right


@dataclass(frozen=True, slots=True)
class Written:
    """An invented completion."""

    text: str
    ids: tuple[int, ...]
    finish: Finish


def seeded(text: str) -> random.Random:
    """Return a generator that draws the same for the same text."""
    return random.Random(text)  # noqa: S311


def write(rng: random.Random, gold: str, skill: float) -> Written:
    """Invent a completion: right, wrong, right in no format, hesitant, or cut."""
    kind = rng.random()
    value = gold if kind < skill else str(int(gold) + rng.randint(1, 9))
    style = rng.choice(["hashes", "hashes", "stated", "wait", "cut"])
    text = {
        "hashes": f"I add the parts.\n#### {value}",
        "stated": f"The answer is {value}.",
        "wait": f"Wait, let me check. It is so.\n#### {value}",
        "cut": f"First {value} and then " * LIMIT,
    }[style]
    ids = TOKENIZER.encode(text).ids
    if style == "cut":
        cut = ids[:LIMIT]
        return Written(TOKENIZER.decode(cut), tuple(cut), "length")
    return Written(text, (*ids, END), "eos")


def build(root: Path, plan_text: str = PLAN) -> Path:
    """Write the whole study, sealed."""
    plan = parse_plan(plan_text, "plan")
    paths = StudyPaths(root)
    root.mkdir(parents=True, exist_ok=True)
    paths.plan.write_text(dump_plan(plan), encoding="utf-8")
    prompts = write_prompts(plan, paths)
    fingerprint_base(paths, organism_folder())
    for cell in training_cells(plan):
        write_run(plan, paths, prompts, cell)
    for cell in answer_cells(plan):
        write_answers(plan, paths, prompts["eval"], cell)
        if cell != FLOOR and plan.evaluation.replay:
            write_answers(plan, paths, prompts["eval"], cell, under="replay/")
    finish(plan, paths)
    return root


def finish(plan: Plan, paths: StudyPaths) -> None:
    """Analyse, report and seal, as the pipeline does at the end."""
    analyze(plan, paths)
    write_report(paths)
    write_manifest(paths, digest(plan))


def write_prompts(plan: Plan, paths: StudyPaths) -> dict[str, list[Prompt]]:
    """Write the prompt sets and how they were drawn."""
    prompts: dict[str, list[Prompt]] = {}
    for split, count in prompts_asked(plan).items():
        prompts[split] = []
        questions = (
            validation_questions(plan.task, count, [])
            if split == "validation"
            else load_questions(plan.task, split)
        )
        for position, question in enumerate(questions):
            ids = tuple(TOKENIZER.encode(f"user {question.question} model").ids)
            prompts[split].append(
                Prompt(
                    prompt_id=prompt_id(position, question),
                    question=question.question,
                    gold=question.gold,
                    source=question.source,
                    split=split,
                    prompt_ids=ids,
                    prompt_tokens=len(ids),
                )
            )
        name = f"prompts/{split}"
        file = RowFile(paths.prompts(split), "prompt/1", digest(plan), name, paths.broken)
        write_rows(file, prompts[split])
    counts = {split: len(rows) for split, rows in prompts.items()}
    selection = Selection(
        plan_digest=digest(plan),
        available=counts,
        drawn=counts,
        dropped=(),
        overlap=measure_overlap(prompts["train"], prompts["eval"]),
    )
    paths.prompt_report.write_bytes(encode_pretty(selection))
    return prompts


def definition_of(plan: Plan, paths: StudyPaths, cell: Cell) -> ArmDefinition:
    """Return an arm's components, users' own rewards loaded from the study."""
    spec = next(arm for arm in plan.arms if arm.name == cell.arm)
    return with_own_rewards(plan, resolve_arm(spec.name, spec.components), (paths.rewards,))


def rollouts_of(
    plan: Plan, arm: ArmDefinition, prompts: list[Prompt], cell: Cell, step: int
) -> list[Rollout]:
    """Return one generation batch, scored by the real scorers."""
    asked = asked_of(plan.task, plan.answer_format)
    rng = seeded(f"{cell.name}|{step}")
    drawn = seeded(f"{cell.seed}|{step}").sample(prompts, 2)
    rows = []
    for group, prompt in enumerate(drawn):
        written = [write(rng, prompt.gold, SKILL.get(str(cell.arm), 0.5)) for _ in range(4)]
        responses = [
            make_response(
                completion=w.text,
                gold=prompt.gold,
                finish=w.finish,
                origin=Origin(prompt.prompt_id, step, sample, int(cell.seed or 0)),
                asked=replace(asked, prompt=prompt.question),
            )
            for sample, w in enumerate(written)
        ]
        rewards = score_batch(arm, responses)
        (advantages,) = generation_advantages([[r.reward for r in rewards]], "group") or [[]]
        for w, response, reward, advantage in zip(
            written, responses, rewards, advantages, strict=True
        ):
            rows.append(
                Rollout(
                    step=step,
                    rank=0,
                    group=group,
                    prompt_id=prompt.prompt_id,
                    sample=response.origin.sample,
                    completion=w.text,
                    completion_ids=w.ids,
                    finish=w.finish,
                    components={
                        k: ComponentRow(value=v.value, status=v.status)
                        for k, v in reward.components.items()
                    },
                    reward=reward.reward,
                    advantage=float(np.float32(advantage)),
                    historical=response.historical,
                    strict=response.score.strict.outcome,
                    lenient=response.score.lenient.outcome,
                    status=response.score.lenient.status,
                    extracted=response.score.lenient.extracted,
                    formatted=is_formatted(response),
                    repetition=repeated_fraction(response),
                    reflection=reflection_markers(w.text),
                )
            )
    return rows


def _organism_digest() -> str:
    return weights_digest(base_tensors(organism_folder()))


def write_run(plan: Plan, paths: StudyPaths, sets: dict[str, list[Prompt]], cell: Cell) -> None:
    """Write one training run: rows, adapter, summary, record."""
    run, prompts = run_paths(paths, cell), sets["train"]
    files = [
        RowFile(path, schema, digest(plan), run.name, paths.broken)
        for path, schema in (
            (run.rollouts, "rollout/1"),
            (run.steps, "step/1"),
            (run.timings, "timing/1"),
        )
    ]
    length = {p.prompt_id: p.prompt_tokens for p in prompts}
    definition = definition_of(plan, paths, cell)
    rollouts: list[Rollout] = []
    steps: list[Step] = []
    with (
        RowWriter[Rollout](files[0]) as rollout_rows,
        RowWriter[Step](files[1]) as step_rows,
        RowWriter[Timing](files[2]) as timing_rows,
    ):
        for number in range(int(plan.grpo["max_steps"])):
            fresh = rollouts_of(plan, definition, prompts, cell, number)
            rollouts += fresh
            step = Step(
                step=number + 1, loss=0.01, grad_norm=0.5, learning_rate=1e-6, entropy=1.0, kl=None,
                clip_low_fraction=0.0, clip_high_fraction=0.0,
                tokens=sum(length[r.prompt_id] + len(r.completion_ids) for r in rollouts),
                **step_figures(fresh),
            )  # fmt: skip
            steps.append(step)
            rollout_rows.append(fresh)
            step_rows.append([step])
            timing_rows.append(
                [Timing(step=step.step, seconds=0.1, utc="2026-01-01T00:00:00.000+00:00")]
            )
    for file in files:
        with RowWriter[Any](file) as writer:
            writer.seal()
    write_adapter(run.adapter, cell)
    validation = write_validation(plan, paths, sets.get("validation", []), cell)
    (arm, seed), norm = cell.run, adapter_effect_norm(run.adapter)
    diagnostics = diagnose(arm, seed, steps, rollouts, norm, validation)
    run.diagnostics.write_bytes(encode_pretty(diagnostics))
    attempts = tuple(
        Attempt(number=a.number, started_utc=a.utc, steps_found=a.rows)
        for a in read_journal(journal_path(run.steps)).attempts
    )
    pilot = pilot_of(plan, cell)
    own = {name: plan.rewards[name] for name in own_names(definition.components)}
    effective = {**plan.grpo, "seed": cell.seed, "data_seed": cell.seed, "logging_steps": 1,
                 "vllm_importance_sampling_cap": None}  # fmt: skip
    record = RunRecord(
        plan_digest=digest(plan), arm=arm, control=arm == plan.control,
        components=dict(definition.components), rewards=own, lean_step="on", seed=seed,
        like=pilot.name if pilot else None,
        requested_grpo=plan.grpo, effective_grpo=effective,
        effective_lora={**plan.lora, "peft_type": "LORA", "use_rslora": False},
        model_id="organism", model_revision=None, base_digest=_organism_digest(),
        tokenizer_digest=tokenizer_fingerprint(organism_folder()),
        template_digest=digest_bytes(b"template"),
        scorer_version=SCORER_VERSION, training_parser_version=TRAINING_PARSER_VERSION,
        versions=VERSIONS, device="cpu", dtype="float32", threads=1, git_commit=None,
        started_utc="2026-01-01T00:00:00+00:00", finished_utc="2026-01-01T00:01:00+00:00",
        attempts=attempts, steps_done=len(steps), rollouts_written=len(rollouts),
        rollouts_expected=expected_rollouts(plan),
        adapter_digest=adapter_fingerprint(run.adapter), alarms=diagnostics.alarms,
    )  # fmt: skip
    run.record.write_bytes(encode_pretty(record))


def write_validation(
    plan: Plan, paths: StudyPaths, prompts: list[Prompt], cell: Cell
) -> list[ValidationAnswer]:
    """Write the validation of a run, a batch of rows per checkpoint; return them all."""
    if not prompts:
        return []
    run = run_paths(paths, cell)
    file = RowFile(run.validation, "validation/1", digest(plan), run.name, paths.broken)
    order = sorted(range(len(prompts)), key=lambda i: (prompts[i].prompt_tokens, i))
    rows: list[ValidationAnswer] = []
    with RowWriter[ValidationAnswer](file) as writer:
        for step in checkpoint_steps(plan):
            fresh = [validation_answer(plan, cell, prompts[i], step) for i in order]
            writer.append(fresh)
            rows += fresh
        writer.seal()
    return rows


def validation_answer(plan: Plan, cell: Cell, prompt: Prompt, step: int) -> ValidationAnswer:
    """Return one answer of the validation, scored by the real scorer."""
    rng = seeded(f"{cell.name}|validation|{prompt.prompt_id}|{step}")
    written = write(rng, prompt.gold, SKILL.get(str(cell.arm), 0.5))
    asked = replace(asked_of(plan.task, plan.answer_format), prompt=prompt.question)
    score = score_answer(written.text, prompt.gold, written.finish, asked)
    return ValidationAnswer(
        step=step, prompt_id=prompt.prompt_id, completion=written.text,
        completion_ids=written.ids, finish=written.finish, extracted=score.lenient.extracted,
        rule=score.lenient.rule, status=score.lenient.status,
        strict=score.strict.outcome, lenient=score.lenient.outcome,
    )  # fmt: skip


def write_adapter(folder: Path, cell: Cell) -> None:
    """Write a LoRA adapter of one module, its weights drawn by the cell's name."""
    seed = int.from_bytes(hashlib.sha256(cell.name.encode()).digest()[:4], "big")
    rng = np.random.default_rng(seed)
    stem = "base_model.model.layers.0.self_attn.q_proj"
    write_tensors(
        folder / ADAPTER_WEIGHTS,
        {
            f"{stem}.lora_A.weight": rng.normal(size=(2, 6)).astype("<f4"),
            f"{stem}.lora_B.weight": rng.normal(size=(6, 2)).astype("<f4"),
        },
    )
    config = {
        "auto_mapping": None, "base_model_name_or_path": "organism", "bias": "none",
        "lora_alpha": 4, "lora_dropout": 0.0, "peft_type": "LORA", "r": 2,
        "target_modules": ["q_proj"], "use_rslora": False,
    }  # fmt: skip
    (folder / ADAPTER_CONFIG).write_text(json.dumps(config, indent=1, sort_keys=True) + "\n")


def write_tensors(path: Path, tensors: dict[str, np.ndarray[Any, Any]]) -> None:
    """Write float32 tensors in the safetensors format."""
    path.parent.mkdir(parents=True, exist_ok=True)
    header, blob = {}, b""
    for name, values in tensors.items():
        payload = values.tobytes()
        header[name] = {
            "dtype": "F32",
            "shape": list(values.shape),
            "data_offsets": [len(blob), len(blob) + len(payload)],
        }
        blob += payload
    head = json.dumps(header).encode()
    path.write_bytes(len(head).to_bytes(8, "little") + head + blob)


def fingerprint_of(paths: StudyPaths, cell: Cell) -> str | None:
    if cell.arm is None:
        return None
    return adapter_fingerprint(paths.run(cell.arm, int(cell.seed or 0)).adapter)


def companions_of(plan: Plan, paths: StudyPaths, cell: Cell) -> tuple[str | None, ...]:
    """Return the adapters of the sides that share a cell's batches: base, then the plan's order."""
    if cell == FLOOR or plan.evaluation.cells_per_batch == 1:
        return ()
    cells, size = [BASE, *training_cells(plan)], plan.evaluation.cells_per_batch
    first = cells.index(cell) // size * size
    together = cells[first : first + size]
    return tuple(fingerprint_of(paths, c) for c in together) if len(together) > 1 else ()


def protocol_for(plan: Plan, paths: StudyPaths, prompts: list[Prompt], cell: Cell) -> Protocol:
    """Return the protocol of an answer set."""
    adapter, evaluation = fingerprint_of(paths, cell), plan.evaluation
    own = {
        "do_sample": evaluation.temperature > 0, "temperature": evaluation.temperature or 1.0,
        "top_p": evaluation.top_p, "top_k": 0,
        "repetition_penalty": 1.0, "num_beams": 1, "max_new_tokens": LIMIT,
        "eos_token_id": [END], "pad_token_id": 0,
    }  # fmt: skip
    answerer = (own, "cpu, 1 threads", "transformers", "rows")
    if evaluation.endpoint is not UNSET:
        answerer = (ENDPOINT_GENERATION, "endpoint", "openai", "server")
    generation, device, backend, decoder = answerer
    return Protocol(
        plan_digest=digest(plan), answer_format=plan.answer_format, task="gsm8k",
        prompts_digest=digest_bytes(b"\n".join(encode(p) for p in prompts)),
        template_digest=digest_bytes(b"template"),
        tokenizer_digest=tokenizer_fingerprint(organism_folder()),
        base_digest=_organism_digest(), adapter_digest=adapter,
        generation=generation, dtype="float32", device=device, backend=backend, decoder=decoder,
        versions=VERSIONS,
        batch_size=(evaluation.floor_batch_size if cell == FLOOR else evaluation.batch_size) or 0,
        cells_per_batch=evaluation.cells_per_batch, companions=companions_of(plan, paths, cell),
        limit=None,
        seed=answer_seed(plan, cell), samples=evaluation.samples, scorer_version=SCORER_VERSION,
    )  # fmt: skip


def write_answers(
    plan: Plan, paths: StudyPaths, prompts: list[Prompt], cell: Cell, under: str = ""
) -> None:
    """Write one answer set in the batch plan's order; the floor answers as the base does."""
    if cell.arm is not None:
        target = paths.answers(cell.arm, int(cell.seed or 0), under)
    else:
        target = paths.floor_answers if cell == FLOOR else paths.base_answers(under)
    protocol = protocol_for(plan, paths, prompts, cell)
    target.protocol.parent.mkdir(parents=True, exist_ok=True)
    target.protocol.write_bytes(encode_pretty(protocol))
    file = RowFile(target.answers, "answer/1", digest(plan), target.name, paths.broken)
    order = sorted(range(len(prompts)), key=lambda i: (prompts[i].prompt_tokens, i))
    pairs = [(prompts[i], j) for i in order for j in range(protocol.samples)]
    rows = [answer(plan, protocol, cell, prompt, sample) for prompt, sample in pairs]
    with RowWriter[Answer](file) as writer:
        for at in range(0, len(rows), protocol.batch_size):
            writer.append(rows[at : at + protocol.batch_size])
        writer.seal()


def answer(plan: Plan, protocol: Protocol, cell: Cell, prompt: Prompt, sample: int) -> Answer:
    """Return one answer, scored by the real scorer."""
    name = BASE.name if cell == FLOOR else cell.name
    rng = seeded(f"{name}|{prompt.prompt_id}|{sample}")
    written = write(rng, prompt.gold, SKILL.get(cell.arm or "base", 0.5))
    asked = replace(asked_of(plan.task, plan.answer_format), prompt=prompt.question)
    score = score_answer(written.text, prompt.gold, written.finish, asked)
    return Answer(
        protocol=digest(protocol), side="base" if cell.arm is None else "adapter",
        prompt_id=prompt.prompt_id, sample=sample, completion=written.text,
        completion_ids=written.ids if plan.evaluation.endpoint is UNSET else None,
        finish=written.finish, extracted=score.lenient.extracted,
        rule=score.lenient.rule, status=score.lenient.status,
        strict=score.strict.outcome, lenient=score.lenient.outcome,
    )  # fmt: skip
