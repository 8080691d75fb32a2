"""Countdown answers: an expression parsed to exact rationals, each number used exactly once.

Allowed are `+ - * /`, parentheses and integer tokens; nothing is passed to `eval`. By rule a
leading minus (of the expression or of a parenthesis) is allowed and uses no number, `×`, `·`, `÷`
and their LaTeX names are read as `*` and `/`, padding zeros are harmless, and a trailing `= target`
states the target and must equal it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

MAX_DEPTH = 50
MAX_LENGTH = 1_000  # characters of an expression
MAX_INTEGER_DIGITS = 18
MAX_NUMBERS = 50
_MAX_GOLD = 2_000

_TOKEN = re.compile(r"\s*(?:(\d+)(?![\d.])|([-+*/()]))")
_SIGNS = (("\\times", "*"), ("\\cdot", "*"), ("\\div", "/"), ("×", "*"), ("·", "*"), ("÷", "/"))
_WRAPPING = "`$ \t\r\n"


@dataclass(frozen=True, slots=True)
class CountdownGold:
    """The numbers to use and the value to reach."""

    numbers: tuple[int, ...]
    target: int


class ExpressionError(ValueError):
    """A text is no expression of the allowed grammar, or exceeds its bounds."""


@lru_cache(maxsize=4096)
def read_countdown_gold(gold: str) -> CountdownGold | None:
    """Read `{"numbers": [...], "target": n}`; None when it is anything else."""
    if len(gold) > _MAX_GOLD or gold.count("[") != 1 or gold.count("{") != 1:
        return None
    try:
        read = json.loads(gold)
    except ValueError:
        return None
    if not isinstance(read, dict) or set(read) != {"numbers", "target"}:
        return None
    numbers, target = read["numbers"], read["target"]
    if not isinstance(numbers, list) or not 1 <= len(numbers) <= MAX_NUMBERS:
        return None
    if not all(_is_small_int(number) for number in [*numbers, target]) or min(numbers) < 0:
        return None
    return CountdownGold(tuple(numbers), target)


def _is_small_int(value: object) -> bool:
    return type(value) is int and abs(value) < 10**MAX_INTEGER_DIGITS


def solves(expression: str, gold: CountdownGold) -> bool:
    """Say whether an expression reaches the target with each number used exactly once.

    Args:
        expression: The text of the answer, such as `(4+6)*2` or `(4+6)*2 = 20`.
        gold: The numbers and the target.

    Returns:
        Whether it solves the puzzle. A division by zero does not.

    Raises:
        ExpressionError: The text is no expression of the allowed grammar, or exceeds the bounds.
    """
    expression = expression.strip(_WRAPPING)
    if expression.startswith(("\\(", "\\[")) and expression.endswith(("\\)", "\\]")):
        expression = expression[2:-2]
    left, equals, right = expression.strip(_WRAPPING).rstrip(".").partition("=")
    value, used = evaluate(left)
    if equals and evaluate(right)[0] != gold.target:
        return False
    return value == gold.target and Counter(used) == Counter(gold.numbers)


def evaluate(expression: str) -> tuple[Fraction | None, list[int]]:
    """Work an expression out exactly.

    Args:
        expression: Integers, `+ - * /`, parentheses.

    Returns:
        The value (None after a division by zero) and the integers used, in order.

    Raises:
        ExpressionError: The text is no expression of the allowed grammar, or exceeds the bounds.
    """
    parser = _Parser(_tokens(expression))
    value = parser.sum(0)
    if parser.peek() is not None:
        raise ExpressionError(f"expected the end of the expression, found {parser.peek()!r}")
    return value, parser.used


def _tokens(expression: str) -> list[str]:
    if len(expression) > MAX_LENGTH:
        raise ExpressionError(f"expected at most {MAX_LENGTH} characters")
    for sign, plain in _SIGNS:
        expression = expression.replace(sign, plain)
    expression = expression.strip(_WRAPPING)
    tokens, position = [], 0
    while position < len(expression):
        match = _TOKEN.match(expression, position)
        if match is None:
            raise ExpressionError(f"expected a number or + - * / ( ) at {position}")
        if match[1] and len(match[1].lstrip("0")) > MAX_INTEGER_DIGITS:
            raise ExpressionError(f"expected at most {MAX_INTEGER_DIGITS} digits")
        tokens.append(match[1] or match[2])
        position = match.end()
    return tokens


class _Parser:
    """Recursive descent with a depth bound; a value of None is a division by zero."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0
        self.used: list[int] = []

    def peek(self) -> str | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _take(self, *wanted: str) -> str | None:
        token = self.peek()
        if token is None or token not in wanted:
            return None
        self._at += 1
        return token

    def sum(self, depth: int) -> Fraction | None:
        negative = self._take("-") is not None
        total = self._product(depth)
        total = -total if negative and total is not None else total
        while (sign := self._take("+", "-")) is not None:
            term = self._product(depth)
            if total is not None and term is not None:
                total = total + term if sign == "+" else total - term
            else:
                total = None
        return total

    def _product(self, depth: int) -> Fraction | None:
        product = self._atom(depth)
        while (sign := self._take("*", "/")) is not None:
            factor = self._atom(depth)
            if product is None or factor is None or (sign == "/" and factor == 0):
                product = None
            else:
                product = product * factor if sign == "*" else product / factor
        return product

    def _atom(self, depth: int) -> Fraction | None:
        if self._take("(") is not None:
            if depth >= MAX_DEPTH:
                raise ExpressionError(f"expected at most {MAX_DEPTH} nested parentheses")
            value = self.sum(depth + 1)
            if self._take(")") is None:
                raise ExpressionError("expected ')'")
            return value
        token = self.peek()
        if token is None or not token.isdigit():
            raise ExpressionError(f"expected a number, found {token!r}")
        self._at += 1
        self.used.append(int(token))
        return Fraction(self.used[-1])
