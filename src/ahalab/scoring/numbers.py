"""Numbers in text, read exactly: never through a float, always within stated bounds."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from ahalab.scoring.words import find_quantities, read_words

MAX_DIGITS = 4_000
"""Digits of one numeral, leading zeros apart; Python itself refuses to read 4,300 or more."""

MAX_EXPONENT = 4_000
"""Largest power of ten in scientific notation, either sign."""

MAX_POWER_BITS = 14_000
"""Largest result of `a^b`, in bits (about 4,200 digits)."""


@dataclass(frozen=True, slots=True)
class Number:
    """One number as written."""

    value: Fraction | None  # None: beyond the bounds above, so equal to no readable gold
    percent: bool = False
    decimals: int = 0  # decimal places as written


@dataclass(frozen=True, slots=True)
class FoundNumber:
    """A number and where it stands in the text that was searched."""

    start: int
    end: int
    number: Number


_VULGAR = "[½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞]"
_RAISED = "[⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+"
_PLAIN_DIGITS = str.maketrans("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "+-0123456789")
_SEPARATORS = str.maketrans("", "", " '’_")
_DIGITS = (
    r"(?:\d{1,3}(?=[.'’ _]\d{3})(?:"
    r"(?:\.\d{3})+,\d{1,2}(?!\d)"  # 1.234,50
    r"|(?:\.\d{3}){2,}(?![.\d])"  # 1.234.567
    r"|(?: \d{3})+,\d{1,2}(?!\d)"  # 1 234,50
    r"|(?: \d{3}){2,}(?!\d)|(?: 0\d\d)(?!\d)"  # 1 234 567, 1 050
    r"|(?:['’]\d{3})+(?:[.,]\d{1,2})?(?!\d)"  # 1'234.50
    r"|(?:_\d{3})+(?!\d))"  # 1_234
    rf"|\d+(?:,\d+)*(?:\.\d+)?|\.\d+|{_VULGAR})"
)
_SCALE_WORDS = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_SCALE = (
    r"(?:[eE][-+]?\d+(?!\w)"
    rf"|\s?[×*xX]\s?10(?:\s?(?:\^|\*\*)\s?[-+]?\d+(?![\d.*^])|{_RAISED})"
    r"|\s(?:hundred|thousand|million|billion|trillion)\b)"
)
_CURRENCY = r"(?:(?:[A-Z]{1,3}|Rs\.?)\s?|\\)?[$€£¥₹₩₽₺₫₦₱฿]\s?"
_NUMBER = re.compile(
    rf"(?<![A-Za-z0-9])(?<![A-Za-z0-9]_)(?<!\d[.,])"  # not inside a word or another number
    rf"(?P<sign>(?<![\w)\]}}%+-])[-+](?=[\d.$€£¥₹\\½¼¾⅓⅔])"
    rf"|(?<![\d)] )(?:[Mm]inus|[Nn]egative) (?=[\d$]))?"  # after a digit it is an operator
    rf"(?:{_CURRENCY}(?P<inner>-(?=[\d.]))?)?"
    rf"(?P<first>{_DIGITS})"
    rf"(?:(?P<scale>{_SCALE})"
    rf"|\s?/\s?(?P<below>\d+(?:\.\d+)?)"
    rf"|(?: and)?[ ]{{1,3}}(?P<above>\d+)/(?P<part>\d+)|\s?(?P<vulgar>{_VULGAR})"
    rf"| and (?:a|one)[ -](?P<share>half|third|quarter)\b|(?P<raised>{_RAISED}))?"
    rf"(?P<percent>\s?\\?%|\s?percent\b)?"
)
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{2,3})*,\d{3}(?:\.\d+)?")
_CONTINENTAL = re.compile(r"\d{1,3}(?:\.\d{3})+,\d{1,2}|\d{1,3}(?:\.\d{3}){2,}")
_DECIMAL_COMMA = re.compile(r"\d+,(?:\d{1,2}|\d{4,})|0,\d+")
_OPERATOR = r"(?:\*\*|[*^×÷+/xX]|times|plus|minus|divided by|multiplied by)"
_EXPRESSION_AHEAD = re.compile(
    rf"\s?{_OPERATOR}\s?[-({{]?\s?\d|\s-\s\d|:\d| ?[×÷] {{0,2}}[A-Za-z(\\]| [*+] {{1,2}}[A-Za-z(\\]"
)
_EXPRESSION_BEHIND = re.compile(rf"[\d)}}]\s?{_OPERATOR}\s?[({{]?$|[\d)}}]\s-\s$|\d:$")
_UNIT = re.compile(r"\s{0,3}(?:[A-Za-z°][A-Za-z°²³'’./ -]*(?:\^?\{?[23]\}?)?)?[.!,;:…]{0,3}")
_NOT_UNIT = re.compile(r"\b(?:or|and|is|are|was|were|would|not|but)\b|n['’]t\b")
_ATTACHED_VARIABLE = re.compile(r"[a-zA-Z](?![A-Za-z])|\s{1,3}[xyznkie](?![A-Za-z])")
_SPACED = re.compile(r"([-+]?[$€£]?\d{1,3}(?: \d{3})+)(?![ ]?[\d/])")
_POWER = re.compile(r"([-+]?\d+)\s?(?:\^|\*\*)\s?([-+]?\d+)")
_EXPONENT = re.compile(rf"\^|(?<!^)\*\*|10(?={_RAISED})")
_SHARES = {"half": 2, "third": 3, "quarter": 4}


def scan_numbers(text: str, start: int = 0, end: int | None = None) -> Iterator[FoundNumber]:
    """Walk the numbers of a text from left to right, in linear time.

    A numeral whose commas group nothing readable (`1,1,1`) is a list, and is passed over.

    Args:
        text: Cleaned text (`text.clean`): ASCII digits and signs.
        start: Where to begin.
        end: Where to stop; None for the text's end.

    Yields:
        The numbers with their positions.
    """
    for match in _NUMBER.finditer(text, start, len(text) if end is None else end):
        number = _from_match(match)
        if number is not None:
            yield FoundNumber(match.start(), match.end(), number)


def find_numbers(text: str) -> list[FoundNumber]:
    """List the numbers of a text; number words count only where there is no digit at all."""
    found = list(scan_numbers(text))
    if found:
        return found
    return [FoundNumber(s, e, Number(value)) for s, e, value in find_quantities(text)]


def in_expression(text: str, found: FoundNumber) -> bool:
    """Say whether a number is one operand of an arithmetic expression that is not worked out."""
    if _EXPRESSION_AHEAD.match(text, found.end):
        return True
    return _EXPRESSION_BEHIND.search(text, max(0, found.start - 18), found.start) is not None


def read_number(text: str) -> Number | None:
    """Read a text that is one number and nothing else but its unit.

    Args:
        text: Cleaned text without LaTeX (`latex.plain`), such as `$1,234.50`, `2 1/2`, `35 cm`,
            `1.2 × 10^3`, `2^10` or `twenty-four`.

    Returns:
        The number, or None when the text is anything else.
    """
    stripped = text.strip()
    if stripped.isdecimal() and len(stripped) <= MAX_DIGITS:  # most answers: no pattern is needed
        return Number(Fraction(int(stripped)))
    spaced = _SPACED.match(stripped)
    if spaced is not None:
        stripped = spaced[1].replace(" ", "") + stripped[spaced.end() :]
    power = _POWER.fullmatch(stripped)
    if power is not None:
        return Number(_power(power.group(1), power.group(2)))
    if stripped.startswith(("- ", "-(", "(")):
        return _read_bracketed(stripped)
    match = _NUMBER.match(stripped)
    if match is None:
        words = read_words(stripped)
        return None if words is None else Number(words)
    if not _is_unit(stripped[match.end() :]):
        return None
    return _from_match(match)


def _read_bracketed(text: str) -> Number | None:
    """Read `- 5`, `(5)`, `-(3/4)`; one pair of brackets, so that no recursion is needed."""
    negative = text.startswith("-")
    inner = text[1:].strip() if negative else text
    if inner.startswith("("):
        if not inner.endswith(")"):
            return None
        inner = inner[1:-1].strip()
    match = _NUMBER.fullmatch(inner)
    number = None if match is None else _from_match(match)
    if number is None or number.value is None or not negative:
        return number
    return Number(-number.value, number.percent, number.decimals)


def _is_unit(rest: str) -> bool:
    if not rest or rest == ".":
        return True
    if len(rest) > 80 or _ATTACHED_VARIABLE.match(rest):
        return False
    return _UNIT.fullmatch(rest) is not None and _NOT_UNIT.search(rest) is None


@lru_cache(maxsize=4096)
def read_gold(gold: str) -> Number | None:
    """Read a gold answer that is a plain number; None when it is not one or exceeds the bounds."""
    number = read_number(gold)
    return None if number is None or number.value is None else number


def _from_match(match: re.Match[str]) -> Number | None:
    digits = match["first"].translate(_SEPARATORS)
    if _CONTINENTAL.fullmatch(digits):
        digits = digits.replace(".", "").replace(",", ".")
    if "," in digits:
        if _THOUSANDS.fullmatch(digits):
            digits = digits.replace(",", "")
        elif _DECIMAL_COMMA.fullmatch(digits):
            digits = digits.replace(",", ".")
        else:
            return None
    negative = match["sign"] not in (None, "+") or match["inner"] is not None
    percent = match["percent"] is not None
    _, _, places = digits.partition(".")
    value = _exact(match, digits)
    if value is not None and negative:
        value = -value
    return Number(value, percent, len(places))


def _exact(match: re.Match[str], digits: str) -> Fraction | None:
    value = _vulgar(digits) if digits in _VULGAR else _decimal(digits)
    if value is None:
        return None
    if match["scale"] is not None:
        return _scaled(value, match["scale"])
    if match["below"] is not None:
        below = _decimal(match["below"])
        return value / below if below else None
    if match["vulgar"] is not None:
        return value + _vulgar(match["vulgar"])
    if match["share"] is not None:
        return value + Fraction(1, _SHARES[match["share"]])
    if match["raised"] is not None:
        return _power(digits, match["raised"]) if digits.isdigit() else None
    if match["above"] is not None:
        above, part = _decimal(match["above"]), _decimal(match["part"])
        return value + above / part if above is not None and part and above < part else None
    return value


def _decimal(digits: str) -> Fraction | None:
    whole, _, places = digits.partition(".")
    whole, places = whole.lstrip("0"), places.rstrip("0")
    if len(whole) + len(places) > MAX_DIGITS:
        return None
    if not places:
        return Fraction(int(whole or "0"))
    return Fraction(int(whole + places), 10 ** len(places))


def _vulgar(sign: str) -> Fraction:
    above, _, below = unicodedata.normalize("NFKC", sign).partition("\u2044")
    return Fraction(int(above), int(below))


def _scaled(value: Fraction, scale: str) -> Fraction | None:
    word = _SCALE_WORDS.get(scale.strip())
    if word is not None:
        return value * Fraction(10**word)
    exponent = scale[1:] if scale[0] in "eE" else _EXPONENT.split(scale)[-1]
    power = _bounded_int(exponent)
    if power is None:
        return None
    return value * Fraction(10) ** power


def _power(base: str, exponent: str) -> Fraction | None:
    power = _bounded_int(exponent)
    if power is None or len(base) > MAX_DIGITS:
        return None
    root = int(base)
    if root.bit_length() * abs(power) > MAX_POWER_BITS or (root == 0 and power < 0):
        return None
    return Fraction(root) ** power


def _bounded_int(text: str) -> int | None:
    text = text.strip().translate(_PLAIN_DIGITS)
    digits = text.lstrip("+-").lstrip("0")
    if len(digits) > len(str(MAX_EXPONENT)):
        return None
    value = int(digits or "0")
    if value > MAX_EXPONENT:
        return None
    return -value if text.startswith("-") else value
