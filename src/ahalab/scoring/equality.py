r"""Exact comparison of a stated answer with its gold: numbers, lists and tuples, plain LaTeX.

Numbers are compared as fractions. What is more than a number is compared part by part, then as
normalised text; mathematics that stays different is handed to `latex_equal` where one is given
(`\sqrt{8}` and `2\sqrt{2}`), and is unequal without it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from ahalab.scoring.beyond import beyond_bounds, is_mathematics, without_unit
from ahalab.scoring.latex import MAX_LATEX, bare_latex, plain
from ahalab.scoring.numbers import Number, read_number
from ahalab.scoring.text import clean_gold

LatexVerdict = Literal["equal", "different", "timeout", "unreadable", "missing"]
"""What a decider says; unreadable: the gold has no reading or does not equal itself; missing: the
decider itself is not installed."""

LatexEqual = Callable[[str, str], LatexVerdict]
"""Decides whether two LaTeX answers, (stated, gold), are equal."""

MathVerdict = LatexVerdict | Literal["bounds"]
"""What a comparison ends with; bounds: too large or too deep, whatever time there is."""

ROUNDED_PLACES = 3
"""A gold with at least this many decimal places may be a rounding."""

_SPACES = re.compile(r"(?<!\\)\\[,;:! ]|\s+")
_SHORT_FRACTION = re.compile(r"\\frac(\d)(\d)")
_ASSIGNED = re.compile(r"^[A-Za-z](?:_\{?\w\}?)?\s*(?:=|\\in\b)\s*(?=\S)")
_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2,}")
_JOIN = re.compile(r",|;|(?<![A-Za-z\\])(?:and|or)(?![A-Za-z])")
_HUGE_POWER = re.compile(r"\^\s*\{?\(?\{?\s*\d+\s*\^|\^\s*\{?\s*\d{5,}")
_CHOICE = re.compile(r"\([A-Z]\)")
_NO_LIST = re.compile(r"[<>]|\\(?:[lg]eq?|cup|in|pm|mp)(?![A-Za-z])")  # a set in another notation
_BASE = re.compile(r"\d_\{?(\d+)")  # 52_8: the base belongs to the value
_SUBSCRIPT = re.compile(r"_\{[^{}]*\}")
_MAX_PARTS = 50
_MAX_DECIDED = 12  # parts compared by a decider, which may be slow
_MAX_GOLD_WORDS = 4


@dataclass(frozen=True, slots=True)
class Gold:
    """A gold answer, read once."""

    text: str
    number: Number | None
    parts: tuple[str, ...]  # more than one for a list, a tuple, a set, an interval
    brackets: str  # the pair around the parts, "" without
    latex: str  # as LaTeX still, for a decider


def equal_numbers(stated: Number, gold: Number) -> bool:
    """Compare two numbers exactly, by the rules of docs/scoring.md.

    A gold given in three or more decimal places may be a rounding: an exact value that rounds to it
    is right. A stated percentage equals the bare percentage; where the gold is no integer it also
    equals the share that it stands for.

    Args:
        stated: The response's number.
        gold: The gold number.

    Returns:
        Whether the stated number is the gold.
    """
    if stated.value is None or gold.value is None:
        return False
    if stated.value == gold.value:
        return True
    if stated.percent and not gold.percent and gold.value.denominator != 1:
        return bool(stated.value / 100 == gold.value)
    if gold.decimals < ROUNDED_PLACES or (stated.decimals and stated.decimals <= gold.decimals):
        return False
    scale = 10**gold.decimals
    distance = abs(stated.value * scale - gold.value * scale)
    return bool(2 * distance <= 1)


@lru_cache(maxsize=4096)
def read_math_gold(gold: str) -> Gold | None:
    """Read a gold answer of a mathematics task.

    Args:
        gold: The gold text, number or LaTeX.

    Returns:
        The gold, or None where it cannot be checked: empty, not a number, prose, or too long.
    """
    text = clean_gold(gold)
    if not text or len(text) > MAX_LATEX or text.lower() in ("nan", "inf", "-inf", "none", "null"):
        return None
    bare = plain(text)
    if len(_WORD.findall(bare)) > _MAX_GOLD_WORDS or "nan" in bare.lower().split():
        return None
    brackets, parts = _parts(bare)
    number = read_number(_unassigned(bare)) if len(parts) == 1 else None
    if number is not None and number.value is None:
        return None
    return Gold(bare, number, parts, brackets, bare_latex(text))


def equal_math(stated: str, gold: Gold, latex_equal: LatexEqual | None = None) -> MathVerdict:
    """Compare a stated LaTeX answer with its gold.

    Args:
        stated: The content of the answer statement, at most MAX_LATEX characters.
        gold: The gold, read.
        latex_equal: Decides what neither numbers, parts nor normalised text decide; without it
            what is undecided is different.

    Returns:
        The verdict; `bounds` where the stated answer is a power beyond the bounds, so that nothing
        decided it.
    """
    if _HUGE_POWER.search(stated):
        return "bounds"
    bare = plain(stated)
    if gold.number is not None:
        number = read_number(_unassigned(bare))
        if number is not None:
            return _said(equal_numbers(number, gold.number))
    brackets, parts = _parts(bare if "=" in gold.text else _unassigned(bare))
    if len(parts) > 1 or len(gold.parts) > 1:
        if _equal_parts(brackets, parts, gold):
            return "equal"
    elif normal(bare) == normal(gold.text) or _same_unassigned(bare, gold.text):
        return "equal"
    return "different" if latex_equal is None else _decide(stated, gold, latex_equal)


def gold_fault(gold: Gold, latex_equal: LatexEqual) -> str | None:
    """Say why a decider could not work with a gold: it can't read it, or calls it unequal.

    Args:
        gold: The gold, read.
        latex_equal: The decider.

    Returns:
        None when it can, or would not be asked (a number, a word, a ratio).
    """
    for part in _parts(gold.latex)[1]:
        if not is_mathematics(part) or read_number(plain(part)):
            continue
        if beyond_bounds(part):
            return "it is beyond the bounds of what is compared"
        verdict = latex_equal(part, part)
        if verdict == "timeout":
            return "comparing it with itself takes too long"
        if verdict in ("unreadable", "different"):
            return "math-verify can't read it, or it does not equal itself"
    return None


def _said(equal: bool) -> LatexVerdict:
    return "equal" if equal else "different"


def _decide(stated: str, gold: Gold, latex_equal: LatexEqual) -> MathVerdict:
    """Settle what the exact rules leave open: part by part where both sides are lists."""
    left, right = _sides(bare_latex(stated), gold.latex)
    brackets, parts = _parts(left)
    gold_brackets, gold_parts = _parts(right)
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
    names = _ASSIGNED.match(stated), _ASSIGNED.match(gold)
    if names[0] and names[1] and names[0].group() != names[1].group():
        return stated, gold
    return _unassigned(stated), _unassigned(gold)


def _decide_part(stated: str, gold: str, latex_equal: LatexEqual) -> MathVerdict:
    if not is_mathematics(gold):
        return _said(_equal_part(stated, gold))
    if _equal_part(stated, gold):
        return "equal"
    stated = without_unit(stated)
    if not is_mathematics(stated) or all(read_number(plain(s)) for s in (stated, gold)):
        return _said(_equal_part(stated, gold))
    if beyond_bounds(stated) or beyond_bounds(gold):
        return "bounds"
    equations = ["=" in _SUBSCRIPT.sub("", side) for side in (stated, gold)]
    if equations[0] != equations[1] or _BASE.findall(stated) != _BASE.findall(gold):
        return "different"
    return latex_equal(stated, gold)


def is_hedged(stated: str, gold: Gold) -> bool:
    """Say whether a statement offers several answers where the gold is one."""
    if len(gold.parts) > 1 or "\\pm" in gold.text or re.search(r"\bor\b", gold.text):
        return False
    return re.search(r"(?<![A-Za-z\\])or(?![A-Za-z])", plain(stated)) is not None


@lru_cache(maxsize=4096)
def normal(text: str) -> str:
    """Normalise plain LaTeX text: spaces, braces of single characters, a final stop."""
    text = _SPACES.sub("", plain(text)).removesuffix(".")
    text = _SHORT_FRACTION.sub(r"\\frac{\1}{\2}", text)
    for command in ("\\dfrac", "\\tfrac", "\\cfrac"):
        text = text.replace(command, "\\frac")
    text = re.sub(r"\{(\w)\}", r"\1", text)
    return text[1:-1] if _CHOICE.fullmatch(text) else text


def _same_unassigned(stated: str, gold: str) -> bool:
    """Compare where one side names a variable (`x = 5`) and the other does not (`5`)."""
    if _ASSIGNED.match(stated) and _ASSIGNED.match(gold):
        return False
    return normal(_unassigned(stated)) == normal(_unassigned(gold))


def _unassigned(text: str) -> str:
    return _ASSIGNED.sub("", text, count=1)


def _equal_parts(brackets: str, parts: Sequence[str], gold: Gold) -> bool:
    if len(parts) != len(gold.parts) or len(parts) > _MAX_PARTS:
        return False
    if brackets != gold.brackets and not {brackets, gold.brackets} <= {"", "{}"}:
        return False
    if gold.brackets not in ("", "{}"):
        return all(_equal_part(a, b) for a, b in zip(parts, gold.parts, strict=True))
    left = list(gold.parts)  # a list and a set have no order
    for part in parts:
        match = next((other for other in left if _equal_part(part, other)), None)
        if match is None:
            return False
        left.remove(match)
    return True


def _equal_part(stated: str, gold: str) -> bool:
    a, b = read_number(_unassigned(stated)), read_number(_unassigned(gold))
    if a is not None and b is not None:
        return equal_numbers(a, b)
    return normal(stated) == normal(gold)


def _parts(text: str) -> tuple[str, tuple[str, ...]]:
    """Split at the top-level commas; a comma between digit groups is no comma."""
    text = text.strip()
    if text.startswith("\\pm"):
        rest = text[3:].strip()
        return "", (rest, f"-{rest}")
    brackets = ""
    body = text.replace("\\{", "{").replace("\\}", "}")
    if len(body) > 1 and body[0] in "([{" and body[-1] in ")]}" and _closes_at_end(body):
        brackets, body = body[0] + body[-1], body[1:-1]
    parts = _split(body)
    if len(parts) == 1:
        return "", (text,)
    return brackets, parts


def _closes_at_end(text: str) -> bool:
    depth = 0
    for position, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if depth == 0:
            return position == len(text) - 1
    return False


def _split(body: str) -> tuple[str, ...]:
    if not _JOIN.search(body) or re.fullmatch(r"[-+$]*\d{1,3}(?:,\d{3})+(?:\.\d+)?\D*", body):
        return (body,)
    parts, depth, start = [], 0, 0
    joins = {match.start(): match.end() for match in _JOIN.finditer(body)}
    for position, character in enumerate(body):
        depth += (character in "([{") - (character in ")]}")
        if depth == 0 and position in joins and position >= start:
            parts.append(body[start:position].strip())
            start = joins[position]
    parts.append(body[start:].strip())
    return tuple(part for part in parts if part)
