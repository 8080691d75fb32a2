r"""Equations as a text writes them: the sides of `14 + 8 = 22`, found in one pass.

Currency, units, Markdown, LaTeX delimiters and GSM8K's `<<14+8=22>>` are passed over; `×`, `x`,
`\times`, `\frac{a}{b}` and `20% of` are read. A side with a variable, a power or a root is marked
as unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from ahalab.scoring.countdown import MAX_INTEGER_DIGITS
from ahalab.scoring.text import clean

_MAX_UNIT_WORDS = 3
_ANNOTATION = re.compile(r"<<[^<>\n]{0,200}>>")
_FRACTION = re.compile(r"\\[dtc]?frac\s?\{([^{}\n]{1,40})\}\s?\{([^{}\n]{1,40})\}")
_PLAIN = (
    ("\\times", "*"), ("\\cdot", "*"), ("\\div", "/"), ("×", "*"), ("÷", "/"), ("\\approx", "="),
    ("≈", "="), ("–", "-"), ("{,}", ","), ("\\$", "$"), ("\\%", "%"), ("\\\\", "\n"),
)  # fmt: skip
_TOKEN = re.compile(
    r"(?P<stop>\n[ \t]*(?:[-*+•][ \t]+)?(?:\d{1,3}[.)][ \t]+)?|[.,;:!?|—…](?!\d))"
    r"|[$€£¥₹]?(?P<number>(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+)(?P<percent>\s?%)?"
    r"|(?P<equals>(?<![=!<>:])=(?![=>]))"
    r"|(?P<word>(?:/ ?|-)[^\W\d_]{2,}|[^\W\d_]+(?:[-'’/][^\W\d_]+)*)"
    r"|(?P<stars>\*+)|(?P<sign>[-+/])|(?P<open>\()|(?P<close>\))"
    r"|(?P<passed>\s|[$€£¥₹`{}&\"“”\[\]]|\\[()\[\]!,;: ]"
    r"|\\(?:text|textbf|textrm|mathrm|mathbf|boxed|left|right|quad|displaystyle)(?![A-Za-z]))"
    r"|(?P<unknown>\\[A-Za-z]+|.)"
)
_OPERAND_AHEAD = re.compile(r"\s?[-$€£(.\d]")
_TOUCHING_NUMBER = re.compile(r"[$€£]?[.\d]")
_SPOKEN = {"x": "*", "times": "*", "plus": "+", "minus": "-"}
_PARTS = {"half", "third", "quarter", "twice", "double", "triple"}  # of what follows them
_LINKS = {"less", "more", "by", "than", "squared", "cubed", "percent", *_PARTS}
_NO_VARIABLE = {"a", "i"}

Last = Literal["nothing", "operand", "operator", "open"]


@dataclass(frozen=True, slots=True)
class Numeral:
    """A number as written."""

    magnitude: Fraction  # without signs
    percent: bool
    places: int


@dataclass(frozen=True, slots=True)
class Piece:
    """A number, a sign or a parenthesis."""

    text: str  # as the evaluator wants it
    numeral: Numeral | None = None


@dataclass(slots=True)
class Side:
    """What stands on one side of an equals sign, as far as it is one expression."""

    pieces: list[Piece] = field(default_factory=list)
    opens: list[int] = field(default_factory=list)  # where the unclosed parentheses stand
    last: Last = "nothing"
    known: bool = True  # no variable, power or the like
    words: int = 0  # since the last operand: its unit
    linked: bool = False  # one of them ties it to what follows (`5 more than`)
    negative: bool = False  # a minus sign waits for its number
    after_equals: bool = False

    @property
    def whole(self) -> bool:
        """Whether it is one complete expression of plain numbers."""
        return self.known and not self.opens and self.last == "operand"

    @property
    def operators(self) -> set[str]:
        """The operators it has."""
        return {piece.text for piece in self.pieces} & {"+", "-", "*", "/"}

    @property
    def numerals(self) -> list[Numeral]:
        """Its numbers, in order."""
        return [piece.numeral for piece in self.pieces if piece.numeral is not None]

    @property
    def terms(self) -> tuple[Fraction, ...]:
        """Its numbers that only plus and minus signs touch."""
        signs = ["", *(piece.text for piece in self.pieces), ""]
        return tuple(
            piece.numeral.magnitude
            for at, piece in enumerate(self.pieces)
            if piece.numeral is not None and not {signs[at], signs[at + 2]} & {"*", "/"}
        )


def read_equations(text: str) -> Iterator[list[Side]]:
    """Walk the equations of a text in order, in linear time.

    Args:
        text: A completion.

    Yields:
        The sides of each; not all of them need be whole expressions.
    """
    plain = _plain(text)
    reader = _Reader(plain)
    for token in _TOKEN.finditer(plain):
        reader.take(token)
        if reader.ended:
            yield from reader.ended
            reader.ended.clear()


def _plain(text: str) -> str:
    text = _ANNOTATION.sub("", clean(text).text)
    for written, sign in _PLAIN:
        text = text.replace(written, sign)
    return f"\n{_FRACTION.sub(_quotient, text)}\n"  # a bullet may stand first, and a line must end


def _quotient(match: re.Match[str]) -> str:
    before = match.string[max(0, match.start() - 2) : match.start()].rstrip()
    return match[0] if before[-1:].isdigit() else f"(({match[1]})/({match[2]}))"  # no mixed number


class _Reader:
    """Takes the tokens of a text in order and collects the sides of its equations."""

    def __init__(self, text: str) -> None:
        self.ended: list[list[Side]] = []
        self._text = text
        self._sides: list[Side] = []
        self._side = Side()

    def take(self, token: re.Match[str]) -> None:
        """Take the next token."""
        kind = token.lastgroup
        if kind in ("number", "percent"):
            self._number(token)
        elif kind == "word":
            self._word(token)
        elif kind == "stars":
            self._stars(token)
        elif kind == "sign":
            self._sign(token)
        elif kind == "open":
            self._open(token)
        elif kind == "close":
            self._close()
        elif kind == "equals":
            self._equals()
        elif kind == "stop":
            self._finish()
        elif kind == "unknown":
            self._side.known = False

    def _finish(self, known: bool = True) -> None:
        """End the equation, and begin a side with nothing on it."""
        if self._sides:
            self.ended.append([*self._sides, self._side])
            self._sides = []
        self._side = Side(known=known)

    def _next_operand(self) -> None:
        """End the equation where an operand follows another without an operator."""
        if self._side.last == "operand":
            linked = self._side.linked and self._side.words <= _MAX_UNIT_WORDS
            self._finish(known=self._side.words > 0 and not linked)

    def _operator(self, sign: str) -> None:
        self._side.pieces.append(Piece(sign))
        self._side.last, self._side.words, self._side.linked = "operator", 0, False

    def _number(self, token: re.Match[str]) -> None:
        self._next_operand()
        side, digits = self._side, token["number"].replace(",", "")
        whole, _, places = digits.partition(".")
        if len(digits) > MAX_INTEGER_DIGITS:
            side.known, side.last = False, "operand"
            return
        percent = token["percent"] is not None
        below = 10 ** len(places)
        above = int(whole + places)
        text = str(above) if below == 1 and not percent else f"({above}/{below * 100**percent})"
        text = f"(-{text})" if side.negative else text
        side.pieces.append(Piece(text, Numeral(Fraction(above, below), percent, len(places))))
        side.last, side.words, side.linked, side.negative = "operand", 0, False, False

    def _word(self, token: re.Match[str]) -> None:
        side, word = self._side, token["word"].lower()
        if side.last == "operand":
            percent = side.pieces and side.pieces[-1].numeral and side.pieces[-1].numeral.percent
            sign = "*" if word == "of" and percent else _SPOKEN.get(word)
            if sign is not None and _OPERAND_AHEAD.match(self._text, token.end()):
                self._operator(sign)
                return
            if len(word) == 1 and word not in _NO_VARIABLE:
                side.known = False
            side.linked |= word in _LINKS or (word == "of" and side.words == 0)  # not `a total of`
            side.words += 1
        elif side.last == "nothing" or len(side.opens) == len(side.pieces):
            words = 0 if word in _PARTS else side.words + 1
            known = words > 0 and (side.known or words > _MAX_UNIT_WORDS)
            self._side = Side(words=words, after_equals=side.after_equals, known=known)
        else:
            side.known, side.last, side.words = False, "operand", 1  # an operand without a value

    def _stars(self, token: re.Match[str]) -> None:
        if self._side.last == "operand" and _OPERAND_AHEAD.match(self._text, token.end()):
            self._side.known &= len(token[0]) == 1  # two are a power
            self._operator("*")

    def _sign(self, token: re.Match[str]) -> None:
        side = self._side
        if side.last == "operand":
            if side.words > _MAX_UNIT_WORDS:
                self._finish(known=False)
            self._operator(token[0])
            return
        touching = _TOUCHING_NUMBER.match(self._text, token.end())
        minus = token[0] == "-" and not side.negative
        if minus and (touching or side.last == "open" or side.after_equals):
            side.negative = True
        else:
            side.known = False
            self._operator(token[0])

    def _open(self, token: re.Match[str]) -> None:
        side = self._side
        if side.last == "operand" and not side.words and self._text[token.start() - 1] != " ":
            self._operator("*")
        else:
            self._next_operand()
        side = self._side
        side.known &= not side.negative
        side.opens.append(len(side.pieces))
        side.pieces.append(Piece("("))
        side.last = "open"

    def _close(self) -> None:
        side = self._side
        if not side.opens:
            self._finish()
            return
        side.known &= side.last == "operand"
        side.opens.pop()
        side.pieces.append(Piece(")"))
        side.last, side.words, side.linked = "operand", 0, False

    def _equals(self) -> None:
        side = self._side
        if side.opens:  # `(14 + 8 = 22)`: what stands before the parenthesis is not part of it
            self._sides, side.pieces, side.opens = [], side.pieces[side.opens[-1] + 1 :], []
        self._sides.append(side)
        self._side = Side(after_equals=True)
