"""Foreign text in Markdown: shown as it is, and never read as markup."""

from __future__ import annotations

import re

from ahalab.visible import plain

# What GitHub's and the Hub's Markdown act on within a line. `_` within a word is text there.
MARKUP = re.compile(r"[&<>\[\]`*|\\~]")
NAMED = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
TICKS = re.compile("`+")
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def prose(text: str) -> str:
    """Return a text as a piece of a paragraph or of a table cell; `html.unescape` undoes it."""
    return MARKUP.sub(lambda m: NAMED.get(m[0], f"&#{ord(m[0])};"), plain(text))


def code(text: str) -> str:
    """Return a text as code within a line, whatever backticks it holds; not for table cells."""
    shown = plain(text)
    fence = "`" * (1 + _longest(shown))
    edge = " " if not shown or "`" in (shown[0], shown[-1]) or shown.isspace() else ""
    return f"{fence}{edge}{shown}{edge}{fence}"


def fenced(text: str, language: str = "") -> str:
    """Return a text as a block of code; line feeds stay, other control characters are shown."""
    shown = "\n".join(plain(line) for line in text.split("\n"))
    fence = "`" * max(3, 1 + _longest(shown))
    return f"{fence}{language}\n{shown}\n{fence}"


def digest_text(value: str) -> str:
    """Return a digest; anything else than one is not printed as one."""
    return value if DIGEST.fullmatch(value) else "unknown"


def _longest(text: str) -> int:
    return max((len(run) for run in TICKS.findall(text)), default=0)
