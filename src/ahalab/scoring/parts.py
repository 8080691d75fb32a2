"""The parts of an answer that is a list, a tuple, a set or an interval; and one part's value."""

from __future__ import annotations

import re

from ahalab.scoring.naming import named_otherwise, normal, unnamed
from ahalab.scoring.numbers import Number, read_number

ROUNDED_PLACES = 3
"""A gold with at least this many decimal places may be a rounding."""

_JOIN = re.compile(r",|;|(?<![A-Za-z\\])(?:and|or)(?![A-Za-z])")


def equal_numbers(stated: Number, gold: Number) -> bool:
    """Compare two numbers exactly, by the rules of docs/scoring.md.

    A gold given in three or more decimal places may be a rounding: an exact value that rounds to it
    is right. A stated percentage equals the bare percentage; where the gold is no integer it also
    equals the share that it stands for.

    Args:
        stated: The response's number.
        gold: The gold number.

    Returns:
        Whether the stated number is the gold.
    """
    if stated.value is None or gold.value is None:
        return False
    if stated.value == gold.value:
        return True
    if stated.percent and not gold.percent and gold.value.denominator != 1:
        return bool(stated.value / 100 == gold.value)
    if gold.decimals < ROUNDED_PLACES or (stated.decimals and stated.decimals <= gold.decimals):
        return False
    scale = 10**gold.decimals
    distance = abs(stated.value * scale - gold.value * scale)
    return bool(2 * distance <= 1)


def number_of(text: str) -> Number | None:
    """Read a number of a mathematics task, where `5!` is none."""
    return None if text.endswith("!") else read_number(text)


def equal_part(stated: str, gold: str) -> bool:
    """Compare two answers that are no lists: as numbers, else as normalised text."""
    if named_otherwise(stated, gold):
        return False
    a, b = number_of(unnamed(stated)), number_of(unnamed(gold))
    if a is not None and b is not None:
        return equal_numbers(a, b)
    return normal(stated) == normal(gold)


def split_parts(text: str) -> tuple[str, tuple[str, ...]]:
    """Split at the top-level commas; a comma between digit groups is no comma.

    Returns:
        The pair of brackets around the parts, "" without, and the parts; one where nothing splits.
    """
    text = text.strip()
    if text.startswith("\\pm"):
        rest = text[3:].strip()
        return "", (rest, f"-{rest}")
    brackets = ""
    body = text.replace("\\{", "{").replace("\\}", "}")
    if len(body) > 1 and body[0] in "([{" and body[-1] in ")]}" and _closes_at_end(body):
        brackets, body = body[0] + body[-1], body[1:-1]
    parts = _split(body)
    if len(parts) == 1:
        return "", (text,)
    return brackets, parts


def _closes_at_end(text: str) -> bool:
    depth = 0
    for position, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if depth == 0:
            return position == len(text) - 1
    return False


def _split(body: str) -> tuple[str, ...]:
    if not _JOIN.search(body) or re.fullmatch(r"[-+$]*\d{1,3}(?:,\d{3})+(?:\.\d+)?\D*", body):
        return (body,)
    parts, depth, start = [], 0, 0
    joins = {match.start(): match.end() for match in _JOIN.finditer(body)}
    for position, character in enumerate(body):
        depth += (character in "([{") - (character in ")]}")
        if depth == 0 and position in joins and position >= start:
            parts.append(body[start:position].strip())
            start = joins[position]
    parts.append(body[start:].strip())
    return tuple(kept for part in parts if (kept := part.strip(" $")))
