"""From what a response commits to, and the gold, to an outcome with its status."""

from __future__ import annotations

from dataclasses import dataclass

from ahalab.records.terms import Outcome
from ahalab.scoring.commitment import Commitment
from ahalab.scoring.countdown import ExpressionError, read_countdown_gold, solves
from ahalab.scoring.deciding import LatexEqual, MathVerdict
from ahalab.scoring.equality import (
    equal_math,
    is_hedged,
    read_math_gold,
)
from ahalab.scoring.latex import MAX_LATEX
from ahalab.scoring.numbers import read_gold
from ahalab.scoring.parts import equal_numbers
from ahalab.scoring.text import clean_gold
from ahalab.scoring.values import Value


@dataclass(frozen=True, slots=True)
class Verdict:
    """An outcome and why."""

    outcome: Outcome
    status: str


UNPARSED = Verdict("unparsed", "unparsed")
TRUNCATED = Verdict("truncated", "truncated")
HEDGED = Verdict("unparsed", "unparsed: hedged")
TOO_LONG = Verdict("unparsed", "unparsed: bounds")
CORRECT = Verdict("correct", "ok")
WRONG = Verdict("wrong", "ok")
OF_MATH: dict[MathVerdict, Verdict] = {
    "equal": CORRECT,
    "different": WRONG,
    "bounds": Verdict("error", "error: bounds"),
    "timeout": Verdict("error", "error: timeout"),
    "unreadable": Verdict("error", "error: gold"),
    "missing": Verdict("error", "error: math-verify is not installed"),
}


@dataclass(frozen=True, slots=True)
class Against:
    """What a commitment is judged against."""

    gold: str
    task: str
    cut: bool  # generation was cut at the token limit
    latex_equal: LatexEqual | None


def judge(taken: Commitment | None, text: str, against: Against) -> Verdict:
    """Judge what a response commits to.

    Args:
        taken: The commitment, or None where there is none.
        text: Cleaned response, which the commitment's positions refer to.
        against: The gold and how to compare with it; the gold has been checked.

    Returns:
        The verdict. In a cut response only a complete statement counts.
    """
    if taken is None or (against.cut and not taken.complete):
        return TRUNCATED if against.cut else UNPARSED
    value = taken.value
    if value.kind == "hedged":
        return HEDGED
    if value.kind == "unreadable":
        return UNPARSED
    if against.task == "gsm8k":
        return _judge_number(value, against.gold)
    content = text[value.start : value.end]
    if against.task == "countdown":
        return _judge_expression(content, against.gold)
    listed = [text[other.start : other.end] for other in taken.others]
    return _judge_latex(", ".join([*listed, content]), against, bool(listed))


def _judge_number(value: Value, gold: str) -> Verdict:
    wanted = read_gold(clean_gold(gold))
    if value.number is None or wanted is None:
        return UNPARSED
    return CORRECT if equal_numbers(value.number, wanted) else WRONG


def _judge_expression(content: str, gold: str) -> Verdict:
    wanted = read_countdown_gold(gold)
    if wanted is None:
        return UNPARSED
    try:
        return CORRECT if solves(content, wanted) else WRONG
    except ExpressionError:
        return UNPARSED


def _judge_latex(content: str, against: Against, listed: bool) -> Verdict:
    wanted = read_math_gold(against.gold)
    if wanted is None:
        return UNPARSED
    if len(content) > MAX_LATEX:
        return TOO_LONG
    if is_hedged(content, wanted) or (listed and len(wanted.parts) == 1):
        return HEDGED
    return OF_MATH[equal_math(content, wanted, against.latex_equal)]
