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
    scan_numbers,
)
from ahalab.scoring.sentence import concluded, concludes

MAX_STATEMENT = 5_000
"""Characters of one statement that are read; a longer one is beyond the bounds."""

_FORMATTING = "*_`$ \t\r\n"
_LEAD = re.compile(
    r"[\s*_`~≈:(\[{\\$\"'“‘«„]*(?:(?:about|approximately|roughly|exactly|only|simply|just|therefore"
    r"|thus|now|indeed|actually|equal to|a total of|still|equals|clearly|probably|around|nearly"
    r"|almost"
    r"|to be|the number|the value|given by|somewhere|likely)\s+){0,3}"
    r"[\s*_`~≈(\[{\\$\"'“‘«„]*(?:[A-Za-z]\s?=\s?)?"
    r"(?:(?:USD|EUR|GBP|CHF|CAD|AUD|INR|JPY|CNY|[A-Z]{1,2}(?=[$€£¥]))\s?)?",
    re.IGNORECASE,
)
_NOT_LEAD = re.compile(r"(?:not|isn't)\s", re.IGNORECASE)
_NOT = re.compile(
    r"(?:\b(?:not|never|neither|nor|cannot|instead of|rather than|anything but|other than|except"
    r"|nicht)(?:\s(?:be|equal to|exactly|the number))?\s+|n['’]t\s(?:be\s)?|(?:≠|!=|\\neq?)\s?"
    r"|\b(?:\w{2,}er|more|less) than\s+|\b(?:more|less|fewer) than\s+"
    r"|(?<![<\w/])\w{1,12}\s?[<>≥≤]=?\s?|~~)[$*`]{0,3}$",
    re.IGNORECASE,
)
_IS_WRONG = re.compile(
    r"[*$`]{0,4}(?:\s(?!because|since|as|if|when|or|and)[a-z]+){0,2}?\s(?:is|are|was|were"
    r"|would be) (?:clearly |obviously )?"
    r"(?:wrong|incorrect|false|not (?:right|correct|the answer)|too (?:big|small|large|high|low"
    r"|many|few|much))\b",
    re.IGNORECASE,
)
_UNSOLVED = re.compile(  # "2x = 36" says what twice x is
    r"[\s*$(]*(?:(?:so|then|thus|hence|now|we have|we get|this gives|that is|i\.e\.),?\s)?"
    r"(?:\d+\s?[a-z]|[a-z]\s[-+*/]\s\d+|\d+\s[-+*/]\s[a-z])(?:\s?[-+*/]\s?\d*\s?[a-z]?)?\s*",
    re.IGNORECASE,
)
_BETWEEN = re.compile(r"\bbetween\s[$*`(]{0,3}$", re.IGNORECASE)
_MARKS = r"[\s*_`$]*"
_JOINED = re.compile(
    rf"{_MARKS}(?:(?:[A-Za-z%]{{1,12}}\s)?{_MARKS}"
    r"(?:(?P<or>,?\s?\(?\b(?:or|and/or|versus|vs\.?|oder|ou|oppure|или|або)\b,?|/|或者?|または"
    r"|또는|أو|±|\\pm|\+/-)|(?P<range>\bto\b|-|\u2013|~|\bbis\b)"
    r"|,\s?and\b|,|;|\band\b|&|\||\s\(?[B-Z][).:])"
    rf"{_MARKS}(?:maybe |perhaps |possibly |even )?)?{_MARKS}"
)
_AND = re.compile(r"\s?(?:,\s?(?:and|or)|,|and|or|to)\s[$*]{0,2}")
_OR_AHEAD = re.compile(
    r"[\s*_`$)\]}]{0,8}(?:[A-Za-z]{1,12}\s)?"
    r"(?:,?\s?\(?(?:or|and/or|oder|ou)\b|[-\u2013~]\s?\d|to\s\d)"
)
_MAX_AHEAD = 200  # characters after a captured value that may show it to be cut short
_OR_BEFORE = re.compile(r"\bor\s[$*`(]{0,3}$", re.IGNORECASE)
_DOUBT = re.compile(
    r"\b(?:might|could|may|maybe|perhaps|possibly|alternatively|otherwise|else)\b"
    r"|\b(?:or|another \w+ (?:is|gives|says)|option \w)\b[^.;\d]{0,25}$",
    re.IGNORECASE,
)
_IN_BRACKETS = re.compile(r"\s?[a-z]{0,12}\s?\([$€£]?$")
_ASIDE = re.compile(r"[,;(]\s?[A-Za-z]|\b(?:since|because|as|where|given|check)\b", re.IGNORECASE)
_COMPOUND = re.compile(
    r"\s?(?P<large>hours?|hrs?|h|minutes?|mins?|dollars?|euros?|feet|foot|ft|years?|weeks?|days?"
    r"|pounds?|lbs?|meters?|m)?\.?,?(?: and)? ?(?=\d)"
)
_SMALL = re.compile(
    r"\s?(minute|min|m|second|sec|cent|inch|in|month|day|hour|ounce|oz|centimeter|cm)(?:es|s)?\b"
)
_SHORT_UNITS = {
    "hr": "hour", "h": "hour", "min": "minute", "m": "minute", "sec": "second", "ft": "foot",
    "feet": "foot", "lb": "pound", "in": "inch", "oz": "ounce", "cm": "centimeter",
    "euro": "dollar", "": "dollar",
}  # fmt: skip
_SMALL_UNITS = {
    ("hour", "minute"): 60, ("minute", "second"): 60, ("dollar", "cent"): 100,
    ("foot", "inch"): 12, ("year", "month"): 12, ("week", "day"): 7,
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
    concluded = prose and concludes(bare)
    if prose and "=" not in bare:
        value = _chosen(bare)
    else:
        value = (None if concluded else _leading(bare)) or _equated(bare)
        value = value or (_chosen(bare) if prose else None)
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


def not_cut_short(text: str, value: Value | None, end: int) -> Value | None:
    """Judge a captured value by what goes on from it on its line (`18 or 20`, `18.5`).

    Args:
        text: Cleaned text.
        value: What the group of the asked pattern captured.
        end: Where the group ends.

    Returns:
        The value; hedged where a hedge goes on, unreadable where another number does.
    """
    if value is None:
        return None
    stop = text.find("\n", end, end + _MAX_AHEAD)
    stop = min(len(text), end + _MAX_AHEAD) if stop < 0 else stop
    if _OR_AHEAD.match(text, end, stop):
        return Value(value.start, value.end, "hedged", value.number)
    number = read_number(plain(text[value.start : value.end][:MAX_LATEX]))
    if number is None:
        return value
    whole = read_number_statement(text, value.start, stop, prose=False)
    if whole is None or whole.kind == "unreadable" or whole.number is None:
        return value
    if whole.kind == "hedged":
        return Value(value.start, value.end, "hedged", value.number)
    same = whole.number.value == number.value
    return value if same else Value(value.start, value.end, "unreadable", value.number)


def joined_numbers(text: str, start: int, end: int, chosen: Value) -> tuple[int, int]:
    """Find where the list begins and ends that a number of a sentence belongs to.

    Args:
        text: Cleaned text.
        start: Where the sentence begins.
        end: Where it ends.
        chosen: The number.

    Returns:
        The positions, those of the number itself where it stands alone.
    """
    found = list(scan_numbers(text, start, min(end, start + MAX_STATEMENT)))
    at = next((i for i, number in enumerate(found) if number.start == chosen.start), None)
    if at is None:
        return chosen.start, chosen.end
    first = last = at
    while first and _AND.fullmatch(text, found[first - 1].end, found[first].start):
        first -= 1
    while last + 1 < len(found) and _AND.fullmatch(text, found[last].end, found[last + 1].start):
        last += 1
    return found[first].start, max(chosen.end, found[last].end)


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
    if value is not None and _UNSOLVED.fullmatch(content, 0, equals):
        return Value(value.start + equals + 1, value.end + equals + 1, "unreadable")
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
    return None if not stated else _value(content, stated, concluded(content, stated))


def _stated(content: str) -> list[FoundNumber]:
    found = find_numbers(content)
    stated: list[FoundNumber] = []
    rejected: FoundNumber | None = None
    for number in found:
        if rejected is not None and _JOINED.fullmatch(content, rejected.end, number.start):
            rejected = number  # "not 20 or 22"
        elif _NOT.search(content, max(0, number.start - 20), number.start) or _IS_WRONG.match(
            content, number.end
        ):
            rejected = number
        else:
            rejected = None
            stated.append(number)
    return stated


def _value(content: str, stated: Sequence[FoundNumber], chosen: FoundNumber) -> Value:
    if in_expression(content, chosen):
        return Value(chosen.start, chosen.end, "unreadable")
    compound = _compound(content, stated, chosen)
    if compound is not None:
        return compound
    kind: Literal["number", "hedged"] = "hedged" if _hedged(content, stated, chosen) else "number"
    return Value(chosen.start, chosen.end, kind, chosen.number)


def _compound(content: str, stated: Sequence[FoundNumber], chosen: FoundNumber) -> Value | None:
    """Read "2 hours and 30 minutes" in its larger unit."""
    large = _COMPOUND.match(content, chosen.end)
    at = stated.index(chosen) + 1
    if large is None or at >= len(stated) or stated[at].start != large.end():
        return None
    small = _SMALL.match(content, stated[at].end)
    if large["large"] is None and content[chosen.start] not in "$€£":
        return None
    parts = _SMALL_UNITS.get((_unit(large["large"]), _unit(small[1]))) if small else None
    whole, part = chosen.number.value, stated[at].number.value
    if parts is None or small is None or whole is None or part is None or not 0 <= part < parts:
        return None
    return Value(chosen.start, small.end(), "number", Number(whole + part / parts))


def _unit(name: str | None) -> str:
    """Name a unit in the singular and in full."""
    singular = "" if name is None else name.removesuffix("s")
    return _SHORT_UNITS.get(singular, singular)


def _hedged(content: str, stated: Sequence[FoundNumber], chosen: FoundNumber) -> bool:
    """Say whether other values are offered beside the chosen one ("18 or 20", "5, 6 or 7")."""
    at = stated.index(chosen)
    if _OR_BEFORE.search(content, max(0, chosen.start - 8), chosen.start):
        return True
    if at:
        before = stated[at - 1]
        join = _JOINED.fullmatch(content, before.end, chosen.start)
        if join is not None and not _same(before, chosen):
            between = _BETWEEN.search(content, max(0, before.start - 16), before.start)
            return join["or"] is not None or between is not None
    for left, right in zip(stated[at:], stated[at + 1 :], strict=False):
        joined = _JOINED.fullmatch(content, left.end, right.start) or _restated(
            content, left, right
        )
        if joined is None and not _DOUBT.search(content, left.end, min(right.start, left.end + 80)):
            return False
        if not _same(left, right):
            return True
    return False


def _same(one: FoundNumber, other: FoundNumber) -> bool:
    """Say whether two numbers are the same value, or a percentage and its share."""
    a, b = one.number, other.number
    if a.value is None or b.value is None or a.percent == b.percent:
        return a.value == b.value
    share, percent = (b.value, a.value) if a.percent else (a.value, b.value)
    return share in (percent, percent / 100)


def _restated(content: str, left: FoundNumber, right: FoundNumber) -> re.Match[str] | None:
    """Find that a number stands again in brackets ("20 dollars ($18)"); a share may differ."""
    if content[right.end : right.end + 1] != ")":
        return None
    return _IN_BRACKETS.fullmatch(content, left.end, right.start)
