"""The calculations that a text writes out: `14 + 8 = 22`, each worked out exactly.

What cannot be read as arithmetic on plain numbers makes no calculation: it is neither right nor
wrong. Nothing is passed to `eval`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from ahalab.scoring.countdown import ExpressionError, evaluate
from ahalab.scoring.equations import Numeral, Side, read_equations

MAX_CHARACTERS = 100_000
"""Characters of a text in which calculations are looked for."""

MAX_CALCULATIONS = 500
"""Calculations of a text that are read."""

ROUNDED_PLACES = 2
"""A quotient written with at least this many decimal places may be a rounding."""


@dataclass(frozen=True, slots=True)
class Calculation:
    """One calculation with what it was said to give; numbers without sign and percent sign."""

    written: str  # the side that is worked out, in plain signs
    operands: tuple[Fraction, ...]
    terms: tuple[Fraction, ...]  # operands that only plus and minus signs touch
    value: Fraction | None  # what it gives; None: a division by zero
    stated: Fraction  # what it was said to give
    holds: bool


def find_calculations(text: str) -> list[Calculation]:
    """List the calculations of a text in order, the first MAX_CALCULATIONS of them.

    An equation of several sides (`6 * 4 = 20 + 4 = 24`) is one calculation, and holds when all its
    sides agree. A result may carry a percent sign, and a quotient written with two decimal places
    or more may be rounded.

    Args:
        text: A completion; only its first MAX_CHARACTERS are looked at.

    Returns:
        The calculations, in linear time.
    """
    found: list[Calculation] = []
    for sides in read_equations(text[:MAX_CHARACTERS]):
        found += _judge(sides)
        if len(found) >= MAX_CALCULATIONS:
            break
    return found[:MAX_CALCULATIONS]


def _judge(sides: Sequence[Side]) -> list[Calculation]:
    """Work out each stretch of sides that are whole expressions."""
    found, stretch = [], []
    for side in [*sides, Side()]:
        if side.whole:
            stretch.append(side)
            continue
        calculation = _calculation(stretch) if len(stretch) > 1 else None
        if calculation is not None:
            found.append(calculation)
        stretch = []
    return found


def _calculation(sides: Sequence[Side]) -> Calculation | None:
    first = next((side for side in sides if side.operators), None)
    if first is None:
        return None
    try:
        values = [evaluate("".join(piece.text for piece in side.pieces))[0] for side in sides]
    except ExpressionError:
        return None
    value = values[sides.index(first)]
    quotient = any("/" in side.operators for side in sides)
    holds = value is not None and all(
        given == value
        or (not side.operators and _stands_for(side.numerals[0], given, value, quotient))
        for side, given in zip(sides, values, strict=True)
    )
    single = [side.numerals[0].magnitude for side in sides if not side.operators]
    stated = single[-1] if single else abs(values[-1] or Fraction(0))
    operands = tuple(numeral.magnitude for numeral in first.numerals)
    written = "".join(piece.text for piece in first.pieces)
    return Calculation(written, operands, first.terms, value, stated, holds)


def _stands_for(numeral: Numeral, given: Fraction | None, value: Fraction, quotient: bool) -> bool:
    """Say whether a written result stands for a value that it does not equal."""
    if given is None:
        return False
    if numeral.percent and given * 100 == value:
        return True
    if not quotient or numeral.places < ROUNDED_PLACES:
        return False
    unit = Fraction(1, 10**numeral.places * 100**numeral.percent)
    return abs(given - value) <= unit / 2
