"""The asked answer format given as a regular expression: compiled only when it scans safely."""

from __future__ import annotations

import re
from functools import lru_cache

PREFIX = "pattern:"
MAX_PATTERN = 300
PATTERN_TAIL = 600
"""Characters at the end of a response that a pattern is matched against: a pattern of two unbounded
quantifiers can take the cube of a length."""

_QUANTIFIED_GROUP = re.compile(r"\)[*+{]")
_BACKREFERENCE = re.compile(r"\\[1-9]|\(\?P=|\(\?\(")
_UNBOUNDED = re.compile(r"(?<!\\)[*+]|\{\d*,(?:\d{2,})?\}|\{\d{2,}\}")
_MAX_UNBOUNDED = 2


@lru_cache(maxsize=64)
def compile_pattern(answer_format: str) -> re.Pattern[str] | None:
    """Compile the asked pattern.

    A quantified group, a back reference, or more than two unbounded quantifiers could make a scan
    take longer than a small power of the response's length, and are refused.

    Args:
        answer_format: The asked format; anything but `pattern:REGEX` has no pattern.

    Returns:
        The pattern, or None for the named formats.

    Raises:
        ValueError: The pattern is malformed, has not exactly one group, or does not scan safely.
    """
    if not answer_format.startswith(PREFIX):
        return None
    source = answer_format[len(PREFIX) :]
    if len(source) > MAX_PATTERN:
        raise ValueError(f"answer format: expected a pattern of at most {MAX_PATTERN} characters.")
    if _QUANTIFIED_GROUP.search(source) or _BACKREFERENCE.search(source):
        raise ValueError(
            f"answer format: expected no repeated group and no back reference, found {source!r}."
        )
    if len(_UNBOUNDED.findall(source)) > _MAX_UNBOUNDED:
        raise ValueError(
            f"answer format: expected at most {_MAX_UNBOUNDED} of * and +, found {source!r}."
        )
    try:
        pattern = re.compile(source)
    except re.error as error:
        raise ValueError(
            f"answer format: expected a pattern, found {source!r}: {error}."
        ) from error
    if pattern.groups != 1:
        raise ValueError(f"answer format: expected exactly one group, found {pattern.groups}.")
    return pattern
