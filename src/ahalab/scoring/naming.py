r"""LaTeX answers as normalised text, and the name one may carry (`x = 5`, `\angle A = 30`)."""

from __future__ import annotations

import re
from functools import lru_cache

from ahalab.scoring.latex import plain

_SPACES = re.compile(r"(?<!\\)\\[,;:! ]|\s+")
_SHORT_FRACTION = re.compile(r"\\frac(\d)(\d)")
_NAME = (
    r"(?:[A-Za-z](?:_\{?\w+\}?)?(?:\^-1)?|[A-Z]{2,3}|[A-Za-z]{3,}(?: [A-Za-z]+){0,4}"
    r"|(?:m\s*)?\\(?:angle|overline|triangle|vec|theta|alpha|beta)(?:\s*\{?[A-Za-z]{1,3}\}?)?)"
    r"(?:\([^()=]{0,20}\))?"
)
ASSIGNED = re.compile(
    rf"^(?:{_NAME}|\([A-Za-z](?:,\s*[A-Za-z]){{1,3}}\))\s*(?:=|\\in\b)\s*(?=[^\s=])"
)
ASSIGNED_BACKWARDS = re.compile(rf"^([^=]*[^=\s])\s*=\s*({_NAME})$")
_HOUR = re.compile(r"(?<=\d)([ap])\.?m\.?(?![A-Za-z])", re.IGNORECASE)
_WORDS = re.compile(r"[A-Za-z][A-Za-z' -]{2,}")
_SAME_NAME = (
    ("\\dfrac", "\\frac"), ("\\tfrac", "\\frac"), ("\\cfrac", "\\frac"), ("\\leq", "\\le"),
    ("\\geq", "\\ge"), ("\\neq", "\\ne"), ("\\varnothing", "\\emptyset"), ("\\{\\}", "\\emptyset"),
)  # fmt: skip
_CHOICE = re.compile(r"\([A-Z]\)")


@lru_cache(maxsize=4096)
def normal(text: str) -> str:
    """Normalise plain LaTeX text: spaces, braces of single characters, a final stop."""
    text = plain(text).rstrip(". ")
    if _WORDS.fullmatch(text):
        text = text.lower()
    text = _HOUR.sub(lambda hour: f"{hour[1].lower()}m", _SPACES.sub("", text))
    text = _SHORT_FRACTION.sub(r"\\frac{\1}{\2}", text)
    if "\\" in text:
        for name, same in _SAME_NAME:
            text = text.replace(name, same)
    text = re.sub(r"\{(\w)\}", r"\1", text)
    return text[1:-1] if _CHOICE.fullmatch(text) else text


def same_unnamed(stated: str, gold: str) -> bool:
    """Compare where one side names a variable (`x = 5`) and the other does not (`5`)."""
    if ASSIGNED.match(stated) and ASSIGNED.match(gold):
        return False
    return normal(unnamed(stated)) == normal(unnamed(gold))


def named_otherwise(stated: str, gold: str) -> bool:
    """Say whether both sides name what they give, and differently (`y = 5`, `x = 5`)."""
    names = ASSIGNED.match(stated), ASSIGNED.match(gold)
    if names[0] is None or names[1] is None:
        return False
    return normal(names[0].group()) != normal(names[1].group())


def name_first(bare: str) -> str:
    """Write `5 = x` with the name first."""
    backwards = ASSIGNED_BACKWARDS.match(bare)
    return bare if backwards is None else f"{backwards[2]} = {backwards[1]}"


def unnamed(text: str) -> str:
    """Drop the name (`x = 5` is `5`)."""
    return ASSIGNED.sub("", text, count=1)
