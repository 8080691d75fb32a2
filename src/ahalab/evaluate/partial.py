"""A partial evaluation: some of the questions, drawn by seed, for a look before the whole.

Its answers lie in the study's working folder, never among its evidence, and decide nothing.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from ahalab.errors import InputError
from ahalab.evaluate.resume import AnswerSet
from ahalab.records.answer import Answer
from ahalab.records.prompt import Prompt
from ahalab.store.reading import read_rows


def draw_partial(prompts: list[Prompt], limit: int, seed: int) -> list[Prompt]:
    """Return `limit` questions drawn by seed, in their order.

    Raises:
        InputError: There are not more questions than that.
    """
    if not 0 < limit < len(prompts):
        raise InputError(
            f"--limit: expected 1 to {len(prompts) - 1} of the study's {len(prompts)} questions, "
            f"found {limit}. Leave it out to evaluate all."
        )
    chosen = random.Random(f"{seed}|limit").sample(range(len(prompts)), limit)  # noqa: S311
    return [prompts[at] for at in sorted(chosen)]


@dataclass(frozen=True, slots=True)
class PartialCount:
    """What one side of a partial evaluation came to."""

    name: str
    answers: int
    strict: int  # correct
    lenient: int


def count_partial(answers: AnswerSet) -> PartialCount:
    """Count the correct answers of a finished set."""
    rows = [row for _, row in read_rows(answers.target.answers, Answer)]
    name = answers.target.name.removesuffix("/answers")
    strict = sum(row.strict == "correct" for row in rows)
    return PartialCount(name, len(rows), strict, sum(row.lenient == "correct" for row in rows))
