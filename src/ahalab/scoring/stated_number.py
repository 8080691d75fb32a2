"""The one number that a response states, and how near it comes to the gold."""

from __future__ import annotations

from fractions import Fraction

from ahalab.scoring.countdown import ExpressionError, evaluate
from ahalab.scoring.equality import read_math_gold
from ahalab.scoring.latex import plain
from ahalab.scoring.numbers import find_numbers, read_gold, read_number
from ahalab.scoring.text import clean, clean_gold


def stated_number(extracted: str, task: str) -> Fraction | None:
    r"""Read the number that an extracted answer states.

    Args:
        extracted: The text that the scorer took as the answer.
        task: gsm8k, math (`x = \frac{3}{4}` is 3/4) or countdown (the expression's value).

    Returns:
        The number; None where the answer is no number, or one beyond the bounds.
    """
    text = clean(extracted).text
    if task == "countdown":
        try:
            return evaluate(text.partition("=")[0])[0]
        except ExpressionError:
            return None
    if task == "math":
        number = read_number(plain(text.rpartition("=")[2]))
        return None if number is None else number.value
    found = find_numbers(text)
    return found[-1].number.value if found else None


def gold_number(gold: str, task: str) -> Fraction | None:
    """Read a gold that is a number; None for countdown, whose target anyone can name."""
    if task == "countdown":
        return None
    if task == "math":
        read = read_math_gold(gold)
        return None if read is None or read.number is None else read.number.value
    number = read_gold(clean_gold(gold))
    return None if number is None else number.value


def closeness(stated: Fraction, gold: Fraction) -> float:
    """Return `1 - |stated - gold| / |gold|`, at least 0; of a gold below 1, the plain distance."""
    return float(max(Fraction(0), 1 - abs(stated - gold) / max(abs(gold), Fraction(1))))
