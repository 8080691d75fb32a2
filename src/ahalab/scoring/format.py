"""Whether a response meets the asked answer format, whatever the value it states."""

from __future__ import annotations

import re

from ahalab.records.terms import Finish
from ahalab.scoring.latex import MAX_LATEX, plain
from ahalab.scoring.patterns import compile_pattern
from ahalab.scoring.region import find_region
from ahalab.scoring.statements import Statement, boxes, hashes, patterned, tags
from ahalab.scoring.text import clean

_VALUE = re.compile(r"[-+$]{0,3}(?:\d[\d,]*(?:\.\d+)?|\.\d+)(?:\s?/\s?\d+)?%?")
_MARKERS = {"hashes": "####", "boxed": "\\boxed", "answer_tag": "<answer>"}
_BLOCK = re.compile(r"</?(?:think|answer)>")
_LIKE_A_BLOCK = re.compile(r"<\s?/?\s?(?:think|answer)\s?/?>", re.IGNORECASE)


def format_fault(completion: str, finish: Finish, answer_format: str) -> str | None:
    """Say why a response does not meet the asked format.

    Met is: exactly one statement in the asked format, not empty, not in the thinking, with nothing
    after it but white space and, for `hashes`, a bare number on the marker's line.

    Args:
        completion: The model's text.
        finish: Why generation ended.
        answer_format: hashes, boxed, answer_tag or `pattern:REGEX`.

    Returns:
        None when the format is met, else the fault: `truncated`, `no statement`, `several
        statements`, `no number`, `empty`, `text after the statement`, `misplaced tags`, `text
        before the blocks` or `text between the blocks`. Tags count as they are asked for, in lower
        case and without spaces.
    """
    if finish == "length":
        return "truncated"
    marker = _MARKERS.get(answer_format, "")
    if marker not in completion:  # full-width or upper-case marks are none
        return "no statement"
    text = clean(completion).text
    region = find_region(text, None)
    if marker and text.count(marker) > 1:
        return "several statements"
    found = _statements(text, region.start, region.end, answer_format)
    if len(found) != 1:
        return "several statements" if found else "no statement"
    statement = found[0]
    value = text[statement.value_start : statement.value_end].strip()
    if not re.search(r"\w", plain(value[:MAX_LATEX])):
        return "empty"
    if answer_format == "hashes" and not _VALUE.fullmatch(value):
        return "no number"
    if _LIKE_A_BLOCK.search(text):
        fault = _tag_fault(text, statement, region.start, answer_format)
        if fault is not None:
            return fault
    tail = text[statement.end : region.end].strip()
    if answer_format == "boxed":
        tail = tail.strip("$.*\\])")
    return "text after the statement" if tail else None


def _statements(text: str, start: int, end: int, answer_format: str) -> list[Statement]:
    pattern = compile_pattern(answer_format)
    if pattern is not None:
        return list(patterned(text, start, end, pattern))
    find = {"hashes": hashes, "boxed": boxes, "answer_tag": tags}[answer_format]
    return [statement for statement in find(text, start, end) if _whole(statement)]


def _whole(statement: Statement) -> bool:
    return statement.rule == "hashes" or statement.closed


def _tag_fault(
    text: str, statement: Statement, region_start: int, answer_format: str
) -> str | None:
    """Say whether the thinking is anything but one closed block before the answer.

    The prompt may have opened the block, so that only its end is in the response.
    """
    order = [match.group() for match in _LIKE_A_BLOCK.finditer(text)]
    if not all(map(_BLOCK.fullmatch, order)):
        return "misplaced tags"
    thinking = [tag for tag in order if "think" in tag]
    if not thinking:
        return None
    closes = thinking in (["</think>"], ["<think>", "</think>"])
    if not closes or order[: len(thinking)] != thinking:
        return "misplaced tags"
    if answer_format != "answer_tag":
        return None
    if thinking[0] == "<think>" and text[: text.index("<think>")].strip():
        return "text before the blocks"
    if text[region_start : statement.start].strip():
        return "text between the blocks"
    thought = text[: region_start - len("</think>")].replace("<think>", "", 1)
    return None if thought.strip() else "empty"
