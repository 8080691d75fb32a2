"""Where a response states its answer: the explicit statements, found in one linear pass each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ahalab.scoring.patterns import PATTERN_TAIL

_HASHES = re.compile(r"####+[^\S\n]*([^\n#]*)")
_BRACE = re.compile(r"\\[{}\\]|[{}]")
_BOX = re.compile(r"\\(?:boxed|fbox|framebox)[^\S\n]*(?:\{|(\\?[\w.,%$-]+))")
_TAG = re.compile(r"<(/?)answer>", re.IGNORECASE)
_PHRASE = re.compile(
    r"(?:\b(?:[Aa]nswers?|ANSWER)\b[*_]{0,3}"
    r"(?:\s(?:to|for|of|in)\s[^.:=\n]{1,80}?)?"
    r"(?:\s?[*_]{0,3}:[*_]{0,3}|\s(?:is|was|are|should be|must be|would be|will be|equals|becomes"
    r"|comes to|=|[-\u2013\u2014])(?![\w]):?[*_]{0,3}|\s?=)"
    r"|^[^\S\n]*\**A\s?:\**)",
    re.MULTILINE,
)
_IT_IS = r"(?:it is|it's|that is|that's|this is|the total is|the result is|the sum is)"
_CORRECTION = re.compile(
    r"\b(?:[Ww]ait|[Aa]ctually|[Ss]orry|[Cc]orrection|[Oo]ops|[Hh]old on)\b"
    rf"(?:[^.\n]{{0,80}}?\b(?:{_IT_IS}|it should be|should be|make that|it must be|is actually|is)"
    rf"|[^\n]{{0,120}}?\.\s(?:[Ss]o|Thus|Therefore|Hence),?\s{_IT_IS})\s"
    r"(?=[*$\\ ]{0,4}-?\d)"
)
_PROSE = (
    (_PHRASE, "statement", ("nswer", "NSWER", "A:", "A :")),
    (_CORRECTION, "correction", ("ait", "ctually", "orry", "orrection", "ops", "old on")),
)
_SENTENCE_END = re.compile(r"\n|[.!?](?=[\s*)\"']|$)|。|।")
_MAX_SENTENCE = 400  # characters of a stated answer in prose


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
    for match in _HASHES.finditer(text, start, end):
        closed = match.end() < len(text)
        yield Statement(match.start(), match.start(1), match.end(1), match.end(), "hashes", closed)


def boxes(text: str, start: int, end: int) -> Iterator[Statement]:
    r"""Find the `\boxed{...}` with balanced braces, and the brace-less ones; not inside another."""
    matches = list(_BOX.finditer(text, start, end))
    if not matches:
        return
    closing = _matching_braces(text, matches[0].start(), end)
    free_from = start
    for match in matches:
        if match.start() < free_from:
            continue
        if match[1] is not None:
            yield Statement(
                match.start(), match.start(1), match.end(1), match.end(), "boxed",
                match.end() < len(text),
            )  # fmt: skip
        elif (close := closing.get(match.end() - 1)) is not None:
            free_from = close + 1
            yield Statement(match.start(), match.end(), close, close + 1, "boxed", True)


def _matching_braces(text: str, start: int, end: int) -> dict[int, int]:
    opened: list[int] = []
    closing: dict[int, int] = {}
    for match in _BRACE.finditer(text, start, end):
        if match.group() == "{":
            opened.append(match.start())
        elif match.group() == "}" and opened:
            closing[opened.pop()] = match.start()
    return closing


def tags(text: str, start: int, end: int) -> Iterator[Statement]:
    """Find the `<answer>...</answer>`; one left open at the very end counts to the end."""
    opened: re.Match[str] | None = None
    for match in _TAG.finditer(text, start, end):
        if not match[1]:
            opened = match
        elif opened is not None:
            yield Statement(
                opened.start(), opened.end(), match.start(), match.end(), "answer_tag", True
            )
            opened = None
    if opened is not None and text[opened.end() : end].strip():
        yield Statement(opened.start(), opened.end(), end, end, "answer_tag", False)


def phrases(text: str, start: int, end: int) -> Iterator[Statement]:
    """Find "the answer is N", "Answer: N", `A: N` and corrections ("wait, it is N")."""
    for pattern, rule, hints in _PROSE:
        if not any(hint in text for hint in hints):  # far cheaper than the pattern
            continue
        for match in pattern.finditer(text, start, end):
            stop = sentence_end(text, match.end(), end)
            yield Statement(match.start(), match.end(), stop, stop, rule, stop < len(text) - 1)


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
    """Find every explicit statement of a region, in the order of where they begin.

    Args:
        text: Cleaned response.
        start: Where the region begins.
        end: Where it ends.
        pattern: The asked pattern, when the answer was asked for in one.

    Returns:
        Statements; what a cut-off or empty one is worth is for the caller.
    """
    found = list(phrases(text, start, end))
    if "####" in text:
        found += hashes(text, start, end)
    if "\\boxed" in text or "\\fbox" in text:
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
