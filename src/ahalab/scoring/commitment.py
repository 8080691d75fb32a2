"""Which statement of a response is its answer: the last one, in the asked format and in any."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ahalab.scoring.equality import same_value
from ahalab.scoring.final import final_value
from ahalab.scoring.region import NEW_QUESTION, Region, find_region
from ahalab.scoring.statements import Statement, find_statements
from ahalab.scoring.values import (
    MAX_STATEMENT,
    Value,
    not_cut_short,
    read_latex_statement,
    read_number_statement,
)
from ahalab.scoring.wording import is_taken_back, with_other_wordings

_TENTATIVE = re.compile(
    r"\b(?:could|might|may|maybe|perhaps|possibly|either|alternatively|or)\b[^.\n]{0,40}$",
    re.IGNORECASE,
)
_TURN = re.compile(
    r"\b(?:wait|actually|hold on|hmm+|oops|no, |(?:is|was) (?:wrong|incorrect)|let me re)",
    re.IGNORECASE,
)
_MAX_UNREADABLE = 200  # statements walked back over, from the last, before giving up
_MAX_UNREADABLE_CHARACTERS = 100_000  # likewise
_MATH_OPENS = re.compile(r"[\s*:]*(?:\$\$?|\\\(|\\\[)")
_MATH_CLOSES = re.compile(r"\$|\\\)|\\\]")
_MATH_JOIN = re.compile(r"(?:\$|\\\))\s*,?\s*(?:and|or|,)\s*(?:\$|\\\()")
_JOINER = re.compile(r"\b(?:and|or|also|text)\b")
_MAX_LISTED = 12  # statements that list one answer
_DIGIT = re.compile(r"\d")
_LETTER = re.compile(r"[^\W\d_]")


@dataclass(frozen=True, slots=True)
class Commitment:
    """The value that a response commits to."""

    value: Value
    rule: str
    complete: bool  # in a cut response: nothing that followed could have belonged to the value
    others: tuple[Value, ...] = ()  # (math) differing values listed before this one


def commit(
    text: str, task: str, asked: str, pattern: re.Pattern[str] | None, prompt: str | None
) -> tuple[Commitment | None, Commitment | None]:
    """Find what a response commits to.

    Args:
        text: Cleaned response.
        task: gsm8k, math or countdown: how a value is read.
        asked: The rule of the asked format.
        pattern: The asked pattern, if any.
        prompt: The prompt, if known.

    Returns:
        The strict commitment (asked format only) and the lenient one (any explicit statement, else
        the final sentence); None where there is none.
    """
    region = find_region(text, prompt)
    statements = find_statements(text, region.start, region.end, pattern)
    statements = with_other_wordings(text, region.start, region.end, statements)
    if statements:
        region, statements = _before_new_question(text, region, statements)
        if "\n\n" in text:
            question = _another_question(text, region, statements[0].start, prompt)
            if question is not None and final_value(text, question, task, prompt) is not None:
                region, statements = question, []
    lenient = _last(text, task, statements)
    if lenient is not None and lenient.rule == asked:
        return lenient, lenient
    in_format = [s for s in statements if s.rule == asked]
    strict = _last(text, task, in_format) if in_format else None
    if lenient is None:
        found = final_value(text, region, task, prompt)
        lenient = None if found is None else Commitment(found[0], found[1], complete=False)
    return strict, lenient


def _before_new_question(
    text: str, region: Region, statements: list[Statement]
) -> tuple[Region, list[Statement]]:
    """Cut at the first new question that follows a statement: it is run on, not asked."""
    new = NEW_QUESTION.search(text, statements[0].value_end, region.end)
    if new is None:
        return region, statements
    kept = [s for s in statements if s.start < new.start()]
    return Region(region.start, new.start()), kept


def _another_question(text: str, region: Region, stop: int, prompt: str | None) -> Region | None:
    """Find what stands before a question with numbers of its own, which is answered next."""
    new = NEW_QUESTION.search(text, region.start, stop)
    if new is None or "\n\n" not in text[max(0, new.start() - 2) : new.end()]:
        return None
    asked = text[new.end() : stop].strip()
    if not _DIGIT.search(asked) or (prompt and asked[:40] in prompt):
        return None
    return Region(region.start, new.start())


def _last(text: str, task: str, statements: Sequence[Statement]) -> Commitment | None:
    room = _MAX_UNREADABLE_CHARACTERS
    for index in range(len(statements) - 1, max(-1, len(statements) - _MAX_UNREADABLE), -1):
        statement = statements[index]
        value = _read(text, task, statement)
        if value is None:
            room -= min(statement.value_end - statement.value_start, MAX_STATEMENT)
            if room < 0:
                return None
            continue
        readable = value.kind in ("number", "latex")
        others = _offered(text, task, statements, index, value) if index and readable else ()
        if (others and task == "gsm8k") or (
            readable and value.end < len(text) - 3 and is_taken_back(text, value)
        ):
            value = Value(value.start, value.end, "hedged", value.number)
        complete = statement.closed and _ended(text, statement, value)
        return Commitment(value, statement.rule, complete, others)
    return None


def _read(text: str, task: str, statement: Statement) -> Value | None:
    start, end = statement.value_start, statement.value_end
    prose = statement.rule in ("boxed", "answer_tag") or (
        statement.rule == "statement" and ":" in text[statement.start : start]
    )
    if task == "gsm8k":
        value = read_number_statement(text, start, end, prose)
        return value if statement.rule != "pattern" else not_cut_short(text, value, end)
    if task == "math" and statement.rule in ("statement", "correction"):
        return _read_prose_latex(text, start, end)
    value = read_latex_statement(text, start, end)
    return value if statement.rule != "pattern" else not_cut_short(text, value, end)


def _read_prose_latex(text: str, start: int, end: int) -> Value | None:
    """Read LaTeX stated in prose: the mathematics that it leads with, else a number, else all."""
    segment = _MATH_OPENS.match(text, start, end)
    if segment is not None:
        stop = _MATH_CLOSES.search(text, segment.end(), end)
        while stop is not None and (more := _MATH_JOIN.match(text, stop.start(), end)):
            stop = _MATH_CLOSES.search(text, more.end(), end)  # "$x=2$ or $x=3$"
        if stop is not None:
            return read_latex_statement(text, segment.end(), stop.start())
    number = read_number_statement(text, start, end, prose=False)
    if number is not None and number.kind == "number":
        return Value(number.start, number.end, "latex", number.number)
    return read_latex_statement(text, start, end)


def _offered(
    text: str, task: str, statements: Sequence[Statement], index: int, value: Value
) -> tuple[Value, ...]:
    r"""List the differing values offered beside the last one (`\boxed{1} or \boxed{2}`)."""
    others: list[Value] = []
    for at in range(index, max(0, index - _MAX_LISTED), -1):
        last, before = statements[at], statements[at - 1]
        if last.rule == "correction" or not (
            _listed(text, before, last, value if at == index else None)
            or (
                at == index
                and _TENTATIVE.search(text, max(before.end, last.start - 60), last.start)
            )
        ):
            break
        other = _read(text, task, before)
        around = task != "gsm8k" and (  # "The answer is \\boxed{1}" is one
            before.rule != last.rule or before.end > last.start
        )
        if around or other is None or (other.number is None and other.kind == "unreadable"):
            break
        if not _same(text, other, value):
            others.append(other)
    return tuple(reversed(others))


def _listed(text: str, before: Statement, last: Statement, value: Value | None) -> bool:
    """Say whether no word but "and" or "or" stands between two statements."""
    between = text[before.end : last.start]
    if value is not None:
        between += text[last.value_start : value.start]
    return len(between) < 200 and not _LETTER.search(_JOINER.sub("", between))


def _same(text: str, one: Value, other: Value) -> bool:
    if one.number is not None and other.number is not None:
        return one.number.value == other.number.value
    return same_value(text[one.start : one.end], text[other.start : other.end])


def _ended(text: str, statement: Statement, value: Value) -> bool:
    if statement.rule in ("boxed", "answer_tag"):
        return True
    return bool(text[value.end : value.end + 40].strip(".,/ *")) and not _TURN.search(
        text, statement.end
    )
