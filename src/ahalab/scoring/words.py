"""English number words, read exactly ("one hundred and five" is 105, "two thirds" is 2/3)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction

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
_PARTS = {
    "half": 2, "halve": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6,
    "seventh": 7, "eighth": 8, "ninth": 9, "tenth": 10, "hundredth": 100,
}  # fmt: skip
_WORD = rf"(?:{'|'.join(sorted([*_UNITS, *_TENS, *_SCALES, 'hundred'], key=len, reverse=True))})"
_PART = rf"(?:{'|'.join(_PARTS)})s?\b"
_RUN = re.compile(
    rf"\b(?:(?P<minus>minus|negative)\s)?(?:an?\s(?=hundred|(?:{'|'.join(_SCALES)})\b))?"
    rf"{_WORD}(?:(?:[ -]|,\s|\s?-\s?| and ){_WORD}){{0,30}}\b",
    re.IGNORECASE,
)
_REST = re.compile(
    rf"[ -](?P<parts>{_PART})"
    rf"| and (?P<above>an?|one|two|three|four|five|seven)[ -](?P<below>{_PART})"
    rf"| point(?P<places>(?: {_WORD}){{1,20}})\b",
    re.IGNORECASE,
)
_PRONOUN = re.compile(
    r"\b(?:no|any|every|each|this|that|the|which|last|first|another|some)\s$", re.IGNORECASE
)
_UNIT = re.compile(r"(?:\s?[A-Za-z]+){0,4}[.!]?")
_NO_UNIT = re.compile(r"\b(?:or|is|are|was|were|would|not)\b")


def find_words(text: str) -> list[tuple[int, int, int]]:
    """List the whole numerals of a text in words: of "two thirds" that is the two.

    Args:
        text: Any text.

    Returns:
        Triples (start, end, value); a run that is no well-formed numeral ("two three") is split
        into its words.
    """
    found: list[tuple[int, int, int]] = []
    for run in _RUN.finditer(text):
        if _is_pronoun(text, run):
            continue
        value = _value(_split(run.group()))
        found += _singles(run) if value is None else [(run.start(), run.end(), value)]
    return found


def find_quantities(text: str) -> list[tuple[int, int, Fraction]]:
    """List the numbers in words of a text, with their signs and parts ("minus two thirds").

    Args:
        text: Any text.

    Returns:
        Triples (start, end, value); a run that is no well-formed numeral is split into its words.
    """
    found: list[tuple[int, int, Fraction]] = []
    for run in _RUN.finditer(text):
        if _is_pronoun(text, run):
            continue
        read = _read(text, run)
        if read is not None:
            operand = bool(found) and run.start() - found[-1][1] == 1  # "ten minus seven"
            found.append((run.start(), read[1], abs(read[0]) if operand else read[0]))
        else:
            found += [(start, end, Fraction(value)) for start, end, value in _singles(run)]
    return found


def _is_pronoun(text: str, run: re.Match[str]) -> bool:
    return run.group().lower() == "one" and bool(
        _PRONOUN.search(text, max(0, run.start() - 10), run.start())
    )


def read_words(text: str) -> Fraction | None:
    """Read a text that is one number in words and at most a unit; None when it is not."""
    if len(text) > 300:
        return None
    run = _RUN.match(text)
    read = None if run is None else _read(text, run)
    if read is None or not _UNIT.fullmatch(text, read[1]) or _NO_UNIT.search(text, read[1]):
        return None
    return read[0]


def _read(text: str, run: re.Match[str]) -> tuple[Fraction, int] | None:
    """Read a numeral with the part that may follow it; an ordinal ("twenty-fifth") is none."""
    words = _split(run.group())
    whole = _value(words)
    if whole is None:
        return None
    value, end = Fraction(whole), run.end()
    rest = _REST.match(text, end)
    if rest is not None:
        end = rest.end()
        if rest["places"] is not None:
            digits = "".join(str(_UNITS.get(word, "")) for word in rest["places"].lower().split())
            value += Fraction(int(digits or "0"), 10 ** len(digits))
        elif rest["parts"] is not None:
            if rest["parts"][-1] not in "sS" and whole != 1:
                return None
            value /= _PARTS[rest["parts"].lower().removesuffix("s")]
        else:
            above = _UNITS.get(rest["above"].lower(), 1)
            value += Fraction(above, _PARTS[rest["below"].lower().removesuffix("s")])
    return (-value if run["minus"] else value), end


def _singles(run: re.Match[str]) -> Iterator[tuple[int, int, int]]:
    for word in re.finditer(_WORD, run.group(), re.IGNORECASE):
        single = _value([word.group().lower()])
        if single is not None:
            yield run.start() + word.start(), run.start() + word.end(), single


def _split(run: str) -> list[str]:
    words = [word for word in re.split(r"[\s,-]+", run.lower()) if word != "and"]
    if words[0] in ("minus", "negative"):
        words = words[1:]
    return ["one", *words[1:]] if words[0] in ("a", "an") else words


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
