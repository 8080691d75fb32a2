"""How a model is asked and where a completion ends: the same in evaluation and in validation.

Two stages generate answers, and stages never import one another. What must not differ between them
stands here: every generation field, which prompts share a batch, their padding, the cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ahalab.records.prompt import Prompt
from ahalab.records.terms import Finish
from ahalab.scoring.answers import Asked, score_answer
from ahalab.scoring.worker import row_decider


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model wrote to one prompt."""

    text: str
    ids: tuple[int, ...] | None  # up to and with the first end token, shape (C,); None: unknown
    finish: Finish


def graded(completion: Completion, prompt: Prompt, asked: Asked) -> dict[str, Any]:
    """Score a completion and return the fields that every row of an answer holds."""
    question = replace(asked, prompt=prompt.question)
    decider = row_decider(asked.task)
    score = score_answer(completion.text, prompt.gold, completion.finish, question, decider)
    return {
        "prompt_id": prompt.prompt_id,
        "completion": completion.text,
        "completion_ids": completion.ids,
        "finish": completion.finish,
        "extracted": score.lenient.extracted,
        "rule": score.lenient.rule,
        "status": score.lenient.status,
        "strict": score.strict.outcome,
        "lenient": score.lenient.outcome,
    }


def greedy_fields(max_new_tokens: int, end_ids: frozenset[int], pad_id: int) -> dict[str, Any]:
    """Return every generation field, also those that a model's own configuration would slip in.

    A model may ship repetition_penalty 1.1 or top_k 50; unset fields would inherit them
    (TRL_FACTS 6).
    """
    return {
        "do_sample": False,
        "temperature": 1.0,
        "top_p": 1.0,
        "top_k": 0,
        "min_p": None,
        "typical_p": 1.0,
        "repetition_penalty": 1.0,
        "length_penalty": 1.0,
        "no_repeat_ngram_size": 0,
        "num_beams": 1,
        "max_new_tokens": max_new_tokens,
        "min_new_tokens": None,
        "eos_token_id": sorted(end_ids),
        "pad_token_id": pad_id,
        "bos_token_id": None,
    }


def batches(prompts: list[Prompt], samples: int, batch_size: int) -> list[list[tuple[Prompt, int]]]:
    """Return the batch plan: (prompt, sample) pairs, prompts of like length together.

    The order is fixed by the prompts alone, so that a batch always has the same composition and
    padding: greedy answers depend on both in low precision.
    """
    order = sorted(range(len(prompts)), key=lambda i: (prompts[i].prompt_tokens, i))
    pairs = [(prompts[i], sample) for i in order for sample in range(samples)]
    return [pairs[at : at + batch_size] for at in range(0, len(pairs), batch_size)]


def padded(
    prompts: Sequence[tuple[int, ...]], pad_id: int
) -> tuple[list[list[int]], list[list[int]]]:
    """Return token ids padded on the left, and their mask, both of shape (B, T)."""
    longest = max(len(p) for p in prompts)
    ids = [[pad_id] * (longest - len(p)) + list(p) for p in prompts]
    return ids, [[0] * (longest - len(p)) + [1] * len(p) for p in prompts]


def completion_of(row: Sequence[int], end_ids: frozenset[int], tokenizer: Any) -> Completion:
    """Cut one row of generated ids, shape (C,), after its first end token, and decode it."""
    end = next((i for i, token in enumerate(row) if token in end_ids), None)
    ids = tuple(row if end is None else row[: end + 1])
    text = tokenizer.decode(ids, skip_special_tokens=True)
    return Completion(text, ids, "length" if end is None else "eos")
