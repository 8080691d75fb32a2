"""Which part of a response may answer: outside the thinking, before an invented new question."""

from __future__ import annotations

import re
from dataclasses import dataclass

_THINK_END = "</think>"
_THINK_START = "<think>"
_ANSWER_START = "<answer>"
_SPECIAL = re.compile(r"<\|[A-Za-z_ ]{1,40}\|>|</s>|<eos>|<end_of_turn>")
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
        `<answer>` tag, or not at all.
    """
    start, end = 0, len(text)
    closed = text.rfind(_THINK_END)
    if closed >= 0:
        start = closed + len(_THINK_END)
    elif "<" in text and (opened := text.find(_THINK_START)) >= 0:
        answer = text.find(_ANSWER_START, opened)
        if answer < 0:
            end = opened
        else:
            start = answer
    if prompt:
        echoed = prompt.strip()
        lead = len(text) - len(text.lstrip())
        if echoed and lead >= start and text.startswith(echoed, lead):
            start = lead + len(echoed)
    if "<" in text:
        for mark in _SPECIAL.finditer(text, start, end):
            if text[start : mark.start()].strip():
                return Region(start, mark.start())
            start = mark.end()
    return Region(min(start, end), end)
