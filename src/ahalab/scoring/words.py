"""English number words, read into exact integers ("one hundred and five" is 105)."""

from __future__ import annotations

import re
from collections.abc import Sequence

_UNITS = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7,
    "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14,
    "fifteen": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19,
}  # fmt: skip
_TENS = {
    "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70,
    "eighty": 80, "ninety": 90,
}  # fmt: skip
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_WORD = rf"(?:{'|'.join(sorted([*_UNITS, *_TENS, *_SCALES, 'hundred'], key=len, reverse=True))})"
_RUN = re.compile(rf"\b{_WORD}(?:(?:[ -]|,\s|\s?-\s?| and ){_WORD}){{0,30}}\b", re.IGNORECASE)
_PRONOUN = re.compile(
    r"\b(?:no|any|every|each|this|that|the|which|last|first|another|some)\s$", re.IGNORECASE
)
_UNIT = re.compile(r"(?:\s?[A-Za-z]+){0,4}[.!]?")


def find_words(text: str) -> list[tuple[int, int, int]]:
    """List the number words of a text.

    Args:
        text: Any text.

    Returns:
        Triples (start, end, value); a run that is no well-formed numeral ("two three") is split
        into its words.
    """
    found = []
    for run in _RUN.finditer(text):
        if run.group().lower() == "one" and _PRONOUN.search(
            text, max(0, run.start() - 10), run.start()
        ):
            continue
        value = _value(_split(run.group()))
        if value is not None:
            found.append((run.start(), run.end(), value))
            continue
        for word in re.finditer(_WORD, run.group(), re.IGNORECASE):
            single = _value([word.group().lower()])
            if single is not None:
                found.append((run.start() + word.start(), run.start() + word.end(), single))
    return found


def read_words(text: str) -> int | None:
    """Read a text that is one number in words and at most a unit; None when it is not."""
    if len(text) > 300:
        return None
    negative = re.match(r"(?:minus|negative)\s+", text, re.IGNORECASE)
    rest = text[negative.end() :] if negative else text
    run = _RUN.match(rest)
    if run is None or not _UNIT.fullmatch(rest, run.end()) or " or " in rest[run.end() :]:
        return None
    value = _value(_split(run.group()))
    return value if value is None or negative is None else -value


def _split(run: str) -> list[str]:
    return [word for word in re.split(r"[\s,-]+", run.lower()) if word != "and"]


def _value(words: Sequence[str]) -> int | None:
    """Add up one numeral; None when the words do not follow the grammar of numerals."""
    total, group, last_scale = 0, 0, 10**15
    room = 1_000  # what the group may still take: below 100 after hundred, below 10 after tens
    started = False
    for word in words:
        if word in _SCALES:
            scale = _SCALES[word]
            if not started or scale >= last_scale:
                return None
            total += group * scale
            group, last_scale, room, started = 0, scale, 1_000, False
        elif word == "hundred":
            if not 1 <= group <= 99:
                return None
            group, room = group * 100, 100
        else:
            add = _UNITS.get(word, _TENS.get(word, 0))
            if add >= room:
                return None
            group, started = group + add, True
            room = 10 if word in _TENS else 1
    return total + group
