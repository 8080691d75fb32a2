"""Foreign text made visible: what a reader can't see, or a screen would obey, is written out.

The one rule for every door: terminal, report and viewer. What a model wrote may hold escape
sequences, direction overrides, or characters without a glyph; each is shown as what it is.
"""

from __future__ import annotations

import unicodedata

# Categories that are not seen, or that change what is seen around them.
UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# Default_Ignorable_Code_Point of other categories (Unicode 16, DerivedCoreProperties): joiners,
# fillers, variation selectors; and the braille blank, which is a glyph without ink.
NO_GLYPH = frozenset(
    {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0}
    | set(range(0x180B, 0x1810))
    | set(range(0xFE00, 0xFE10))
    | set(range(0xE0100, 0xE01F0))
)


def written_out(character: str) -> str:
    """Return a character as it is shown: itself, or its name in caret or backslash notation."""
    code = ord(character)
    if code < 0x20 or code == 0x7F:
        return "^" + chr(code ^ 0x40)  # caret notation: ESC is ^[, NUL is ^@
    if unicodedata.category(character) not in UNSEEN and code not in NO_GLYPH:
        return character
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def plain(text: str, keep: str = "") -> str:
    """Return text in which every unseen character is written out, but those of `keep`."""
    if text.isascii() and text.isprintable():  # most texts
        return text
    return "".join(c if c in keep else written_out(c) for c in text)
