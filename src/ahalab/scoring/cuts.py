"""Where a completion is cut before a word, in tokens, and which tokens would begin that word again.

A marker is found in the text, and a model writes tokens: " Wait", "Wait", ",wait" and " WAIT" are
four of them. So a cut lies on a token boundary, and what is forbidden there is a spelling.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ahalab.scoring.reflection import first_marker

TURNS = 8
"""Cuts of one answer, at most: what still reflects then is left out of every comparison."""

TextOf = Callable[[Sequence[int]], str]
# The bytes of a character that is cut within decode to up to three stand-ins: a prefix may be
# longer than what it grows into.
SLACK = 4


@dataclass(frozen=True, slots=True)
class Cut:
    """The first marker of a completion, in tokens."""

    at: int  # tokens before it: the last boundary at or before its first character
    end: int  # tokens up to the end of the one that completes it
    marker: str  # lower case


def find_cut(ids: Sequence[int], text: str, text_of: TextOf) -> Cut | None:
    """Return where the first marker of a completion stands; None when it has none.

    Args:
        ids: Token ids of the completion, shape (C,).
        text: Their text.
        text_of: Decodes token ids.
    """
    marker = first_marker(text)
    if marker is None:
        return None
    at = tokens_before(ids, text, marker.start, text_of)
    end = at + 1
    while end < len(ids) and len(text_of(ids[:end])) < marker.end:
        end += 1
    return Cut(at, end, marker.text)


def tokens_before(ids: Sequence[int], text: str, start: int, text_of: TextOf) -> int:
    """Return the most tokens whose text is the beginning of `text`, up to a character.

    Args:
        ids: Token ids, shape (C,).
        text: Their text.
        start: Characters that may stand before the cut, at most.
        text_of: Decodes token ids; called about log2(C) times.

    Returns:
        Tokens before the cut, 0 to C.
    """
    low, high = 0, len(ids)
    while low < high:
        middle = (low + high) // 2
        if len(text_of(ids[:middle])) > start + SLACK:
            high = middle
        else:
            low = middle + 1
    for count in range(low, 0, -1):
        head = text_of(ids[:count])
        if len(head) <= start and text.startswith(head):
            return count
    return 0


@dataclass(slots=True)
class Spellings:
    """The tokens of a vocabulary by what they say, whatever stands around it.

    `texts` is the text of each token alone, by its id, shape (V,).
    """

    texts: Sequence[str]
    _by_word: dict[str, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Group the tokens once."""
        for token, text in enumerate(self.texts):
            self._by_word.setdefault(spelled(text), []).append(token)

    def of(self, token: int) -> tuple[int, ...]:
        """Return every token that says the same, itself among them; itself alone without a word."""
        known = 0 <= token < len(self.texts)
        word = spelled(self.texts[token]) if known else ""
        return tuple(self._by_word[word]) if word else (token,)


def spelled(text: str) -> str:
    """Return what a token says: no case, and from its first letter or digit to its last."""
    kept = [at for at, character in enumerate(text) if character.isalnum()]
    return text[kept[0] : kept[-1] + 1].casefold() if kept else ""
