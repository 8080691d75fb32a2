"""What value a statement commits to: one number, or several, or none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ahalab.scoring.latex import MAX_LATEX, plain
from ahalab.scoring.numbers import (
    FoundNumber,
    Number,
    find_numbers,
    in_expression,
    read_number,
)

MAX_STATEMENT = 5_000
"""Characters of one statement that are read; a longer one is beyond the bounds."""

_FORMATTING = "*_`$ \t\r\n"
_LEAD = re.compile(
    r"[\s*_`~≈:(\[{\\$\"'“]*(?:(?:about|approximately|roughly|exactly|only|simply|just|therefore"
    r"|thus|now|indeed|actually|equal to|a total of|still|equals|clearly|probably)\s+){0,3}"
    r"[\s*_`(\[{\\$\"'“]*(?:[A-Za-z]\s?=\s?)?",
    re.IGNORECASE,
)
_NOT_LEAD = re.compile(r"(?:not|isn't)\s", re.IGNORECASE)
_NOT = re.compile(r"\b(?:not|isn't|never|instead of|rather than)\s+[$*`]{0,3}$", re.IGNORECASE)
_CONCLUSION = re.compile(
    r"\b(?:so|thus|therefore|hence|i\.e\.|which (?:is|means|makes|gives)|that (?:is|makes|gives)"
    r"|giving|leaving|making|total (?:of|is|was|comes to)|equals|now)\b",
    re.IGNORECASE,
)
_CONTEXT = re.compile(
    r"\b(?:in|for|after|over|of|from|within|during|per|every|each|between|by|on|than|if|all|when"
    r"|step|day|week|month|year|hour)(?:\s(?:the|these|those|all|next|first|last|another|about|her"
    r"|his|their|its|other))?\s[$*`(]{0,3}$",
    re.IGNORECASE,
)
_BETWEEN = re.compile(r"\bbetween\s[$*`(]{0,3}$", re.IGNORECASE)
_MARKS = r"[\s*_`$]*"
_JOINED = re.compile(
    rf"{_MARKS}(?:(?:[A-Za-z%]{{1,12}}\s)?{_MARKS}"
    r"(?:(?P<or>,?\s?\(?\b(?:or|and/or|versus|vs\.?)\b|/)|(?P<range>\bto\b|-|\u2013)"
    r"|,\s?and\b|,|;|\band\b|&|\|)"
    rf"{_MARKS}(?:maybe |perhaps |possibly |even )?)?{_MARKS}"
)
_OR_BEFORE = re.compile(r"\bor\s[$*`(]{0,3}$", re.IGNORECASE)
_DOUBT = re.compile(r"\b(?:might|could|may|maybe|perhaps|possibly|alternatively)\b", re.IGNORECASE)
_OPENING = re.compile(
    r"\s*(?:after|with|in|for|on|if|when|since|because|by|at|given|out of|of|before|from)\b.*?,\s",
    re.IGNORECASE,
)
_ASIDE = re.compile(r"[,;(]\s?[A-Za-z]|\b(?:since|because|as|where|given|check)\b", re.IGNORECASE)
_COMPOUND = re.compile(
    r"\s?(?P<large>hours?|minutes?|dollars?|feet|foot|years?|weeks?|days?|pounds?|meters?)"
    r",?(?: and)? ?(?=\d)"
)
_SMALL = re.compile(r"\s?(minute|second|cent|inch|month|day|hour|ounce|centimeter)(?:es|s)?\b")
_SMALL_UNITS = {
    ("hour", "minute"): 60, ("minute", "second"): 60, ("dollar", "cent"): 100,
    ("feet", "inch"): 12, ("foot", "inch"): 12, ("year", "month"): 12, ("week", "day"): 7,
    ("day", "hour"): 24, ("pound", "ounce"): 16, ("meter", "centimeter"): 100,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Value:
    """What a statement commits to."""

    start: int  # in the cleaned text
    end: int
    kind: Literal["number", "latex", "hedged", "unreadable"]
    number: Number | None = None


def read_number_statement(text: str, start: int, end: int, prose: bool) -> Value | None:
    """Read the value of a statement whose answer is a plain number.

    Args:
        text: Cleaned text.
        start: Where the statement's content begins.
        end: Where it ends.
        prose: Whether the number may stand anywhere in the content, as in a sentence; otherwise it
            must lead.

    Returns:
        The value; None when the content states nothing (a heading, "the answer is found by ...").
    """
    content = text[start : min(end, start + MAX_STATEMENT)]
    if not content.strip():
        return None
    whole = _whole(content, start)
    if whole is not None:
        return whole
    if end - start > MAX_STATEMENT:
        return Value(start, end, "unreadable")
    bare = plain(content) if "\\" in content else content
    concluded = prose and _concludes(bare)
    value = (
        (None if concluded else _leading(bare))
        or _equated(bare)
        or (_chosen(bare) if prose else None)
    )
    if value is None:
        return None
    if bare is content:
        return Value(value.start + start, value.end + start, value.kind, value.number)
    first, last = _trim(content, start)  # positions in plain text cannot be traced back
    return Value(first, last, value.kind, value.number)


def read_latex_statement(text: str, start: int, end: int) -> Value | None:
    """Take the content of a statement as a LaTeX answer; None when it is empty."""
    first, last = _trim(text[start:end], start)
    return None if first >= last else Value(first, last, "latex")


def _whole(content: str, start: int) -> Value | None:
    """Read a content that is one number and its unit; by far the most frequent case."""
    if len(content) > MAX_LATEX and "\\" in content:
        return None
    number = read_number(plain(content))
    if number is None:
        return None
    first, last = _trim(content, start)
    return Value(first, last, "number", number)


def _trim(content: str, start: int) -> tuple[int, int]:
    left = len(content) - len(content.lstrip(_FORMATTING))
    kept = content.strip(_FORMATTING).removesuffix(".")
    return start + left, start + left + len(kept)


def _leading(content: str) -> Value | None:
    """Read a number that the content leads with, unless an equation goes on from it."""
    lead = _LEAD.match(content)
    if lead is None:
        return None
    found = _stated(content)
    if not found or (found[0].start > lead.end() and not _rejected(content, lead.end(), found[0])):
        return None
    equals = content.find("=", found[0].end)
    if equals >= 0 and not _ASIDE.search(content, found[0].end, equals):
        return None
    return _value(content, found, found[0])


def _concludes(content: str) -> bool:
    """Say whether a sentence goes on to conclude with an equation ("4/5 of them, so ... = 160")."""
    cue = _CONCLUSION.search(content)
    return cue is not None and content.find("=", cue.end()) >= 0


def _rejected(content: str, lead: int, found: FoundNumber) -> bool:
    """Say whether only a rejected value stands before a number ("not 18 but 20")."""
    return _NOT_LEAD.match(content, lead) is not None and found.start - lead < 60


def _equated(content: str) -> Value | None:
    """Read an equation: the number after its last `=`, else the lone number before its first."""
    equals = content.rfind("=")
    if equals < 0:
        return None
    right = content[equals + 1 :]
    value = _leading(right)
    if value is not None and value.kind == "number":
        shift = equals + 1
        return Value(value.start + shift, value.end + shift, value.kind, value.number)
    left = content[: content.find("=")]
    number = read_number(left)
    if number is not None:
        first, last = _trim(left, 0)
        return Value(first, last, "number", number)
    return value and Value(value.start + equals + 1, value.end + equals + 1, value.kind)


def _chosen(content: str) -> Value | None:
    """Read a sentence: the first number after its last word of conclusion that is no context."""
    stated = _stated(content)
    return None if not stated else _value(content, stated, _concluded(content, stated))


def _stated(content: str) -> list[FoundNumber]:
    found = find_numbers(content)
    return [f for f in found if not _NOT.search(content, max(0, f.start - 20), f.start)]


def _value(content: str, stated: Sequence[FoundNumber], chosen: FoundNumber) -> Value:
    if in_expression(content, chosen):
        return Value(chosen.start, chosen.end, "unreadable")
    compound = _compound(content, stated, chosen)
    if compound is not None:
        return compound
    kind: Literal["number", "hedged"] = "hedged" if _hedged(content, stated, chosen) else "number"
    return Value(chosen.start, chosen.end, kind, chosen.number)


def _concluded(content: str, stated: Sequence[FoundNumber]) -> FoundNumber:
    starts = [cue.end() for cue in _CONCLUSION.finditer(content) if cue.end() <= stated[-1].start]
    opening = _OPENING.match(content)
    if opening is not None and opening.end() <= stated[-1].start:
        starts.insert(0, opening.end())
    for start in [*reversed(starts[-20:]), 0]:
        clause = [f for f in stated if f.start >= start]
        candidate = next((f for f in clause if not _is_context(content, f)), clause[-1])
        if not in_expression(content, candidate):
            return candidate
    return stated[-1]


def _is_context(content: str, found: FoundNumber) -> bool:
    return _CONTEXT.search(content, max(0, found.start - 24), found.start) is not None


def _compound(content: str, stated: Sequence[FoundNumber], chosen: FoundNumber) -> Value | None:
    """Read "2 hours and 30 minutes" in its larger unit."""
    large = _COMPOUND.match(content, chosen.end)
    at = stated.index(chosen) + 1
    if large is None or at >= len(stated) or stated[at].start != large.end():
        return None
    small = _SMALL.match(content, stated[at].end)
    unit = large["large"].removesuffix("s")
    parts = _SMALL_UNITS.get((unit, small[1])) if small else None
    whole, part = chosen.number.value, stated[at].number.value
    if parts is None or small is None or whole is None or part is None or not 0 <= part < parts:
        return None
    return Value(chosen.start, small.end(), "number", Number(whole + part / parts))


def _hedged(content: str, stated: Sequence[FoundNumber], chosen: FoundNumber) -> bool:
    """Say whether other values are offered beside the chosen one ("18 or 20", "5, 6 or 7")."""
    at = stated.index(chosen)
    if _OR_BEFORE.search(content, max(0, chosen.start - 8), chosen.start):
        return True
    if at:
        before = stated[at - 1]
        join = _JOINED.fullmatch(content, before.end, chosen.start)
        if join is not None and before.number.value != chosen.number.value:
            between = _BETWEEN.search(content, max(0, before.start - 16), before.start)
            return join["or"] is not None or between is not None
    for left, right in zip(stated[at:], stated[at + 1 :], strict=False):
        joined = _JOINED.fullmatch(content, left.end, right.start)
        if joined is None and not _DOUBT.search(content, left.end, min(right.start, left.end + 80)):
            return False
        if left.number.value != right.number.value:
            return True
    return False
