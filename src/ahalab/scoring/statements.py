"""Where a response states its answer: the explicit statements, found in one linear pass each."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from ahalab.scoring.patterns import PATTERN_TAIL

MAX_KEPT = 1_000
"""Statements of one kind, and words that may begin one, that are kept from either end of a text;
none between them is read."""

_MAX_BRACES = 1_000_000  # looked at from the first box on
_MAX_SENTENCE = 400  # characters of a stated answer in prose

_Found = TypeVar("_Found")


def _ends(found: Iterator[_Found]) -> list[_Found]:
    """Keep what stands at both ends of a response, so that a million statements cost little."""
    first = list(islice(found, MAX_KEPT))
    return first if len(first) < MAX_KEPT else [*first, *deque(found, maxlen=MAX_KEPT)]


class _Phrase:
    """A phrase, with its cues: the letters after its first one, found far faster than itself."""

    def __init__(self, cues: Sequence[str], pattern: str) -> None:
        self._cues = cues
        self._cue = re.compile("|".join(cues))
        self._pattern = re.compile(pattern)

    def spans(self, text: str, start: int, end: int) -> list[tuple[int, int]]:
        """Find the phrase where one of its cues stands."""
        if not any(map(text.__contains__, self._cues)):
            return []
        cues = _ends(self._cue.finditer(text, start + 1, end))
        phrases = (self._pattern.match(text, cue.start() - 1, end) for cue in cues)
        return [phrase.span() for phrase in phrases if phrase]


_HASHES = re.compile(r"####+[^\S\n]*([^\n#]*)")
_BRACE = re.compile(r"\\[{}\\]|[{}]")
_BOX = re.compile(r"\\(?:boxed|fbox|framebox)[^\S\n]*(?:\{|(\\?[\w.,%$-]+))")
_TAG = re.compile(r"<(/?)answer>", re.IGNORECASE)
_ANSWER = _Phrase(
    ("nswer", "NSWER"),
    r"\b(?:[Aa]nswers?|ANSWER)\b[*_]{0,3}"
    r"(?:\s(?:to|for|of|in)\s[^.:=\n]{1,80}?)?"
    r"(?:\s?[*_]{0,3}:[*_]{0,3}|\s(?:is|was|are|should be|must be|would be|will be|equals|becomes"
    r"|comes to|=|[-\u2013\u2014])(?![\w]):?[*_]{0,3}|\s?=)",
)
_LABEL = re.compile(r"\n([^\S\n]*\**A ?:\**)")  # a literal first: searched for far faster than ^
_LABEL_AT_START = re.compile(r"^[^\S\n]*\**A ?:\**", re.MULTILINE)
_IT_IS = r"(?:it is|it's|that is|that's|this is|the total is|the result is|the sum is)"
_CORRECTION = _Phrase(
    ("ait", "ctually", "orry", "orrection", "ops", "old on"),
    r"\b(?:[Ww]ait|[Aa]ctually|[Ss]orry|[Cc]orrection|[Oo]ops|[Hh]old on)\b"
    rf"(?:[^.\n]{{0,80}}?\b(?:{_IT_IS}|it should be|should be|make that|it must be|is actually|is)"
    rf"|[^\n]{{0,120}}?\.\s(?:[Ss]o|Thus|Therefore|Hence),?\s{_IT_IS})\s"
    r"(?=[*$\\ ]{0,4}-?\d)",
)
_SENTENCE_END = re.compile(r"\n|[.!?](?=[\s*)\"']|$)|。|।")


@dataclass(frozen=True, slots=True)
class Statement:
    """One place where the response states an answer outright."""

    start: int  # of the whole statement, marker included
    value_start: int
    value_end: int
    end: int  # of the whole statement, closing marker included
    rule: str  # hashes | boxed | answer_tag | statement | correction | pattern
    closed: bool  # its end is marked, so a cut response holds all of it


def hashes(text: str, start: int, end: int) -> Iterator[Statement]:
    """Find the `#### N` lines."""
    for match in _ends(_HASHES.finditer(text, start, end)):
        closed = match.end() < len(text)
        yield Statement(match.start(), match.start(1), match.end(1), match.end(), "hashes", closed)


def boxes(text: str, start: int, end: int) -> Iterator[Statement]:
    r"""Find the `\boxed{...}` with balanced braces, and the brace-less ones; not inside another."""
    for match, close in _ends(_outer_boxes(text, start, end)):
        if close is None:
            yield Statement(
                match.start(), match.start(1), match.end(1), match.end(), "boxed",
                match.end() < len(text),
            )  # fmt: skip
        else:
            yield Statement(match.start(), match.end(), close, close + 1, "boxed", True)


def _outer_boxes(text: str, start: int, end: int) -> Iterator[tuple[re.Match[str], int | None]]:
    """Pair each box with its closing brace, or with None where it has no braces at all."""
    closing: dict[int, int] | None = None
    free_from = start
    for match in _BOX.finditer(text, start, end):
        if match.start() < free_from:
            continue
        if match[1] is not None:
            yield match, None
            continue
        if closing is None:
            closing = _matching_braces(text, match.start(), end)
        close = closing.get(match.end() - 1)
        if close is not None:
            free_from = close + 1
            yield match, close


def _matching_braces(text: str, start: int, end: int) -> dict[int, int]:
    opened: list[int] = []
    closing: dict[int, int] = {}
    for match in islice(_BRACE.finditer(text, start, end), _MAX_BRACES):
        if match.group() == "{":
            opened.append(match.start())
        elif match.group() == "}" and opened:
            closing[opened.pop()] = match.start()
    return closing


def tags(text: str, start: int, end: int) -> Iterator[Statement]:
    """Find the `<answer>...</answer>`; one left open at the very end counts to the end."""
    for opened, closed in _ends(_tag_pairs(text, start, end)):
        if closed is not None:
            yield Statement(
                opened.start(), opened.end(), closed.start(), closed.end(), "answer_tag", True
            )
        elif text[opened.end() : end].strip():
            yield Statement(opened.start(), opened.end(), end, end, "answer_tag", False)


def _tag_pairs(
    text: str, start: int, end: int
) -> Iterator[tuple[re.Match[str], re.Match[str] | None]]:
    """Pair each closing tag with the last opening one before it; None closes one left open."""
    opened: re.Match[str] | None = None
    for match in _TAG.finditer(text, start, end):
        if not match[1]:
            opened = match
        elif opened is not None:
            yield opened, match
            opened = None
    if opened is not None:
        yield opened, None


def phrases(text: str, start: int, end: int) -> Iterator[Statement]:
    """Find "the answer is N", "Answer: N", `A: N` and corrections ("wait, it is N")."""
    stated = _ANSWER.spans(text, start, end) + _labels(text, start, end)
    corrected = _CORRECTION.spans(text, start, end)
    for rule, spans in (("statement", stated), ("correction", corrected)):
        free_from = start
        for first, value_start in sorted(spans):
            if first >= free_from:  # not inside another phrase
                free_from = value_start
                stop = sentence_end(text, value_start, end)
                yield Statement(first, value_start, stop, stop, rule, stop < len(text) - 1)


def _labels(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Find the lines that begin with `A:`."""
    if "A:" not in text and "A :" not in text:
        return []
    spans = [label.span(1) for label in _ends(_LABEL.finditer(text, start, end))]
    at_start = _LABEL_AT_START.match(text, start, end)
    return spans if at_start is None else [at_start.span(), *spans]


def patterned(text: str, start: int, end: int, pattern: re.Pattern[str]) -> Iterator[Statement]:
    """Find the matches of the asked pattern near the end, whose first group is the value."""
    for match in pattern.finditer(text, max(start, end - PATTERN_TAIL), end):
        if match[1] is not None:
            yield Statement(
                match.start(), match.start(1), match.end(1), match.end(), "pattern",
                match.end() < len(text),
            )  # fmt: skip


def sentence_end(text: str, start: int, end: int) -> int:
    """Find where the sentence ends that is running at a position; bounded."""
    limit = min(end, start + _MAX_SENTENCE)
    skip = start
    while skip < limit and text[skip] in " \t\n*_:":
        skip += 1
    match = _SENTENCE_END.search(text, skip, limit)
    return limit if match is None else match.start()


def asked_rule(answer_format: str) -> str:
    """Name the rule that reads an asked format.

    Raises:
        ValueError: The format is not known.
    """
    if answer_format.startswith("pattern:"):
        return "pattern"
    if answer_format in ("hashes", "boxed", "answer_tag"):
        return answer_format
    raise ValueError(
        f"answer format: expected hashes, boxed, answer_tag or pattern:REGEX, "
        f"found {answer_format[:80]!r}."
    )


def find_statements(
    text: str, start: int, end: int, pattern: re.Pattern[str] | None = None
) -> list[Statement]:
    """Find the explicit statements of a region, in the order of where they begin.

    Args:
        text: Cleaned response.
        start: Where the region begins.
        end: Where it ends.
        pattern: The asked pattern, when the answer was asked for in one.

    Returns:
        Statements, of each kind the first and the last ones (MAX_KEPT); what a cut-off or empty
        one is worth is for the caller.
    """
    found = list(phrases(text, start, end))
    if "#" in text:
        found += hashes(text, start, end)
    if "\\" in text:
        found += boxes(text, start, end)
    if "nswer>" in text or "NSWER>" in text:
        found += tags(text, start, end)
    if pattern is not None:
        found += patterned(text, start, end, pattern)
    if len(found) > 1:
        found.sort(key=_position)
    return found


def _position(statement: Statement) -> int:
    return statement.start
