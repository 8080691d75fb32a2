"""What no YAML of ours has, looked for in that of others before it is loaded: anchors and tags.

A few anchors unfold to billions of nodes. A tag has a value built as what it is not, and the
library's constructors end in exceptions of every kind where it can't be (`!!int ''`, `!!bool x`).
"""

from __future__ import annotations

from dataclasses import dataclass
from io import StringIO

from ruamel.yaml import YAML


@dataclass(frozen=True, slots=True)
class Mark:
    """An anchor, an alias or a tag."""

    line: int  # from 1
    column: int  # from 1
    name: str


def first_mark(text: str) -> Mark | None:
    """Return the first anchor, alias or tag; None: there is none.

    Raises:
        YAMLError: The text is no YAML up to there.
    """
    for event in YAML(typ="safe", pure=True).parse(StringIO(text)):
        for name in (getattr(event, "anchor", None), getattr(event, "tag", None)):
            if name is not None:
                return Mark(event.start_mark.line + 1, event.start_mark.column + 1, str(name))
    return None
