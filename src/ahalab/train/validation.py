"""Greedy accuracy on the validation split, at every checkpoint and before it counts as sound.

The adapter answers as it stands, within the process that trains it; no generator, no module's mode
and no configuration is left otherwise, so that a run is the same to the byte with and without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from transformers import GenerationConfig

from ahalab.records.plan import Plan, ValidationSpec
from ahalab.records.prompt import Prompt
from ahalab.records.validation import ValidationAnswer
from ahalab.scoring.answers import Asked
from ahalab.store.rows import RowWriter
from ahalab.tasks.generation import (
    Completion,
    batches,
    completion_of,
    graded,
    greedy_fields,
)
from ahalab.tasks.library_loop import generate_whole
from ahalab.tasks.questions import asked_of
from ahalab.train.ranks import Ranks


@dataclass(frozen=True, slots=True)
class Questions:
    """What is asked at every checkpoint, and how."""

    prompts: list[Prompt]
    asked: Asked
    batch_size: int
    max_new_tokens: int


def questions_of(plan: Plan, spec: ValidationSpec, prompts: list[Prompt]) -> Questions:
    """Return what a plan's validation asks."""
    limit = spec.max_new_tokens or plan.evaluation.max_new_tokens  # explicit in a resolved plan
    return Questions(prompts, asked_of(plan.task, plan.answer_format), spec.batch_size, limit)


class Validator:
    """Asks the model in training the validation questions, and commits its answers."""

    def __init__(
        self,
        questions: Questions,
        tokenizer: Any,
        end_ids: frozenset[int],
        *,
        writer: RowWriter[ValidationAnswer] | None,
        ranks: Ranks,
    ) -> None:
        fields = greedy_fields(questions.max_new_tokens, end_ids, int(tokenizer.pad_token_id))
        self.generation = GenerationConfig(**fields)
        self.batches = batches(questions.prompts, 1, questions.batch_size)
        self.asked = questions.asked
        self.tokenizer = tokenizer
        self.end_ids = end_ids
        self.writer = writer  # None in all processes but the first
        self.ranks = ranks

    def __call__(self, model: Any, step: int) -> None:
        """Commit the answers of one checkpoint as one batch; every process calls this.

        Args:
            model: The adapted model, not wrapped for several processes.
            step: Optimizer steps done.
        """
        if self.writer is not None:
            rows = []
            with undisturbed(model, self.generation):
                for batch in self.batches:
                    prompts = [prompt for prompt, _ in batch]
                    for prompt, completion in zip(
                        prompts, self._generate(model, prompts), strict=True
                    ):
                        rows.append(self._answer(step, prompt, completion))
            self.writer.append(rows)
        self.ranks.wait()  # the others go on when the first one does

    def _generate(self, model: Any, prompts: list[Prompt]) -> list[Completion]:
        written = generate_whole(model, [p.prompt_ids for p in prompts], self.generation)
        return [completion_of(row, self.end_ids, self.tokenizer) for row in written]

    def _answer(self, step: int, prompt: Prompt, completion: Completion) -> ValidationAnswer:
        return ValidationAnswer(step=step, **graded(completion, prompt, self.asked))


@contextmanager
def undisturbed(model: Any, generation: GenerationConfig) -> Iterator[None]:
    """Let a model that is being trained generate, and put everything back as it was.

    Args:
        model: The adapted model.
        generation: What its base's own configuration is replaced with meanwhile: what that one
            sets would reach `generate` otherwise (TRL_FACTS 6).
    """
    base = model.get_base_model()
    held, modes = base.generation_config, [(m, m.training) for m in model.modules()]
    on_gpu = [model.device] if model.device.type == "cuda" else []
    # Not inference mode: a buffer made under it can't take part in a backward pass later.
    with torch.no_grad(), torch.random.fork_rng(on_gpu):
        base.generation_config = generation
        model.eval()
        try:
            yield
        finally:
            base.generation_config = held
            for module, mode in modes:
                module.training = mode
