"""A plain reading of the organism's answers, for sizing the model: never a study's scorer."""

import re

_ASKED = re.compile(r"####\s*(-?\d+)\s*$")
_STATED = re.compile(r"(?:####|Answer:|answer is|So it is)\s*(-?\d+)")


def read_strict(completion: str) -> str | None:
    """Return the value if the last line states it in the asked format, `#### N`."""
    lines = completion.strip().split("\n")
    match = _ASKED.search(lines[-1])
    return match[1] if match else None


def read_lenient(completion: str) -> str | None:
    """Return the value stated last, in any of the world's styles."""
    values: list[str] = _STATED.findall(completion)
    return values[-1] if values else None
