"""A question without what carries no meaning, so that two spellings of one can be told."""

from __future__ import annotations

import re
import unicodedata

SIGNS = str.maketrans("−×÷⋅·", "-*/**")  # `3 − 2` and `3 × 2` differ by more than punctuation


def normalised(question: str) -> str:
    """Return a question without what carries no meaning: case, white space, punctuation, form."""
    folded = unicodedata.normalize("NFKC", question).casefold().translate(SIGNS)
    folded = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", folded)  # 1,000 is 1000
    return " ".join(re.sub(r"[^\w\s+*/=<>^%-]", " ", folded).split())
