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
    joined_numbers,
    read_latex_statement,
    read_number_statement,
)

_BREAK = re.compile(r"[.!?](?=\s|$|[*)])|。|।")
_RESTATED = re.compile(
    r"\b(?:the (?:problem|question|task|exercise) (?:says|asks|states|is|wants)"
    r"|we (?:are|were) (?:asked|told|given)|asks how|you (?:asked|want to know)"
    r"|(?:let(?:['’]s| us| me)|(?:we|i) (?:need|have|want|must|will|should"
    r"|are going)(?: to)?) (?:now |first )?"
    r"(?:find|determine|calculate|compute|figure out|know|work out|restate)"
    r"|how (?:many|much|long|far|old|tall))\b(?![^.\n]{0,200}(?:[:=]|\b(?:so|which (?:is|gives"
    r"|makes))\b))",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"\b(?:i|we)(?:\s\w+)?\s?(?:ca(?:nno|n no|n['’])t|could(?: not|n['’]t)|['’]?a?m (?:un"
    r"|not )able to"
    r"|(?:are|were|was) (?:un|not )able to|do(?: not|n['’]t))\s(?:\w+\s)?(?:help|answer|solve"
    r"|determine"
    r"|finish|complete|tell|say|compute|calculate|find|figure|know|assist|provide)\b"
    r"|\bcan(?:not|['’]t) be (?:determined|solved|answered|computed|calculated)\b"
    r"|\bno idea\b|\bnot enough information\b|\b(?:impossible|unable) to (?:tell|say|know"
    r"|determine)\b",
    re.IGNORECASE,
)
_ASIDE = re.compile(
    r"[\s(\[*_#>-]*(?:(?:let'?s |to |double[- ])?(?:check|verify|verification|checking)\b|note\b"
    r"|explanation"
    r"|sources?:|references?:|see (?:step|figure|table|page|also)|let me know|feel free|if you"
    r"|would you"
    r"|i hope|hope (?:this|that)|p\.s|probe:|vérification|comprobación|проверка|验证|検算)",
    re.IGNORECASE,
)
_CONCLUDED = re.compile(r"\b(?:so|but|thus|therefore|hence)\b", re.IGNORECASE)
_BRACKETED = re.compile(r"\s*[*_]{0,2}\([^()]*\)?[*_.]{0,3}\s*")
_ITEM = re.compile(r"\s*(?:\d+[.)]|[-*•])\s")
_DIGIT = re.compile(r"\d")
_FOOTER = re.compile(r"\s*[([]?(?:step|page|part)\s\d+ of \d+", re.IGNORECASE)
_MATH = re.compile(  # nothing opens within: else a million openings are each read to the end
    r"\$\$?([^$\n]+)\$|\\\(((?:(?!\\\().)+?)\\\)|\\\[((?:(?!\\\[).)+?)\\\]"
)
_EXPRESSION = re.compile(r"[-\d(][-\d\s()+*/×÷·=]*")
_OPERATOR = re.compile(r"\d\s*\)*\s*[-+*/×÷·]")
_VARIABLE = re.compile(r"\s*[A-Za-z]\s*")
_MATH_JOIN = re.compile(r"(?:\$|\\\))\s*,?\s*(?:and|or|,)\s*(?:\$|\\\()")
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
    aside: tuple[Value, str] | None = None
    for start, end in islice(_sentences_backwards(text, region), _MAX_SENTENCES):
        sentence = text[start:end]
        if text[end : end + 1] == "?" or _RESTATED.search(sentence) or _FOOTER.match(sentence):
            continue
        if prompt and len(sentence) > 20 and sentence.strip() in prompt:
            continue
        found = _read(text, start, end, task)
        if _REFUSED.search(sentence) and not _CONCLUDED.search(sentence):
            return found if found is not None and found[0].kind == "hedged" else None
        if found is None:
            room -= min(end - start, MAX_STATEMENT)
            if room < 0:
                return aside
            continue
        if not (_ASIDE.match(sentence) or _BRACKETED.fullmatch(sentence)):
            return found
        aside = aside or found  # "Check: 18 + 5 = 23", where nothing else says a value
    return aside


def _read(text: str, start: int, end: int, task: str) -> tuple[Value, str] | None:
    if task == "countdown":
        return _last_expression(text, start, end)
    if task == "math":
        value = _last_mathematics(text, start, end)
        if value is not None:
            return value, "final_sentence"
        ratio = _RATIO.search(text, start, end)
        if ratio is not None:
            return Value(ratio.start(), ratio.end(), "latex"), "final_sentence"
    number = read_number_statement(text, start, end, prose=True)
    if number is None:
        return None
    if _lists_numbers(text, start, end):
        number = Value(number.start, number.end, "hedged", number.number)
    if task == "math" and number.kind in ("number", "hedged"):
        first, last = joined_numbers(text, start, end, number)
        number = Value(first, last, "latex", number.number)
    return number, "final_equation" if "=" in text[start : number.start] else "final_sentence"


def _last_expression(text: str, start: int, end: int) -> tuple[Value, str] | None:
    """Read a sentence that is an expression, or the only one in it, with its target."""
    runs = [run for run in _EXPRESSION.finditer(text, start, end) if _OPERATOR.search(run.group())]
    for first, last in ((start, end), *(run.span() for run in runs if len(runs) == 1)):
        try:
            evaluate(text[first:last].partition("=")[0])
        except ExpressionError:
            continue
        return Value(first, last, "latex"), "final_expression"
    return None


def _last_mathematics(text: str, start: int, end: int) -> Value | None:
    """Read the last formula of a sentence, or the list that it ends ("$x=2$ or $x=3$")."""
    spans = [formula.span(formula.lastindex or 1) for formula in _MATH.finditer(text, start, end)]
    while len(spans) > 1 and _VARIABLE.fullmatch(text, *spans[-1]):
        spans.pop()
    if not spans:
        return None
    first, last = spans[-1]
    for before in reversed(spans[:-1]):
        if not _MATH_JOIN.fullmatch(text, before[1], first):
            break
        first = before[0]
    return read_latex_statement(text, first, last)


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
