"""The last sentence that says a number, where a response states nothing more clearly."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from itertools import islice

from ahalab.scoring.countdown import ExpressionError, evaluate
from ahalab.scoring.region import Region
from ahalab.scoring.values import (
    MAX_STATEMENT,
    Value,
    read_latex_statement,
    read_number_statement,
)

_BREAK = re.compile(r"[.!?](?=\s|$|[*)])|。|।")
_RESTATED = re.compile(
    r"\b(?:the (?:problem|question|task|exercise) (?:says|asks|states|is|wants)"
    r"|we (?:are|were) (?:asked|told|given)|asks how)\b",
    re.IGNORECASE,
)
_ITEM = re.compile(r"\s*(?:\d+[.)]|[-*•])\s")
_DIGIT = re.compile(r"\d")
_FOOTER = re.compile(r"\s*[([]?(?:step|page|part)\s\d+ of \d+", re.IGNORECASE)
_MATH = re.compile(  # nothing opens within: else a million openings are each read to the end
    r"\$\$?([^$\n]+)\$|\\\(((?:(?!\\\().)+?)\\\)|\\\[((?:(?!\\\[).)+?)\\\]"
)
_RATIO = re.compile(r"(?<![\d:])\d{1,9}\s?:\s?\d{1,9}(?![\d:])")
_MAX_LINES = 500  # walked back over, from the end
_MAX_SENTENCES = 500  # likewise
_MAX_CHARACTERS = 100_000  # of sentences without a value, likewise


def final_value(
    text: str, region: Region, task: str, prompt: str | None
) -> tuple[Value, str] | None:
    """Read the last sentence of a region that says a value.

    Args:
        text: Cleaned response.
        region: The part that may answer.
        task: gsm8k, math or countdown.
        prompt: The prompt; a sentence copied from it says nothing.

    Returns:
        The value and the rule that took it; None when there is none.
    """
    room = _MAX_CHARACTERS
    for start, end in islice(_sentences_backwards(text, region), _MAX_SENTENCES):
        sentence = text[start:end]
        if text[end : end + 1] == "?" or _RESTATED.search(sentence) or _FOOTER.match(sentence):
            continue
        if prompt and len(sentence) > 20 and sentence.strip() in prompt:
            continue
        found = _read(text, start, end, task)
        if found is not None:
            return found
        room -= min(end - start, MAX_STATEMENT)
        if room < 0:
            return None
    return None


def _read(text: str, start: int, end: int, task: str) -> tuple[Value, str] | None:
    if task == "countdown":
        try:
            evaluate(text[start:end].partition("=")[0])
        except ExpressionError:
            return None
        return Value(start, end, "latex"), "final_expression"
    if task == "math":
        segments = list(_MATH.finditer(text, start, end))
        if segments:
            group = segments[-1].lastindex or 1
            value = read_latex_statement(text, *segments[-1].span(group))
            return None if value is None else (value, "final_sentence")
        ratio = _RATIO.search(text, start, end)
        if ratio is not None:
            return Value(ratio.start(), ratio.end(), "latex"), "final_sentence"
    number = read_number_statement(text, start, end, prose=True)
    if number is None:
        return None
    if _lists_numbers(text, start, end):
        number = Value(number.start, number.end, "hedged", number.number)
    if task == "math" and number.kind == "number":
        number = Value(number.start, number.end, "latex", number.number)
    return number, "final_equation" if "=" in text[start : number.start] else "final_sentence"


def _lists_numbers(text: str, start: int, end: int) -> bool:
    """Say whether a line of digits only follows another one: a list, not an answer."""
    line = text[start:end].strip(" .,")
    if not line.isdigit():
        return False
    before = text[max(0, start - 80) : start].rstrip().rpartition("\n")[2].strip(" .,")
    return before.isdigit() and before.lstrip("0") != line.lstrip("0")


def _sentences_backwards(text: str, region: Region) -> Iterator[tuple[int, int]]:
    """Walk the sentences from the last; a list counts after the line that states its total."""
    walked, end = 0, region.start + len(text[region.start : region.end].rstrip())
    items: list[tuple[int, int]] = []
    while end > region.start and walked < _MAX_LINES:
        start = max(text.rfind("\n", region.start, end) + 1, region.start)
        walked += 1
        item = _ITEM.match(text, start, end)
        if item is not None:
            items += _split(text, item.end(), end)
        elif line := text[start:end].strip():
            if items and not (line.endswith(":") and _DIGIT.search(line)):
                yield from items
                items = []
            yield from _split(text, start, end)
        end = start - 1
    yield from items


def _split(text: str, start: int, end: int) -> list[tuple[int, int]]:
    pieces = []
    position = start
    for stop in deque(_BREAK.finditer(text, start, end), maxlen=_MAX_SENTENCES):
        pieces.append((position, stop.start()))
        position = stop.end()
    pieces.append((position, end))
    last = pieces[-_MAX_SENTENCES:]
    return [piece for piece in reversed(last) if text[piece[0] : piece[1]].strip()]
