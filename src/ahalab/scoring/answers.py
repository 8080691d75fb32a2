"""The evaluation scorer: from a response, a gold and a finish reason to two outcomes.

Strict counts only the value in the asked answer format; lenient counts the value wherever it is
clearly stated as the answer. The rules are written down in docs/scoring.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ahalab.records.terms import Finish, Outcome
from ahalab.scoring.commitment import Commitment, commit
from ahalab.scoring.countdown import read_countdown_gold
from ahalab.scoring.deciding import LatexEqual
from ahalab.scoring.equality import gold_fault, read_math_gold
from ahalab.scoring.judgement import Against, Verdict, judge
from ahalab.scoring.numbers import read_gold
from ahalab.scoring.patterns import compile_pattern
from ahalab.scoring.statements import asked_rule
from ahalab.scoring.text import View, clean, clean_gold

SCORER_VERSION = "2"
"""Changes with every change of an outcome; it stands in every record that holds one."""

TASKS = ("gsm8k", "math", "countdown")

NO_ANSWER: tuple[Finish, ...] = ("content_filter", "tool_calls")
"""An endpoint that ends a text so has not let the model answer."""

MAX_EXTRACTED = 1_000
"""Characters of an extracted answer that are kept; the span still covers all of it."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One reading of a response: strict or lenient."""

    outcome: Outcome
    extracted: str | None  # the text taken as the answer
    span: tuple[int, int] | None  # its character offsets in the response, end exclusive
    rule: str  # stable name of the rule that took it
    status: str  # "ok", or why there is no verdict on a value


@dataclass(frozen=True, slots=True)
class Score:
    """Both readings of one response."""

    strict: Reading
    lenient: Reading


@dataclass(frozen=True, slots=True)
class Asked:
    """How the answer was asked for."""

    answer_format: str = "hashes"  # hashes | boxed | answer_tag | pattern:REGEX with one group
    task: str = "gsm8k"  # gsm8k (plain numbers) | math | countdown
    prompt: str | None = None  # lets echoes of the prompt be told from answers


DEFAULT_ASKED = Asked()


def check_gold(gold: str, task: str = "gsm8k", latex_equal: LatexEqual | None = None) -> str | None:
    """Say why a gold answer cannot be scored against.

    Args:
        gold: The gold text; for countdown a JSON object with `numbers` and `target`.
        task: gsm8k, math or countdown.
        latex_equal: A decider that must be able to work with the gold (math only).

    Returns:
        None when the gold is fine, else the reason.

    Raises:
        ValueError: The task is unknown.
    """
    shown = repr(gold[:60])
    if task == "gsm8k":
        if read_gold(clean_gold(gold)) is None:
            return f"expected a plain number, found {shown}"
        return None
    if task == "math":
        read = read_math_gold(gold)
        if read is None:
            return f"expected a number or a short LaTeX answer, found {shown}"
        return None if latex_equal is None else gold_fault(read, latex_equal)
    if task == "countdown":
        if read_countdown_gold(gold) is None:
            return f'expected {{"numbers": [integers], "target": integer}}, found {shown}'
        return None
    raise ValueError(f"task: expected one of {', '.join(TASKS)}, found {task[:40]!r}.")


def score_answer(
    response: str,
    gold: str,
    finish: Finish = "eos",
    asked: Asked = DEFAULT_ASKED,
    latex_equal: LatexEqual | None = None,
) -> Score:
    """Score one response, strictly and leniently.

    Args:
        response: The completion, without its prompt.
        gold: The gold answer; for countdown a JSON object text.
        finish: Why generation ended; `length` means that the response was cut, `content_filter` and
            `tool_calls` that it is no answer: both outcomes are `error`.
        asked: How the answer was asked for.
        latex_equal: Decides LaTeX that numbers and normalised text do not decide (math only).

    Returns:
        Both readings. A strict `correct` implies a lenient one.

    Raises:
        ValueError: The task or the answer format is unknown, or its pattern is refused.
    """
    if check_gold(gold, asked.task) is not None:
        bad = Reading("error", None, None, "none", "error: gold")
        return Score(bad, bad)
    if finish in NO_ANSWER:
        bad = Reading("error", None, None, "none", f"error: {finish}")
        return Score(bad, bad)
    pattern = compile_pattern(asked.answer_format)
    view = clean(response)
    strict, lenient = commit(view.text, asked.task, asked_rule(asked.answer_format), pattern,
                             asked.prompt)  # fmt: skip
    against = Against(gold, asked.task, finish == "length", latex_equal)
    lenient_reading = _reading(view, response, lenient, judge(lenient, view.text, against))
    if strict == lenient:
        return Score(lenient_reading, lenient_reading)
    strict_reading = _reading(view, response, strict, judge(strict, view.text, against))
    if strict_reading.outcome == "correct" and lenient_reading.outcome != "correct":
        strict_reading = Reading(
            lenient_reading.outcome, strict_reading.extracted, strict_reading.span,
            strict_reading.rule, "superseded",
        )  # fmt: skip
    return Score(strict_reading, lenient_reading)


@lru_cache(maxsize=16)
def _nothing(verdict: Verdict) -> Reading:
    return Reading(verdict.outcome, None, None, "none", verdict.status)


def _reading(view: View, response: str, taken: Commitment | None, verdict: Verdict) -> Reading:
    if taken is None:
        return _nothing(verdict)
    value = taken.value
    span = (view.origin(value.start), view.end_origin(value.end))
    extracted = response[span[0] : min(span[1], span[0] + MAX_EXTRACTED)]
    return Reading(verdict.outcome, extracted, span, taken.rule, verdict.status)
