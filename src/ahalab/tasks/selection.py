"""Draws the prompts of a study from a task's questions, and keeps its splits apart."""

from __future__ import annotations

import hashlib
import random

from ahalab.errors import InputError
from ahalab.records.terms import Split
from ahalab.tasks.questions import Question
from ahalab.tasks.text import normalised

LISTED = 5  # overlapping questions named in the error


def draw(questions: list[Question], count: int, seed: int, split: Split) -> list[Question]:
    """Return `count` questions drawn by seed, in file order; all when there are fewer."""
    if len(questions) <= count:
        return questions
    # Seeded by text, so that the two splits of one study draw independently.
    chosen = random.Random(f"{seed}|{split}").sample(range(len(questions)), count)  # noqa: S311
    return [questions[i] for i in sorted(chosen)]


def prompt_id(position: int, question: Question) -> str:
    """Return the id of a prompt: its position in the set and a digest of question and gold.

    A question may occur twice, so the digest alone is not a key.
    """
    text = f"{question.question}\x00{question.gold}"
    return f"{position:05d}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def check_overlap(
    train: list[Question],
    evaluation: list[Question],
    names: tuple[str, str] = ("training", "evaluation"),
) -> None:
    """Refuse a study that evaluates on what it trained on, or two other sets that share a question.

    Raises:
        InputError: Questions stand in both splits; the first ones are listed.
    """
    seen = {normalised(q.question): q for q in train}
    shared = [
        (q, seen[normalised(q.question)]) for q in evaluation if normalised(q.question) in seen
    ]
    if not shared:
        return
    listed = "; ".join(
        f"{ours.source} = {theirs.source} ({ours.question[:40]!r})"
        for ours, theirs in shared[:LISTED]
    )
    more = f" and {len(shared) - LISTED} more" if len(shared) > LISTED else ""
    raise InputError(
        f"task: expected no {names[1]} question among the {names[0]} questions, found "
        f"{len(shared)}: {listed}{more}. Remove them from one of the two sets."
    )
