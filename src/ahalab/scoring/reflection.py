"""Reflection markers: the words with which a text turns back on itself ("wait", "let me check").

A marker says that the words are there, not that anything was reconsidered: whether a stated value
changed to the right one is `self_correction`.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass

from ahalab.scoring.countdown import ExpressionError, evaluate
from ahalab.scoring.numbers import find_numbers, read_gold
from ahalab.scoring.parts import equal_numbers
from ahalab.scoring.text import clean, clean_gold

MARKERS_VERSION = "1"
"""Changes with every change of what is a marker."""

_MARKERS = re.compile(
    r"\b(?:wait|hmm+|hold on|actually|on second thought|let me (?:re-?)?(?:check|think|verify|see)"
    r"|let'?s (?:re-?)?(?:check|verify)|double[- ]check|re-?check|re-?consider|re-?calculate"
    r"|i made a mistake|that(?:'s| is) (?:not right|wrong|incorrect)|oops|aha)\b",
    re.IGNORECASE,
)
_TURN = re.compile(
    r"\b(?:wait|hmm+|hold on|actually|oops|no,|on second thought|i made a mistake|correction"
    r"|that(?:'s| is) (?:not right|wrong|incorrect)|let me re-?(?:do|check|calculate))",
    re.IGNORECASE,
)
_EQUATION = re.compile(r"(\d[\d+*/() -]{1,60})=\s?(-?\d{1,18})(?!\d|\.\d)")
_WINDOW = 200  # characters looked at on each side of a turn
_MAX_TURNS = 500  # looked at, from the last


@dataclass(frozen=True, slots=True)
class Marker:
    """A marker and where it stands, in characters of the text, end exclusive."""

    start: int
    end: int
    text: str  # lower case


def first_marker(text: str) -> Marker | None:
    """Return the first reflection marker of a text, or None."""
    match = _MARKERS.search(text)
    return None if match is None else Marker(match.start(), match.end(), match.group().lower())


def reflection_markers(text: str) -> tuple[str, ...]:
    """List the reflection markers of a text, in order, lower case, repetitions kept.

    Args:
        text: A completion.

    Returns:
        The markers as written but for case; empty when there is none.
    """
    return tuple(match.group().lower() for match in _MARKERS.finditer(text))


def self_correction(text: str, gold: str) -> bool:
    """Say whether a stated value is changed into the right one at a turn.

    The last number before a turn ("wait", "actually", ...) is what was stated; the last number in
    the sentence that follows is what it was changed into. Right is the gold value, or the value of
    an equation that holds ("wait, 14 + 8 = 22") where the one before it did not. Only a window
    around each of the last 500 turns is read, so the cost is bounded.

    Args:
        text: A completion.
        gold: The gold answer, a plain number.

    Returns:
        True when some turn changes a wrong value into the right one.
    """
    wanted = read_gold(clean_gold(gold))
    cleaned = clean(text).text
    for turn in deque(_TURN.finditer(cleaned), maxlen=_MAX_TURNS):
        before = cleaned[max(0, turn.start() - _WINDOW) : turn.start()]
        after = cleaned[turn.end() : turn.end() + _WINDOW].partition("\n")[0].partition(". ")[0]
        stated, changed = find_numbers(before), find_numbers(after)
        if not stated or not changed or stated[-1].number.value == changed[-1].number.value:
            continue
        if wanted is not None and equal_numbers(changed[-1].number, wanted):
            return True
        if _holds(before) is False and _holds(after) is True:
            return True
    return False


def _holds(text: str) -> bool | None:
    """Say whether the last equation of a text holds; None where there is none that can be read."""
    equations = _EQUATION.findall(text)
    if not equations:
        return None
    left, right = equations[-1]
    try:
        return evaluate(left)[0] == int(right)
    except ExpressionError:
        return None
