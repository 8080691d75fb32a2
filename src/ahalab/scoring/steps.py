"""The written steps that lead from a question's numbers to the stated answer, and which hold.

A step is a calculation whose numbers are known when it is written (the question's, the results of
earlier steps, a few constants of everyday life) and whose value is new. So `22 * 1 = 22`, a
calculation written twice and one that leads back to an earlier result are no steps.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from ahalab.scoring.calculations import Calculation, find_calculations
from ahalab.scoring.text import clean
from ahalab.scoring.words import find_words

MAX_STEPS = 50
"""Steps of a response that are looked at, in order."""

CONSTANTS = frozenset(
    {Fraction(1, 2), *map(Fraction, (2, 3, 4, 7, 10, 12, 24, 30, 52, 60, 100, 365, 1000))}
)
"""What a question need not say and a step may multiply or divide by: half and twice, units of time,
a dozen, percent, metric units. None may be added: that would lead to any wrong answer."""

_MAX_QUESTION = 20_000
_NUMERAL = re.compile(r"\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+")
_MAX_DIGITS = 18


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps that lead to an answer."""

    right: int  # they hold
    count: int

    @property
    def share(self) -> float:
        """Right ones among all; 0 where there is none."""
        return self.right / self.count if self.count else 0.0


def steps_to_answer(text: str, question: str, answer: Fraction | None) -> Steps:
    """Find the steps of a response that lead to its answer.

    From the answer backwards: the last step whose stated result it is, then those whose stated
    results that step uses. Arithmetic that leads elsewhere does not count, right or wrong.

    Args:
        text: A completion.
        question: What was asked, whose numbers a step may use.
        answer: The number that the completion states as its answer; None leads to no step.

    Returns:
        How many steps there are and how many hold.
    """
    steps = _steps(find_calculations(text), _numbers_of(question))
    wanted = set() if answer is None else {abs(answer)}
    right = count = 0
    for step in reversed(steps):
        if step.stated in wanted:
            wanted.discard(step.stated)
            wanted.update(step.operands)
            right, count = right + step.holds, count + 1
    return Steps(right, count)


def _steps(calculations: Sequence[Calculation], given: frozenset[Fraction]) -> list[Calculation]:
    """Keep the calculations that are steps; one that is written again is the last writing of it."""
    results: set[Fraction] = set()
    known = set(given)
    steps: dict[str, Calculation] = {}
    for calculation in calculations:
        if not known.issuperset(calculation.terms):
            continue
        if not known.union(CONSTANTS).issuperset(calculation.operands):
            continue
        value = None if calculation.value is None else abs(calculation.value)
        if value in results or value in calculation.operands:
            continue
        steps.pop(calculation.written, None)
        steps[calculation.written] = calculation
        results.add(calculation.stated)
        known.add(calculation.stated)
        if len(steps) == MAX_STEPS:
            break
    return list(steps.values())


def _numbers_of(question: str) -> frozenset[Fraction]:
    text = clean(question[:_MAX_QUESTION]).text
    written = (numeral.replace(",", "") for numeral in _NUMERAL.findall(text))
    numbers = {Fraction(numeral) for numeral in written if len(numeral) <= _MAX_DIGITS}
    numbers |= {Fraction(value) for _, _, value in find_words(text)}
    if "%" in text or "percent" in text:
        numbers |= {n / 100 + part for n in numbers for part in (0, 1)}
        numbers |= {abs(1 - n / 100) for n in numbers}
    return frozenset(numbers)
