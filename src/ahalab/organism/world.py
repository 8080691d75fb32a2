"""The model organism's world: arithmetic in a few steps, as expressions and as short stories.

Pure: no I/O, no torch, no global random state. Expressions follow ordinary precedence (products
first, then sums and differences from the left). Every number, every value on the way and every
answer is an integer from 0 to `LARGEST`; nothing is negative.

A question's split is decided by a hash of its text, so two splits can never share a question,
whatever the seeds they were drawn with.
"""

import hashlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from ahalab.errors import InputError
from ahalab.organism.stories import THEMES

Kind = Literal["expression", "story"]
Operator = Literal["+", "-", "*"]
Split = Literal["pretrain", "development", "train", "eval"]

SPLITS: tuple[Split, ...] = ("pretrain", "development", "train", "eval")
LARGEST = 999
LARGEST_TERM = 99
LARGEST_FACTOR = 9
STORY_FRACTION = 0.5
PRODUCT_FRACTION = 0.5
TRIES_PER_PROBLEM = 1000

# Buckets out of 100: the pretraining texts get most of the world, each other split a tenth.
_SPLIT_ENDS: tuple[tuple[int, Split], ...] = (
    (70, "pretrain"),
    (80, "development"),
    (90, "train"),
    (100, "eval"),
)


@dataclass(frozen=True, slots=True)
class Step:
    """One line of a solution: `left operator right = value`."""

    left: int
    operator: Operator
    right: int
    value: int


@dataclass(frozen=True, slots=True)
class Problem:
    """One question of the world with its worked solution."""

    question: str
    gold: str  # the answer, as digits
    kind: Kind
    steps: tuple[Step, ...]  # in the order in which a solution writes them


def normalise(question: str) -> str:
    """Return the text that decides a question's identity: lower case, single spaces."""
    return " ".join(question.lower().split())


def split_of(question: str) -> Split:
    """Return the split a question belongs to, from the SHA-256 of its normalised text."""
    digest = hashlib.sha256(normalise(question).encode()).digest()
    bucket = int.from_bytes(digest[:8], "big") % 100
    return next(split for end, split in _SPLIT_ENDS if bucket < end)


def draw_problems(split: Split, count: int, seed: int) -> list[Problem]:
    """Draw distinct problems of one split.

    Args:
        split: The split every question belongs to.
        count: Number of problems.
        seed: Seed of the draw; equal arguments give equal problems.

    Returns:
        Problems, shape (count,), no two with one normalised question.

    Raises:
        InputError: `split` is unknown, `count` is negative, or the split ran dry.
    """
    if split not in SPLITS:
        raise InputError(f"split: expected one of {', '.join(SPLITS)}, found {split!r}.")
    if count < 0:
        raise InputError(f"count: expected 0 or more, found {count}.")
    problems: dict[str, Problem] = {}
    stream = stream_problems(split, seed)
    for _ in range(TRIES_PER_PROBLEM * count):
        if len(problems) == count:
            break
        problem = next(stream)
        problems.setdefault(normalise(problem.question), problem)
    if len(problems) < count:
        raise InputError(
            f"{split}: expected {count} distinct problems, found {len(problems)}. Ask for fewer."
        )
    return list(problems.values())


def stream_problems(split: Split, seed: int) -> Iterator[Problem]:
    """Yield problems of one split without end; a question may return."""
    rng = random.Random(f"{split}:{seed}")  # noqa: S311 (a reproducible draw, not a secret)
    while True:
        problem = _draw_story(rng) if rng.random() < STORY_FRACTION else _draw_expression(rng)
        if problem is not None and split_of(problem.question) == split:
            yield problem


def solve(numbers: Sequence[int], operators: Sequence[Operator]) -> tuple[Step, ...]:
    """Work an expression out by ordinary precedence.

    Args:
        numbers: The terms, shape (N,).
        operators: The operators between them, shape (N - 1,).

    Returns:
        The steps, shape (N - 1,): products from the left, then sums and differences.
    """
    values, left_over, steps = list(numbers), list(operators), []
    for pass_operators in (("*",), ("+", "-")):
        position = 0
        while position < len(left_over):
            if left_over[position] not in pass_operators:
                position += 1
                continue
            step = make_step(values[position], left_over.pop(position), values.pop(position + 1))
            values[position] = step.value
            steps.append(step)
    return tuple(steps)


def make_step(left: int, operator: Operator, right: int) -> Step:
    """Return the step with its value worked out."""
    if operator == "+":
        value = left + right
    elif operator == "-":
        value = left - right
    else:
        value = left * right
    return Step(left, operator, right, value)


def _inside(steps: Sequence[Step]) -> bool:
    return all(0 <= step.value <= LARGEST for step in steps)


def _draw_expression(rng: random.Random) -> Problem | None:
    count = rng.choice((2, 3, 3))
    operators: list[Operator] = [rng.choice(("+", "-")) for _ in range(count)]
    numbers = [rng.randint(2, LARGEST_TERM) for _ in range(count + 1)]
    if rng.random() < PRODUCT_FRACTION:
        position = rng.randrange(count)
        operators[position] = "*"
        numbers[position + 1] = rng.randint(2, LARGEST_FACTOR)
    steps = solve(numbers, operators)
    if not _inside(steps):
        return None
    text = str(numbers[0])
    for operator, number in zip(operators, numbers[1:], strict=True):
        text += f" {operator} {number}"
    return Problem(f"{text} = ?", str(steps[-1].value), "expression", steps)


def _draw_story(rng: random.Random) -> Problem | None:
    theme = rng.choice(THEMES)
    name, pronoun = rng.choice(theme.heroes)
    steps: list[Step] = []
    if rng.random() < PRODUCT_FRACTION:
        packs, size = rng.randint(2, LARGEST_FACTOR), rng.randint(2, LARGEST_TERM)
        steps.append(make_step(packs, "*", size))
        total = steps[0].value
        sentences = [theme.packed.format(name=name, packs=packs, size=size)]
    else:
        total = rng.randint(2, LARGEST_TERM)
        sentences = [theme.start.format(name=name, count=total)]
    for _ in range(rng.choice((1, 2, 2)) + (not steps)):
        grows = rng.random() < 0.5
        amount = rng.randint(2, LARGEST_TERM)
        move = rng.choice(theme.gains if grows else theme.losses)
        steps.append(make_step(total, "+" if grows else "-", amount))
        total = steps[-1].value
        sentences.append(move.format(pronoun=pronoun, count=amount))
    if not _inside(steps):
        return None
    sentences.append(theme.ask)
    return Problem(" ".join(sentences), str(total), "story", tuple(steps))
