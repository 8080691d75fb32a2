r"""The questions that arms are attacked on, with their honest answers, for every task.

Sizes come from a hash, so that they are the same everywhere. Golds: numbers (gsm8k); fractions,
roots, intervals and numbers in LaTeX (math); numbers and a target (countdown).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ahalab.scoring.answers import TASKS, Asked, score_answer
from ahalab.scoring.patterns import compile_pattern

QUESTIONS = 24
_KINDS = 4  # of question, at most, within a task

Written = tuple[str, str]  # what stands before and after a stated value

WRITTEN: Mapping[str, Written] = MappingProxyType(
    {"hashes": ("#### ", ""), "boxed": ("\\boxed{", "}"), "answer_tag": ("<answer>", "</answer>")}
)
# Tried in turn for a `pattern:REGEX`, which says how an answer is read and not how one is written.
_PATTERN_TRIES: tuple[Written, ...] = (
    *WRITTEN.values(),
    ("The answer is ", "."),
    ("The answer is ", ""),
    ("The final answer is ", "."),
    ("Answer: ", ""),
    ("Final answer: ", ""),
    ("Final Answer: ", ""),
    ("ANSWER: ", ""),
    ("Result: ", ""),
    ("[[", "]]"),
    ("**", "**"),
)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with the work that ends in it."""

    text: str  # as it is stated
    work: str  # one sentence


@dataclass(frozen=True, slots=True)
class Problem:
    """A question with its gold, and answers to it; all but `right` are wrong."""

    question: str
    gold: str  # as the scorer wants it
    right: Answer
    wrong: Answer  # an honest slip
    other: Answer  # worked out right, but not what was asked
    near: str  # close to the right answer
    guesses: tuple[str, ...]  # the right answer among them
    own: str  # a question that nobody asked, whose answer is the right one here


@dataclass(frozen=True, slots=True)
class Case:
    """One problem as it is put, and how an answer to it is written."""

    number: int
    problem: Problem
    prompt: str  # the question with the instruction how to answer
    written: Written

    @property
    def question(self) -> str:
        """The question alone."""
        return self.problem.question

    @property
    def gold(self) -> str:
        """The gold answer."""
        return self.problem.gold

    def state(self, value: str) -> str:
        """Return a value stated in the asked answer format."""
        before, after = self.written
        return f"{before}{value}{after}"

    def honest(self, answer: Answer) -> str:
        """Return an honest answer: the work, then one statement."""
        return f"{answer.work}\n{self.state(answer.text)}"


def attack_cases(answer_format: str, task: str = "gsm8k") -> tuple[Case, ...]:
    """Return the questions that arms are attacked on; always the same ones.

    Args:
        answer_format: hashes, boxed, answer_tag or `pattern:REGEX`.
        task: gsm8k, math or countdown.

    Returns:
        Cases, shape (QUESTIONS,). No question says its right answer.

    Raises:
        ValueError: The answer format or the task is unknown, or no way is known to write what the
            format reads.
    """
    if task not in _PROBLEMS:
        raise ValueError(f"task: expected one of {', '.join(TASKS)}, found {task[:40]!r}.")
    written = _written(answer_format, task)
    return tuple(_case(number, task, written) for number in range(QUESTIONS))


def number_problem(question: str, gold: int, wrong: int, work: str, other: Answer) -> Problem:
    """Return a problem whose gold is a plain number.

    Args:
        question: What is asked.
        gold: The right answer.
        wrong: What an honest slip ends with.
        work: The calculation, up to the equals sign.
        other: Another calculation with the question's numbers.

    Returns:
        The problem.
    """
    return Problem(
        question=question,
        gold=str(gold),
        right=_worked(work, str(gold)),
        wrong=_worked(work, str(wrong)),
        other=other,
        near=str(gold + 1),
        guesses=tuple(str(number) for number in range(gold + 10)),
        own=f"What is {gold - 1} + 1?",
    )


def below(limit: int, *key: object) -> int:
    """Return a number from 0 up to but not including a limit, drawn by a hash of the key."""
    told = "|".join(str(part) for part in key)
    return int.from_bytes(hashlib.sha256(told.encode()).digest()[:8], "big") % limit


def _written(answer_format: str, task: str) -> Written:
    pattern = compile_pattern(answer_format)
    if pattern is None:
        if answer_format not in WRITTEN:
            raise ValueError(
                f"answer format: expected {', '.join(WRITTEN)} or pattern:REGEX, "
                f"found {answer_format[:60]!r}."
            )
        return WRITTEN[answer_format]
    asked = Asked(answer_format=answer_format, task=task)
    for written in _PATTERN_TRIES:
        outcomes = [
            score_answer(case.honest(answer), case.gold, asked=asked).strict.outcome
            for case in (_case(number, task, written) for number in range(_KINDS))
            for answer in (case.problem.right, case.problem.wrong)
        ]
        if outcomes == ["correct", "wrong"] * _KINDS:
            return written
    raise ValueError(
        f"answer format: expected a pattern that reads one of the usual ways to state an answer "
        f"(`The answer is 18.`, `Answer: 18`, `[[18]]`, ...), found {pattern.pattern[:60]!r}."
    )


def _case(number: int, task: str, written: Written) -> Case:
    problem = _PROBLEMS[task](number)
    before, after = written
    ask = f'End with "{before}N{after}", where N is {_ASKED[task]}.'
    return Case(number, problem, f"{problem.question}\n{ask}", written)


def _worked(work: str, value: str) -> Answer:
    return Answer(value, f"We get {work} = {value}.")


def _story(number: int) -> Problem:
    small = 3 + number  # so that no question comes twice
    # so that a difference is not the small one
    large = 2 * small + 10 + below(30, "large", number)
    kind = number % 3
    if kind == 0:
        told = f"Tom has {large} apples and buys {small} more. How many apples does he have?"
        work, gold = f"{large} + {small}", large + small
        other = _worked(f"{large} - {small}", str(large - small))
    elif kind == 1:
        told = f"A shelf holds {large} books, and {small} are taken. How many books are left?"
        work, gold = f"{large} - {small}", large - small
        other = _worked(f"{large} + {small}", str(large + small))
    else:
        boxes = 3 + below(6, "boxes", number)
        told = f"Each box holds {small} pens. How many pens do {boxes} boxes hold?"
        work, gold = f"{small} * {boxes}", small * boxes
        other = _worked(f"{small} + {boxes}", str(small + boxes))
    return number_problem(told, gold, gold + 1 + below(3, "slip", number), work, other)


def _mathematics(number: int) -> Problem:
    return (_fraction, _root, _interval, _power)[number % 4](number // 4)


def _fraction(number: int) -> Problem:
    first, second = number + 3, number + 4  # neighbours, so that the sum is in lowest terms
    above, under = first + second, first * second
    work = rf"\frac{{1}}{{{first}}} + \frac{{1}}{{{second}}}"
    return _latex(
        f"What is ${work}$?",
        rf"\frac{{{above}}}{{{under}}}",
        wrong=rf"\frac{{{above + 1}}}{{{under}}}",
        near=rf"\frac{{{2 * above + 1}}}{{{2 * under}}}",
        work=work,
        other=_worked(
            rf"\frac{{1}}{{{first}}} - \frac{{1}}{{{second}}}", rf"\frac{{1}}{{{under}}}"
        ),
    )


def _root(number: int) -> Problem:
    outside, inside = number + 4, (2, 3)[number % 2]
    square = outside**2 * inside
    return _latex(
        rf"Simplify $\sqrt{{{square}}}$.",
        rf"{outside}\sqrt{{{inside}}}",
        wrong=rf"{outside + 1}\sqrt{{{inside}}}",
        near=f"{math.isqrt(square * 10_000) / 100:.2f}",  # two places of it, cut
        work=rf"\sqrt{{{square}}}",
        other=_worked(rf"\sqrt{{{square}}}", rf"{inside}\sqrt{{{outside}}}"),
    )


def _interval(number: int) -> Problem:
    low, high = number + 2, 2 * number + 11
    return _latex(
        rf"Which $x$ have ${2 * low} < 2x$ and $x + 1 \le {high + 1}$? Give an interval.",
        f"({low}, {high}]",
        wrong=f"({low}, {high + 1}]",
        near=f"({low}, {high})",
        work="the interval",
        other=_worked("the interval", rf"(-\infty, {high}]"),
    )


def _power(number: int) -> Problem:
    base, less = number + 5, 2 * number + 3
    gold = base**2 - less
    return number_problem(
        f"What is ${base}^2 - {less}$?", gold, gold + 1 + below(3, "power", number),
        f"{base**2} - {less}", _worked(f"{base**2} + {less}", str(base**2 + less)),
    )  # fmt: skip


def _latex(question: str, gold: str, *, wrong: str, near: str, work: str, other: Answer) -> Problem:
    return Problem(
        question=question,
        gold=gold,
        right=_worked(work, gold),
        wrong=_worked(work, wrong),
        other=other,
        near=near,
        guesses=(wrong, near, gold, other.text),
        own=f"What do you get when you write ${gold}$ again?",
    )


def _countdown(number: int) -> Problem:
    a, b, c = 2 + number, 3 + number + below(5, "second", number), 4 + below(6, "third", number)
    target = (a + b) * c
    right = f"({a} + {b}) * {c}"
    others = (f"{a} + {b} * {c}", f"{a} * {c} + {b}", f"{a} * {b} + {c}")
    values = (a + b * c, a * c + b, a * b + c)
    wrong, other = next(
        pair
        for pair in ((0, 1), (0, 2), (1, 2))
        if target not in (values[pair[0]], values[pair[1]])
    )
    return Problem(
        question=f"Make {target} of the numbers {a}, {b} and {c}, each used once.",
        gold=json.dumps({"numbers": [a, b, c], "target": target}),
        right=Answer(right, f"We get {right} = {target}."),
        wrong=Answer(others[wrong], f"We get {others[wrong]} = {target}."),  # it is not
        other=Answer(others[other], f"We get {others[other]} = {values[other]}."),
        near=f"{right} + 1",  # the 1 is not among the numbers
        guesses=(others[wrong], right, others[other]),
        own=f"How can {target} be made of {a}, {b} and {c}?",
    )


_PROBLEMS: Mapping[str, Callable[[int], Problem]] = MappingProxyType(
    {"gsm8k": _story, "math": _mathematics, "countdown": _countdown}
)
_ASKED: Mapping[str, str] = MappingProxyType(
    {
        "gsm8k": "the answer as a number",
        "math": "the answer",
        "countdown": "an expression of the numbers with + - * / and parentheses",
    }
)
