"""A cleaned view of a response, in which every position can be traced back to the original.

Digits of every script become ASCII digits, the minus signs of Unicode `-`, no-break spaces between
digit groups `'`, the full-width forms of ASCII their ASCII; zero-width and direction marks vanish.
Nothing else changes.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

_INVISIBLE = frozenset(
    "\u00ad\u061c\u180e\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2061\u2062\u2063"
    "\u2064\u2065\u2066\u2067\u2068\u2069\ufeff\u20e3\ufe00\ufe01\ufe02\ufe03\ufe04\ufe05\ufe06\ufe07"
    "\ufe08\ufe09\ufe0a\ufe0b\ufe0c\ufe0d\ufe0e\ufe0f"
)
_GROUP_SPACE = re.compile(r"(?<=\d)[\u00a0\u2007\u2009\u202f](?=\d{3}(?!\d))")
_DASH_AS_SIGN = re.compile(r"(?<![\w)])[\u2013\u2012](?=[0-9$€£.])")
_BLOCK = 4_096  # characters counted at a time on the way back to the original
_SIGNS = {
    "\u2212": "-", "\ufe63": "-", "\u2010": "-", "\u2011": "-", "\u301c": "~", "\u223c": "~",
    "\u00a0": " ", "\u2007": " ", "\u2009": " ", "\u202f": " ", "\u3000": " ", "\u066a": "%",
    "\u066b": ".", "\u066c": ",", "\u2044": "/", "\u2215": "/", "\u22c5": "*", "\u00b7": "*",
    "\u2028": "\n", "\u2029": "\n", "\u0085": "\n", "\r": "\n",
}  # fmt: skip


class _Table(dict[int, str]):
    """Fills itself with the digits of every script and with ASCII, one character at a time."""

    def __missing__(self, code: int) -> str:
        character = chr(code - 0xFEE0 if 0xFF01 <= code <= 0xFF5E else code)  # full-width ASCII
        digit = unicodedata.decimal(character, None)
        self[code] = character if digit is None else str(digit)
        return self[code]


@dataclass(frozen=True, slots=True)
class View:
    """Cleaned text with the way back to the original."""

    text: str
    original: str
    invisible: frozenset[str] = frozenset()  # the characters of the original that vanished

    def origin(self, position: int) -> int:
        """Turn a position in the cleaned text into one in the original."""
        if not self.invisible:
            return position
        for start in range(0, len(self.original), _BLOCK):
            block = self.original[start : start + _BLOCK]
            visible = len(block) - sum(map(block.count, self.invisible))
            if position < visible:
                kept = (at for at, sign in enumerate(block, start) if sign not in self.invisible)
                return next(islice(kept, position, None))
            position -= visible
        return len(self.original)

    def end_origin(self, end: int) -> int:
        """Turn an exclusive end in the cleaned text into one in the original."""
        return self.origin(end - 1) + 1 if end > 0 else self.origin(end)


_TABLE = _Table({ord(sign): plain for sign, plain in _SIGNS.items()})


def clean(response: str) -> View:
    """Clean a response for reading; free for plain ASCII, cheap where only letters are not."""
    if response.isascii():
        return View(response, response)
    characters = set(response)
    invisible = _INVISIBLE & characters
    text = response
    for character in invisible:
        text = text.replace(character, "")
    if any(_TABLE[ord(character)] != character for character in characters):
        text = _GROUP_SPACE.sub("'", text).translate(_TABLE)
    return View(_DASH_AS_SIGN.sub("-", text), response, invisible)


@lru_cache(maxsize=4096)
def clean_gold(gold: str) -> str:
    """Clean a gold answer the same way."""
    return clean(gold).text.strip()
