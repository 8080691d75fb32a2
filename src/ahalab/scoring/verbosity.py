"""How much a text says, and what that earns: length against a budget, and repetition."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

LENGTH_BUDGET_WORDS = 150
"""Words and signs that cost nothing; the linear reward falls to 0 at twice as many."""

COSINE_WORDS = 2 * LENGTH_BUDGET_WORDS
"""Words and signs over which the cosine falls or rises: where the linear reward has reached 0."""

COSINE_RIGHT = (1.0, 0.5)
"""What a right answer earns at no length and at COSINE_WORDS."""

COSINE_WRONG = (-1.0, -0.5)
"""What a wrong answer earns at no length and at COSINE_WORDS."""

REPETITION_WORDS = 4
"""Length of the word sequences whose repetition is counted."""

MAX_WORDS = 20_000
"""Words and signs of a completion that length and repetition look at."""

_WORD = re.compile(r"[A-Za-z0-9]+|[^\sA-Za-z0-9]")  # a CJK character or a sign is one piece


def words_and_signs(text: str) -> list[str]:
    """List the words and signs of a text, the first MAX_WORDS of them."""
    words = []
    for match in _WORD.finditer(text):
        words.append(match.group())
        if len(words) == MAX_WORDS:
            break
    return words


def within_budget(words: int) -> float:
    """Return 1 up to the budget, falling linearly to 0 at twice as many words and signs."""
    over = max(0, words - LENGTH_BUDGET_WORDS) / LENGTH_BUDGET_WORDS
    return max(0.0, 1.0 - over)


def cosine_reward(words: int, right: bool) -> float:
    """Return what a length earns by half a cosine: short pays when right, long when wrong.

    Args:
        words: Words and signs of the response.
        right: Whether its answer is right.

    Returns:
        The reward, 1 to 0.5 when right, -1 to -0.5 when wrong; rounded to nine places, since C
        libraries differ in a cosine's last bit and verification compares exactly.

    Source:
        Yeo et al. 2025, arXiv 2502.03373; the ranges of open-r1's `get_cosine_scaled_reward`,
        with the length held at its end, so that the reward does not swing back beyond it.
    """
    start, end = COSINE_RIGHT if right else COSINE_WRONG
    progress = min(words, COSINE_WORDS) / COSINE_WORDS
    return round(end + 0.5 * (start - end) * (1.0 + math.cos(math.pi * progress)), 9)


def repeated_share(words: Sequence[str]) -> float:
    """Return the share of word sequences that stood before, from 0 towards 1."""
    count = len(words) - REPETITION_WORDS + 1
    if count < 2:
        return 0.0
    distinct = {tuple(words[i : i + REPETITION_WORDS]) for i in range(count)}
    return 1.0 - len(distinct) / count
