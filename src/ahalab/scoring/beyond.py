"""What may be handed to the LaTeX worker: mathematics, within bounds that no clock decides."""

from __future__ import annotations

import re

MAX_ASKED = 1_000
"""Characters of one side that are handed on."""

MAX_DEPTH = 20
"""Nesting of brackets."""

MAX_RUN = 300
"""Digits in a row."""

_TOWER = re.compile(r"\d[)}\s]*\^[\s{(\[+-]*\d+[)}\s]*\^|\^[\s{(\[+-]*\d{5,}|\d{4,}[)}\s]*!")
_ENVIRONMENT = re.compile(r"\\(?:begin|end)\s*\{[a-zA-Z]*\*?\}(?:\{[clr|]*\})?")
_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{3,}")
_TIME_OR_RATIO = re.compile(r"\d\s?:\s?\d")
_UNIT = re.compile(r"(?<=[\w})])\s+[A-Za-z]{2,}[A-Za-z /.]*(?:\^?\{?[23]\}?)?$")


def beyond_bounds(text: str) -> bool:
    """Say whether an answer is too long, too deep or too large for any comparison."""
    if len(text) > MAX_ASKED or re.search(rf"\d{{{MAX_RUN + 1},}}", text) or _TOWER.search(text):
        return True
    depth = deepest = 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        deepest = max(deepest, depth)
    return deepest > MAX_DEPTH


def without_unit(latex: str) -> str:
    """Drop a unit in words at the end."""
    return _UNIT.sub("", latex)


def is_mathematics(latex: str) -> bool:
    """Say whether a text is mathematics: no prose, no time of the day, no ratio."""
    bare = _ENVIRONMENT.sub("", latex)
    return not (_WORD.search(bare) or _TIME_OR_RATIO.search(bare)) and bool(bare.strip())
