"""Measure the organism on its development split: greedy accuracy, and what sampling earns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from ahalab.organism.reading import read_lenient, read_strict
from ahalab.organism.world import Problem, draw_problems

MAX_COMPLETION_TOKENS = 56
BATCH_ROWS = 128
GROUP_ROWS = 8
MEASURED_QUESTIONS = 500
MEASURED_SEED = 11


@dataclass(frozen=True, slots=True)
class Answer:
    """One completion and its length."""

    completion: str
    completion_tokens: int  # without the end token
    truncated: bool


@dataclass(frozen=True, slots=True)
class Measurement:
    """What a set of answers shows; every fraction is out of all answers or all groups."""

    answers: int
    strict_fraction: float  # right, and stated as `#### N`
    lenient_fraction: float  # right, however stated
    mixed_groups_fraction: float  # groups with both a strict-right and another answer
    wait_fraction: float  # answers that correct themselves
    truncated_fraction: float
    mean_tokens: float


def measure_folder(
    folder: Path,
    count: int = MEASURED_QUESTIONS,
    seed: int = MEASURED_SEED,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Measurement, Measurement]:
    """Measure a built folder on the development split.

    Args:
        folder: A folder that `build` wrote.
        count: Number of questions.
        seed: Seed of the questions and of sampling.
        progress: Called with (answers done, answers in all), for each of the two in turn.

    Returns:
        Greedy, one answer a question; and sampled at temperature 1, `GROUP_ROWS` answers each.
    """
    model, tokenizer = load_organism(folder)
    problems = draw_problems("development", count, seed)
    questions = [problem.question for problem in problems]
    greedy = answer_questions(model, tokenizer, questions, progress=progress)
    grouped = [question for question in questions for _ in range(GROUP_ROWS)]
    sampled = answer_questions(model, tokenizer, grouped, sampling_seed=seed, progress=progress)
    return measure(problems, greedy), measure(problems, sampled)


def load_organism(folder: Path) -> tuple[Any, Any]:
    """Load a built folder, offline.

    Returns:
        The model in evaluation mode, and its tokenizer.
    """
    model = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True)
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    return model.eval(), tokenizer


def answer_questions(
    model: Any,
    tokenizer: Any,
    questions: Sequence[str],
    *,
    sampling_seed: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Answer]:
    """Answer questions in batches.

    Args:
        model: A causal language model.
        tokenizer: Its tokenizer, with a chat template, padding on the left.
        questions: User turns, shape (N,).
        sampling_seed: Seed of sampling at temperature 1; None decodes greedily.
        progress: Called with (answers done, answers in all) after every batch.

    Returns:
        Answers, shape (N,), in order.
    """
    if sampling_seed is not None:
        torch.manual_seed(sampling_seed)
    prompts = [
        tokenizer.apply_chat_template(
            [{"role": "user", "content": question}], tokenize=False, add_generation_prompt=True
        )
        for question in questions
    ]
    answers: list[Answer] = []
    for start in range(0, len(prompts), BATCH_ROWS):
        batch = tokenizer(
            prompts[start : start + BATCH_ROWS],
            return_tensors="pt",
            padding=True,
            padding_side="left",
            add_special_tokens=False,
        )
        with torch.inference_mode():
            output = model.generate(
                **batch,
                max_new_tokens=MAX_COMPLETION_TOKENS,
                do_sample=sampling_seed is not None,
                **({} if sampling_seed is None else {"temperature": 1.0, "top_k": 0}),
            )
        for row in output[:, batch["input_ids"].shape[1] :].tolist():
            answers.append(_read_row(tokenizer, row))
        if progress is not None:
            progress(len(answers), len(prompts))
    return answers


def _read_row(tokenizer: Any, row: list[int]) -> Answer:
    end = row.index(tokenizer.eos_token_id) if tokenizer.eos_token_id in row else None
    return Answer(tokenizer.decode(row[:end]), len(row[:end]), end is None)


def measure(problems: Sequence[Problem], answers: Sequence[Answer]) -> Measurement:
    """Score answers.

    Args:
        problems: Shape (P,).
        answers: Shape (P * G,), the G answers of one problem side by side.

    Returns:
        The fractions; mixed groups are 0 when G is 1.

    Raises:
        ValueError: The answers are not a whole number of groups.
    """
    if not problems or not answers or len(answers) % len(problems):
        raise ValueError(
            f"answers: expected a multiple of {len(problems)} problems, found {len(answers)}."
        )
    group = len(answers) // len(problems)
    golds = [problem.gold for problem in problems for _ in range(group)]
    strict = [read_strict(a.completion) == gold for a, gold in zip(answers, golds, strict=True)]
    lenient = [read_lenient(a.completion) == gold for a, gold in zip(answers, golds, strict=True)]
    groups = [strict[start : start + group] for start in range(0, len(strict), group)]
    count = len(answers)
    return Measurement(
        answers=count,
        strict_fraction=sum(strict) / count,
        lenient_fraction=sum(lenient) / count,
        mixed_groups_fraction=sum(any(g) and not all(g) for g in groups) / len(groups),
        wait_fraction=sum("wait" in a.completion for a in answers) / count,
        truncated_fraction=sum(a.truncated for a in answers) / count,
        mean_tokens=sum(a.completion_tokens for a in answers) / count,
    )
