r"""Exact comparison of a stated answer with its gold: numbers, lists and tuples, plain LaTeX.

Numbers are compared as fractions. What is more than a number is compared part by part, then as
normalised text; mathematics that stays different is handed to `latex_equal` where one is given
(`\sqrt{8}` and `2\sqrt{2}`), and is unequal without it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from ahalab.scoring.beyond import beyond_bounds, is_mathematics
from ahalab.scoring.deciding import LatexEqual, MathVerdict, decide
from ahalab.scoring.latex import MAX_LATEX, bare_latex, plain
from ahalab.scoring.naming import (
    ASSIGNED_BACKWARDS,
    name_first,
    named_otherwise,
    normal,
    same_unnamed,
    unnamed,
)
from ahalab.scoring.numbers import Number, read_number
from ahalab.scoring.parts import equal_numbers, equal_part, number_of, split_parts
from ahalab.scoring.text import clean_gold

_LED = re.compile(
    r"^(?:the\s)?(?:(?:final|correct)\s)?answer\s?(?:is|:|=)\s*|^(?:=|\\approx)\s*(?=\S)",
    re.IGNORECASE,
)
_ABOUT = re.compile(r"\\(?:approx|simeq)(?![A-Za-z])")
_LETTERED = re.compile(r"\(([A-Z])\)\s*(?=\S)")
_NO_CHAIN = re.compile(r"[<>!]\s*=|,|;|\b(?:or|and)\b")
_TEXT_UNIT = re.compile(
    r"\\(?:text|mathrm|textrm|mbox)\s*\{\s*(?!or\b|and\b)[A-Za-z][A-Za-z ./]*\}"
    r"(?:\s*\^\s*\{?[23]\}?)?\s*\.?$"
)
_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2,}")
_ALTERNATIVE = re.compile(
    r"(?<![A-Za-z\\])or(?![A-Za-z])|\d,? and \d|\d\s?to\s?\d|\d\s?\$?,?\s?and\s?\$?\d|\\lor\b"
)
_HUGE_POWER = re.compile(r"\^\s*\{?\(?\{?\s*\d+\s*\^|\^\s*\{?\s*\d{5,}")
_MAX_PARTS = 50
_MAX_SIDES = 4  # of a chain `10/3 \\approx 3.33`
_MAX_GOLD_WORDS = 4


@dataclass(frozen=True, slots=True)
class Gold:
    """A gold answer, read once."""

    text: str
    number: Number | None
    parts: tuple[str, ...]  # more than one for a list, a tuple, a set, an interval
    brackets: str  # the pair around the parts, "" without
    latex: str  # as LaTeX still, for a decider


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
    bare = _LED.sub("", plain(text))
    if not re.search(r"[\w\u221e]|\\[A-Za-z]", bare) or not _balanced(text):
        return None
    if len(_WORD.findall(bare)) > _MAX_GOLD_WORDS or "nan" in bare.lower().split():
        return None
    brackets, parts = split_parts(bare if "=" in bare else unnamed(bare))
    number = number_of(unnamed(bare)) if len(parts) == 1 else None
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
    bare = _LED.sub("", plain(stated))
    if normal(bare) == normal(gold.text):
        return "equal"
    if _HUGE_POWER.search(stated):
        return "bounds"
    if "=" not in gold.text:
        bare, stated = _ends_in(bare), _ends_in(stated)
    sides = [_LED.sub("", side.strip()) for side in _ABOUT.split(bare)]
    verdicts = [_compare(name_first(side), gold) for side in sides[:_MAX_SIDES]]
    if "equal" in verdicts:
        return "equal"
    if verdicts == ["different"]:
        return "different"
    if _same_without_unit(stated, gold):
        return "equal"
    return "different" if latex_equal is None else decide(stated, gold.latex, latex_equal)


def gold_fault(gold: Gold, latex_equal: LatexEqual) -> str | None:
    """Say why a decider could not work with a gold: it can't read it, or calls it unequal.

    Args:
        gold: The gold, read.
        latex_equal: The decider.

    Returns:
        None when it can, or would not be asked (a number, a word, a ratio).
    """
    for part in split_parts(gold.latex)[1]:
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


def _same_without_unit(stated: str, gold: Gold) -> bool:
    r"""Compare as text without a unit at the end (`48\pi \text{ cm}^2`)."""
    unit = _TEXT_UNIT.search(stated)
    if unit is None or not stated[: unit.start()].strip(" $"):
        return False
    return normal(stated[: unit.start()]) == normal(gold.text)


def _ends_in(text: str) -> str:
    """Take what a chain of equations ends in, or begins with (`18 = 16 + 2`)."""
    if "=" not in text or "\\begin" in text or _NO_CHAIN.search(text):
        return text
    signs = _equals_signs(text)
    if not signs:
        return text
    first, last = text[: signs[0]], text[signs[-1] + 1 :]
    a, b = number_of(plain(first)), number_of(plain(last))
    if a is not None and (b is None or a.value == b.value):
        return first
    return last if last.strip() and not ASSIGNED_BACKWARDS.match(plain(text)) else text


def _equals_signs(text: str) -> list[int]:
    r"""Return where `=` stands, but for those within braces (`\sum_{n=1}`)."""
    found, depth = [], 0
    for position, character in enumerate(text):
        depth += (character == "{") - (character == "}")
        if character == "=" and depth <= 0:
            found.append(position)
    return found


def _compare(bare: str, gold: Gold) -> Literal["equal", "different", "open"]:
    """Compare without a decider; `different` where two numbers are, `open` where texts are."""
    lettered = _LETTERED.match(bare)
    if lettered is not None:
        if normal(gold.text) == lettered[1]:
            return "equal"
        bare = bare[lettered.end() :]
    if len(gold.parts) == 1 and named_otherwise(bare, gold.text):
        return "open"
    if gold.number is not None:
        number = number_of(unnamed(bare))
        if number is not None:
            return "equal" if equal_numbers(number, gold.number) else "different"
    brackets, parts = split_parts(bare if "=" in gold.text else unnamed(bare))
    if len(parts) > 1 or len(gold.parts) > 1:
        return "equal" if _equal_parts(brackets, parts, gold) else "open"
    return "equal" if same_unnamed(bare, gold.text) else "open"


def _balanced(text: str) -> bool:
    """Say whether the braces of a gold close, so that it can be stated in a box."""
    depth = 0
    for brace in re.findall(r"\\[{}\\]|[{}]", text):
        depth += (brace == "{") - (brace == "}")
        if depth < 0:
            return False
    return depth == 0


def same_value(one: str, other: str) -> bool:
    """Say whether two stated LaTeX answers of one response are the same number or text."""
    a, b = number_of(plain(one[:MAX_LATEX])), number_of(plain(other[:MAX_LATEX]))
    if a is not None and b is not None:
        return a.value == b.value
    return normal(one[:MAX_LATEX]) == normal(other[:MAX_LATEX])


def is_hedged(stated: str, gold: Gold) -> bool:
    """Say whether a statement offers several answers where the gold is one."""
    if len(gold.parts) > 1 or "\\pm" in gold.text or re.search(r"\bor\b", gold.text):
        return False
    return _ALTERNATIVE.search(plain(stated)) is not None


def _equal_parts(brackets: str, parts: Sequence[str], gold: Gold) -> bool:
    if len(parts) != len(gold.parts) or len(parts) > _MAX_PARTS:
        return False
    if brackets != gold.brackets and not {brackets, gold.brackets} <= {"", "{}"}:
        return False
    if gold.brackets not in ("", "{}"):
        return all(equal_part(a, b) for a, b in zip(parts, gold.parts, strict=True))
    left = list(gold.parts)  # a list and a set have no order
    for part in parts:
        match = next((other for other in left if equal_part(part, other)), None)
        if match is None:
            return False
        left.remove(match)
    return True
