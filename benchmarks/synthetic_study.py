"""A study's answers in memory: 4 arms x 5 seeds, as many questions and samples as asked for."""

from __future__ import annotations

import numpy as np

from ahalab.analyze.answers import Answers, StudyAnswers
from ahalab.plan.load import parse_plan
from ahalab.records.answer import Answer, Protocol
from ahalab.records.base import digest
from ahalab.records.plan import Plan
from ahalab.records.prompt import Prompt
from ahalab.records.terms import Outcome

ARMS = ("historical", "correctness", "format_only", "random")
SEEDS = 5
PLAN = """\
name: synthetic
model: {{id: organism}}
task: {{name: arithmetic, train_prompts: 16, eval_prompts: {questions}}}
arms: [{arms}]
control: random
seeds: [{seeds}]
grpo: {{max_steps: 5}}
lora: {{r: 4}}
evaluation: {{max_new_tokens: 16, samples: {samples}, temperature: {temperature}}}
"""


def study_answers(questions: int, samples: int) -> StudyAnswers:
    """Make a study in which each adapter redraws a tenth of the base's answers."""
    plan = parse_plan(
        PLAN.format(
            questions=questions,
            arms=", ".join(ARMS),
            seeds=", ".join(map(str, range(SEEDS))),
            samples=samples,
            temperature=0.0 if samples == 1 else 1.0,
        ),
        "synthetic.yaml",
    )
    prompts = [_prompt(number) for number in range(questions)]
    rng = np.random.default_rng(0)
    right = rng.random((questions, samples)) < 0.4
    protocol = _protocol(plan, samples)
    adapters = {}
    for arm in ARMS:
        for seed in range(SEEDS):
            redrawn = rng.random(right.shape) < 0.1
            again = np.where(redrawn, rng.random(right.shape) < 0.4, right)
            adapters[arm, seed] = _answers(f"arms/{arm}/seed-{seed}/answers", protocol, again)
    base = _answers("base/answers", protocol, right)
    return StudyAnswers(plan, prompts, base, None, adapters, ())


def _prompt(number: int) -> Prompt:
    return Prompt(
        prompt_id=_id(number),
        question=f"What is {number} and 7?",
        gold=str(number + 7),
        source=f"made up:{number}",
        split="eval",
        prompt_ids=(1,),
        prompt_tokens=1,
    )


def _id(number: int) -> str:
    return f"{number:05d}-{number:012x}"


def _answers(name: str, protocol: Protocol, right: np.ndarray) -> Answers:
    rows = {}
    made_under = digest(protocol)
    for (number, sample), is_right in np.ndenumerate(right):
        outcome: Outcome = "correct" if is_right else "wrong"
        rows[_id(number), sample] = Answer(
            protocol=made_under,
            side="base" if name.startswith("base") else "adapter",
            prompt_id=_id(number),
            sample=sample,
            completion=f"{name} {number} {sample}",
            completion_ids=(1, 2, 3),
            finish="eos",
            extracted="7",
            rule="hashes",
            status="ok",
            strict=outcome,
            lenient=outcome,
        )
    return Answers(name, protocol, rows)


def _protocol(plan: Plan, samples: int) -> Protocol:
    return Protocol(
        plan_digest=digest(plan),
        answer_format="hashes",
        task="gsm8k",
        prompts_digest="made up",
        template_digest="made up",
        tokenizer_digest="made up",
        base_digest="made up",
        adapter_digest=None,
        generation={},
        dtype="float32",
        device="cpu",
        backend="transformers",
        decoder="rows",
        versions={},
        batch_size=1,
        cells_per_batch=1,
        companions=(),
        limit=None,
        seed=0,
        samples=samples,
        scorer_version="2",
    )
