"""How numbers and foreign text are written: rounded for reading, hostile text made visible."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

from markupsafe import Markup, escape

from ahalab.visible import written_out

UNKNOWN = "–"  # None: not known, not defined; never 0
MINUS = "\u2212"
MAX_TEXT = 6_000  # characters of one model text shown; the row file holds all of it
SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def number(value: float | None, digits: int = 3) -> str:
    """Return a number with so many significant digits; an `int` as it is."""
    if value is None:
        return UNKNOWN
    if value == 0:
        return "0"
    if isinstance(value, int):
        return f"{value:,}".replace("-", MINUS)
    exponent = math.floor(math.log10(abs(value)))
    if exponent < -4:
        return _scientific(value, digits)
    return f"{value:,.{max(0, digits - 1 - exponent)}f}".replace("-", MINUS)


def _scientific(value: float, digits: int) -> str:
    mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
    power = str(int(exponent)).translate(SUPERSCRIPTS)
    return f"{mantissa.replace('-', MINUS)} × 10{power}"


def count(value: float | None) -> str:
    """Return a count of things, or a mean of counts to one decimal."""
    if value is None:
        return UNKNOWN
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def weighted(components: Mapping[str, float]) -> str:
    """Return a reward as the sum that it is."""
    return " + ".join(f"{weight:g} × {name}" for name, weight in components.items())


def points(value: float | None) -> str:
    """Return a difference in percentage points, signed, to one decimal."""
    if value is None:
        return UNKNOWN
    rounded = round(value, 1) + 0.0  # -0.0 is 0
    return f"{rounded:+.1f}".replace("-", MINUS) if rounded else "0.0"


def span(interval: tuple[float, float] | None) -> str:
    """Return an interval in percentage points."""
    return UNKNOWN if interval is None else f"{points(interval[0])} to {points(interval[1])}"


def percent(fraction: float | None) -> str:
    """Return a fraction as a percentage, to one decimal."""
    return UNKNOWN if fraction is None else f"{100 * fraction:.1f} %"


def probability(p: float | None) -> str:
    """Return a p-value with two significant digits."""
    return UNKNOWN if p is None else number(p, 2)


def tick_label(marks: Sequence[float], *, share: bool = False) -> Callable[[float], str]:
    """Return how the ticks of an axis are written: all with as many digits as their step needs."""
    scale = 100.0 if share else 1.0
    step = scale * min((b - a for a, b in pairwise(marks)), default=1.0)
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    unit = " %" if share else ""
    return lambda value: f"{scale * value + 0.0:,.{digits}f}{unit}".replace("-", MINUS)


def trend(first: float | None, last: float | None, *, share: bool = False) -> str:
    """Return a quantity at the start and at the end of a run."""
    show = percent if share else number
    return UNKNOWN if first is None and last is None else f"{show(first)} → {show(last)}"


def visible(text: str, *, lines: bool = True) -> Markup:
    """Return foreign text as HTML: escaped; control, bidi and invisible characters written out.

    Args:
        text: Anything a model, a task or a plan wrote.
        lines: Keep line feeds and tabs as they are; otherwise they are written out too.

    Returns:
        Safe markup; what was written out stands in `<b class="ctl">`, apart from ordinary text.
    """
    shown = {
        "text": escape,
        "ctl": Markup('<b class="ctl">{}</b>').format,
        "cut": Markup('<i class="cut">{}</i>').format,
    }
    return Markup("").join(shown[kind](piece) for kind, piece in _pieces(text, lines=lines))


# What stands around a piece in `marked`: control characters, which no visible text holds.
OPEN_CTL, OPEN_CUT, CLOSE = "\x01", "\x02", "\x03"


def marked(text: str, *, lines: bool = True) -> str:
    """Return what `visible` shows as text, for a script that makes the same elements of it.

    What was written out stands between U+0001 and U+0003, what says that the text is longer
    between U+0002 and U+0003; neither occurs in it otherwise. It is not escaped.
    """
    opened = {"ctl": OPEN_CTL, "cut": OPEN_CUT}
    return "".join(
        piece if kind == "text" else f"{opened[kind]}{piece}{CLOSE}"
        for kind, piece in _pieces(text, lines=lines)
    )


def is_plain(text: str, *, lines: bool = True) -> bool:
    """Say, fast, of most texts in which nothing has to be written out that they are such."""
    bare = text.replace("\n", "").replace("\t", "") if lines else text
    return bare.isascii() and bare.isprintable()


def _pieces(text: str, *, lines: bool) -> Iterator[tuple[str, str]]:
    """Yield (kind, piece): ordinary text, a character written out, how much was cut."""
    run: list[str] = []
    start = text[:MAX_TEXT]
    if is_plain(start, lines=lines):
        yield "text", start
        start = ""
    for character in start:
        shown = character if lines and character in "\n\t" else written_out(character)
        if shown == character:
            run.append(character)
            continue
        yield "text", "".join(run)
        yield "ctl", shown
        run = []
    yield "text", "".join(run)
    if len(text) > MAX_TEXT:
        yield "cut", f" … {len(text) - MAX_TEXT:,} characters more"
