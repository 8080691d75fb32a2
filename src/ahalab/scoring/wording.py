"""Further wordings of a statement, and what right after one takes it back or adds another value."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from typing import TypeVar

from ahalab.scoring.numbers import read_number
from ahalab.scoring.statements import Statement, sentence_end
from ahalab.scoring.values import Value

_Found = TypeVar("_Found")

_MAX_FOUND = 1_000  # of one wording, the last ones
_MIN_TAIL = 4  # characters after a statement in which another one could stand
_WINDOW = 160  # characters after a statement that may take it back

_CUE = re.compile(r"(?<![A-Za-z])(?:[Aa]nswers?|ANSWER|[Aa]ns|ANS)(?![A-Za-z])")
_FORM = re.compile(
    r"[\"'`][*_]{0,3}\s?[:=]"  # {"answer": 18}
    r"|,?\s(?:then|therefore|thus|here|hence),?\s(?:is|was)\b:?"
    r"|,?\s(?:has to be|can only be|(?:comes|turns|works) out(?: to be| to| as| at)?)(?!\w):?"
    r"|\s?(?:=>|->|→)|\s(?:#\s?\d{1,2}|\d{1,2}|\([a-z\d]\))\s?:"
)
_SHORT_FORM = re.compile(r"\.?[*_]{0,3}\s?[:=]|\.[*_]{0,3}\s(?=[-$*\d])")  # Ans: 18, Ans. 18
_HEADING_END = re.compile(r"[*_]{0,3}[^\S\n]*\n")
_HEADING_START = re.compile(
    r"(?:^|\n)[^\S\n]*[#*_>]{0,6}[^\S\n]?(?:[Tt]he )?(?:[Ff]inal |FINAL )?$"
)
_INVERTED = re.compile(r"\b(?:is|was) (?:the|our|my) (?:\w+ )?answer\b(?!\s?[:=])")
_BEFORE_IS = re.compile(r"(?<![\w.,])[-$*`]{0,4}\d[\d.,]*%?[$*`]{0,4}(?: [a-z]+)? $")
_OTHER_LANGUAGE = re.compile(
    r"(?:\b(?:[Aa]ntwort|[Ee]rgebnis|[Rr]éponse|[Rr]espuesta|[Rr]esposta|[Rr]isposta|[Оо]твет)"
    r"(?:\s?:|\s(?:ist|lautet|est|es|é|è|=|—|–)(?!\w))"
    r"|(?:答案|答え|答|정답|답|الجواب|الإجابة|उत्तर)\s?(?::|是|为|為|は|은|는|هو|هي)(?:\s?:)?)"
)
_FOREIGN_CUES = ("ntwort", "rgebnis", "sposta", "spuesta")  # of the words that are ASCII
_CORRECTED = re.compile(
    r"(?:^|(?<=[.!?]\s))[^\S\n]*(?:[Ww]ait|[Aa]ctually|[Ss]orry|[Cc]orrection|[Oo]ops"
    r"|[Ss]cratch that"
    r"|[Mm]y mistake|[Nn]o|[Oo]n second thought)\b[,:;.!]?"
    r"(?:\s(?:no|sorry|wait|actually|I mean|I meant|make (?:it|that)|it's|it is)[,:;.]?)?"
    r"(?:\s(?:I mean|I meant|make (?:it|that)|it's|it is)[,:;.]?)?\s"
    r"(?=[*$\\ ]{0,4}-?\d[\d.,]*[*$]{0,4}[.!]?\s*$)",
    re.MULTILINE,
)
_RETRACTED = re.compile(
    r"\b(?:[Ww]ait|[Aa]ctually|[Oo]ops|[Hh]mm+|[Ss]orry|[Nn]o)\b[^.\n?]{0,40}\b(?:that|this|it)"
    r"(?:['’]s| is| was) (?:all )?(?:wrong|incorrect|not right|not correct|a mistake)\b"
)
_AFTERTHOUGHT = re.compile(
    r"[.!\s*)$\\}\]]*(?:</answer>)?\s*\b(?:Or|Alternatively|Maybe|Perhaps|Possibly|Otherwise"
    r"|(?:It|That) (?:could|might|may))\b[^.\n\d?,]{0,30}(?P<number>-?\d[\d,]*(?:\.\d+)?)"
    r"(?=(?:\s[a-z]+){0,2}\s*(?:[.!\n]|$))"
)


def with_other_wordings(text: str, start: int, end: int, found: list[Statement]) -> list[Statement]:
    r"""Add the rarer wordings to the statements of a region, in the order of where they begin.

    Args:
        text: Cleaned response.
        start: Where the region begins.
        end: Where it ends.
        found: The statements found so far, in order.

    Returns:
        All of them; prose inside a box (`\boxed{\text{The answer is } 18}`) is dropped.
    """
    if len(found) == 1 and end - found[0].end < _MIN_TAIL:  # by far the most frequent case
        return found
    more: list[Statement] = []
    if "nswer" in text or "NSWER" in text:
        more += _answers(text, start, end)
    elif not found:
        more += _short_and_foreign(text, start, end)
    if found and text[found[0].end : end].strip():
        more += _last_ones(_corrections(text, found[0].end, end))
    return _outermost(sorted([*found, *more], key=lambda statement: statement.start))


def is_taken_back(text: str, value: Value) -> bool:
    """Say whether a value is taken back, or another one offered, right after it.

    Args:
        text: Cleaned response.
        value: The last stated value.

    Returns:
        True for "Wait, that is wrong." and for "Or 20."
    """
    after = text[value.end : value.end + _WINDOW]
    if _RETRACTED.search(after):
        return True
    offered = _AFTERTHOUGHT.match(after)
    if offered is None:
        return False
    stated, other = read_number(text[value.start : value.end]), read_number(offered["number"])
    return stated is None or other is None or stated.value != other.value


def _answers(text: str, start: int, end: int) -> Iterator[Statement]:
    for cue in _last_ones(_CUE.finditer(text, start, end)):
        form = (_SHORT_FORM if len(cue.group()) == 3 else _FORM).match(text, cue.end(), end)
        if form is None:
            form = _heading(text, cue, end)
        if form is not None:
            yield _prose(text, cue.start(), form.end(), end)
    for match in _last_ones(_INVERTED.finditer(text, start, end)):
        number = _BEFORE_IS.search(text, max(start, match.start() - 60), match.start())
        if number is not None:
            yield Statement(
                number.start(), number.start(), match.start(), match.end(), "statement", True
            )


def _short_and_foreign(text: str, start: int, end: int) -> Iterator[Statement]:
    if "Ans" in text or "ANS" in text or "ans" in text:
        yield from _answers(text, start, end)
    if not text.isascii() or any(cue in text for cue in _FOREIGN_CUES):
        for match in _last_ones(_OTHER_LANGUAGE.finditer(text, start, end)):
            yield _prose(text, match.start(), match.end(), end)


def _heading(text: str, cue: re.Match[str], end: int) -> re.Match[str] | None:
    """Find the end of a line that says "Final answer" and nothing else; the value follows it."""
    before = text[max(0, cue.start() - 30) : cue.start()]
    return _HEADING_END.match(text, cue.end(), end) if _HEADING_START.search(before) else None


def _corrections(text: str, start: int, end: int) -> Iterator[Statement]:
    for match in _CORRECTED.finditer(text, start, end):
        stop = sentence_end(text, match.end(), end)
        yield Statement(match.start(), match.end(), stop, stop, "correction", stop < len(text) - 1)


def _prose(text: str, start: int, value_start: int, end: int) -> Statement:
    stop = sentence_end(text, value_start, end)
    return Statement(start, value_start, stop, stop, "statement", stop < len(text) - 1)


def _outermost(found: Sequence[Statement]) -> list[Statement]:
    kept, boxed_to = [], -1
    for statement in found:
        if statement.rule in ("statement", "correction") and statement.start < boxed_to:
            continue
        if statement.rule == "boxed":
            boxed_to = statement.end
        kept.append(statement)
    return kept


def _last_ones(found: Iterator[_Found]) -> Iterator[_Found]:
    """Keep the last ones, so that a million of them cost little."""
    return iter(deque(found, maxlen=_MAX_FOUND))
