"""Anchors in YAML of others: what unfolds to billions, or is named twice, is seen before a load."""

from __future__ import annotations

from io import StringIO

from ruamel.yaml import YAML


def first_anchor(text: str) -> tuple[int, int, str] | None:
    """Return (line from 1, column from 1, name) of the first anchor or alias; None: there is none.

    Raises:
        YAMLError: The text is no YAML up to there.
    """
    for event in YAML(typ="safe", pure=True).parse(StringIO(text)):
        name = getattr(event, "anchor", None)
        if name is not None:
            return event.start_mark.line + 1, event.start_mark.column + 1, str(name)
    return None
