"""What the exact rules leave open: handed to a decider, part by part, within bounds."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

from ahalab.scoring.beyond import beyond_bounds, is_mathematics, without_unit
from ahalab.scoring.latex import bare_latex, plain
from ahalab.scoring.naming import ASSIGNED, named_otherwise, unnamed
from ahalab.scoring.parts import equal_part, number_of, split_parts

LatexVerdict = Literal["equal", "different", "timeout", "unreadable", "missing"]
"""What a decider says; unreadable: the gold has no reading or does not equal itself; missing: the
decider itself is not installed."""

LatexEqual = Callable[[str, str], LatexVerdict]
"""Decides whether two LaTeX answers, (stated, gold), are equal."""

MathVerdict = LatexVerdict | Literal["bounds"]
"""What a comparison ends with; bounds: too large or too deep, whatever time there is."""

_NO_LIST = re.compile(r"[<>]|\\(?:[lg]eq?|cup|in|pm|mp)(?![A-Za-z])")  # a set in another notation
_BASE = re.compile(r"\d_\{?(\d+)")  # 52_8: the base belongs to the value
_SUBSCRIPT = re.compile(r"_\{[^{}]*\}")
_MAX_DECIDED = 12  # parts compared by a decider, which may be slow


def decide(stated: str, gold: str, latex_equal: LatexEqual) -> MathVerdict:
    """Settle what the exact rules leave open: part by part where both sides are lists.

    Args:
        stated: The stated answer, in LaTeX.
        gold: The gold in bare LaTeX.
        latex_equal: The decider.

    Returns:
        Its verdict on the whole, or on the first part that is not equal.
    """
    left, right = _sides(bare_latex(stated), gold)
    brackets, parts = split_parts(left)
    gold_brackets, gold_parts = split_parts(right)
    if len(parts) == len(gold_parts) == 1 or (
        len(parts) != len(gold_parts) and _NO_LIST.search(left + right)
    ):
        return _decide_part(left, right, latex_equal)
    free = {brackets, gold_brackets} <= {"", "{}"}
    if len(parts) != len(gold_parts) or (brackets != gold_brackets and not free):
        return "different"
    if len(parts) > _MAX_DECIDED:
        return "bounds"
    remaining = list(gold_parts)
    for part in parts:
        for other in remaining if free else remaining[:1]:
            if named_otherwise(part, other):  # a = 1 is not b = 1
                continue
            verdict = _decide_part(part, other, latex_equal)
            if verdict == "equal":
                remaining.remove(other)
                break
            if verdict != "different":
                return verdict
        else:
            return "different"
    return "equal"


def _sides(stated: str, gold: str) -> tuple[str, str]:
    """Drop the variable that only one side names (`x = 5`), or that both name alike."""
    names = ASSIGNED.match(stated), ASSIGNED.match(gold)
    several = stated.count("=") > 1 and gold.count("=") > 1  # a = 1, b = 2
    if several or (names[0] and names[1] and names[0].group() != names[1].group()):
        return stated, gold
    return unnamed(stated), unnamed(gold)


def _decide_part(stated: str, gold: str, latex_equal: LatexEqual) -> MathVerdict:
    if equal_part(stated, gold):
        return "equal"
    if not is_mathematics(gold):
        return "different"
    stated = without_unit(stated)
    if not is_mathematics(stated) or all(number_of(plain(s)) for s in (stated, gold)):
        return "equal" if equal_part(stated, gold) else "different"
    if beyond_bounds(stated) or beyond_bounds(gold):
        return "bounds"
    equations = ["=" in _SUBSCRIPT.sub("", side) for side in (stated, gold)]
    if equations[0] != equations[1] or _BASE.findall(stated) != _BASE.findall(gold):
        return "different"
    return latex_equal(stated, gold)
