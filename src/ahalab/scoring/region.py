"""Which part of a response may answer: outside the thinking, before an invented new question."""

from __future__ import annotations

import re
from dataclasses import dataclass

_ANSWER_START = "<answer>"
_THOUGHT = re.compile(r"</?(?:think|thinking|thought|reasoning|scratchpad)>", re.IGNORECASE)
_TURN = re.compile(r"<(?:\|[a-z_ ]{1,40}\|>|/s>|eos>|end_of_turn>)", re.IGNORECASE)
_SQUARE_THOUGHT = re.compile(rf"{_THOUGHT.pattern}|(?-i:\[/?THINK\])", re.IGNORECASE)
_SQUARE_TURN = re.compile(rf"{_TURN.pattern}|(?-i:\[/?INST\])", re.IGNORECASE)
NEW_QUESTION = re.compile(
    r"^[^\S\n]*[*#]{0,4}\s?(?:(?:new |next |another )?(?:question|problem|exercise|example)\b"
    r"\s?\d{0,4}|q\d{0,4}|human|user|instruction)\s?[*]{0,2}\s?[:.]"
    r"|^[^\S\n]*(?:#{1,4}|\*\*)\s?(?:question|problem|exercise|example)\b[^\n]{0,12}$",
    re.MULTILINE | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Region:
    """The part of the cleaned response that may answer."""

    start: int
    end: int


def find_region(text: str, prompt: str | None) -> Region:
    """Leave out the thinking, an echoed prompt and what follows an end-of-turn mark.

    Args:
        text: Cleaned response.
        prompt: The prompt, if known.

    Returns:
        The region; empty when everything is thinking. A `<think>` that is never closed ends at an
        `<answer>` tag, or not at all; one that ends the response leaves what stands before it.
    """
    start, end = 0, len(text)
    square = "[/" in text
    marked = square or "<" in text
    if marked:
        thoughts = list((_SQUARE_THOUGHT if square else _THOUGHT).finditer(text))
        if thoughts:
            start, end = _outside_thinking(text, thoughts)
    if prompt:
        echoed = prompt.strip()
        lead = len(text) - len(text.lstrip())
        if echoed and lead >= start and text.startswith(echoed, lead):
            start = lead + len(echoed)
    if marked:
        for mark in (_SQUARE_TURN if square else _TURN).finditer(text, start, end):
            if text[start : mark.start()].strip():
                return Region(start, mark.start())
            start = mark.end()
    return Region(min(start, end), end)


def _outside_thinking(text: str, thoughts: list[re.Match[str]]) -> tuple[int, int]:
    """Find what stands outside the thinking: after it, or before it where nothing follows."""
    marks = [(mark.start(), mark.end(), mark.group()[1] != "/") for mark in thoughts]
    last = next((i for i in range(len(marks) - 1, -1, -1) if not marks[i][2]), None)
    start, end = (0 if last is None else marks[last][1]), len(text)
    block = last is not None and last > 0 and marks[last - 1][2]
    if last is not None and block and not text[start:].strip():
        before = marks[last - 2][1] if last > 1 else 0
        if last > 1 and marks[last - 2][2]:  # one block in another
            return start, end
        if text[before : marks[last - 1][0]].strip():
            return before, marks[last - 1][0]
    opened = marks[0 if last is None else last + 1 :]
    if opened:  # never closed
        answer = text.find(_ANSWER_START, opened[0][0])
        if answer >= 0:
            return answer, end
        end = opened[0][0]
    return start, end
