"""Foreign text as the page gets it: made visible here, with the places of what was written out.

The page never sees a control, direction or zero-width character of a model's. Places are counted in
UTF-16 code units, as JavaScript counts.
"""

from __future__ import annotations

from dataclasses import dataclass

from ahalab.visible import plain, written_out

KEPT = "\n\t"  # a page shows them as what they are
MAX_TEXT = 40_000  # characters of one text that are shown
Span = tuple[int, int]  # start and end, end exclusive


@dataclass(frozen=True, slots=True)
class Shown:
    """One text, ready to be set as the text of an element."""

    text: str
    escapes: tuple[Span, ...] = ()  # what was written out
    mark: Span | None = None  # what the scorer took
    cut: int = 0  # characters left out at the end


def shown(text: str, span: Span | None = None) -> Shown:
    """Return a text made visible.

    Args:
        text: What a model, a task or a plan wrote.
        span: Character offsets in it to be marked, as the scorer gives them.
    """
    kept = text[:MAX_TEXT]
    cut = len(text) - len(kept)
    if span is not None and span[0] >= len(kept):
        span = None
    if kept.isascii() and all(c.isprintable() or c in KEPT for c in kept):
        return Shown(kept, (), None if span is None else (span[0], min(span[1], len(kept))), cut)
    pieces: list[str] = []
    escapes: list[Span] = []
    at = 0
    places = []  # of each character, in the shown text
    for character in kept:
        places.append(at)
        piece = character if character in KEPT else written_out(character)
        width = len(piece) + sum(ord(c) > 0xFFFF for c in piece)
        if piece != character:
            if escapes and escapes[-1][1] == at:
                escapes[-1] = (escapes[-1][0], at + width)
            else:
                escapes.append((at, at + width))
        pieces.append(piece)
        at += width
    places.append(at)
    mark = None if span is None else (places[span[0]], places[min(span[1], len(kept))])
    return Shown("".join(pieces), tuple(escapes), mark, cut)


def line(text: str | None, length: int = 200) -> str:
    """Return the start of a text on one line, made visible; empty for none."""
    if text is None:
        return ""
    start = plain(" ".join(text[: 4 * length].split()))
    return start if len(start) <= length else start[: length - 1].rstrip() + "…"
