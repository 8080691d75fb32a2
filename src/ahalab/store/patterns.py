"""The patterns of an adapter's configuration: others' regular expressions, within bounds."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ahalab.errors import InputError

# Keys of PEFT's patterns are regular expressions; these could make a match take for ever.
_COSTLY_KEY = re.compile(r"\)[*+{?]|\\[1-9]|\(\?")
_MAX_KEY, _MAX_REPEATS, _MAX_BRANCHES = 200, 3, 8
_MAX_KEYS = 20_000  # of one field: an expert each, and they take three seconds to compile
_MAX_STEPS = 10**9  # of all keys against all modules, at worst; some seconds
FIELDS = ("rank_pattern", "alpha_pattern")
Patterns = dict[str, list[tuple[re.Pattern[str], Any]]]  # field -> keys with their values, in order


def read_patterns(
    place: Path, config: Mapping[str, Any], field: str
) -> list[tuple[re.Pattern[str], Any]]:
    r"""Return what a pattern field asks for, its keys ready to be matched.

    Raises:
        InputError: It is no object, or a key is no pattern, or one that could be matched for ever.

    Source:
        PEFT, `peft.utils.other.get_pattern_key`: `re.match(rf"(.*\.)?({key})$", module)`.
    """
    pattern = config.get(field) or {}
    if not isinstance(pattern, dict):
        raise InputError(f"{place}: expected {field} to be an object.")
    if len(pattern) > _MAX_KEYS:
        raise InputError(
            f"{place}: expected at most {_MAX_KEYS} keys in {field}, found "
            f"{len(pattern)}. Refused: name groups of modules by one pattern."
        )
    found = []
    for key, value in pattern.items():
        costly = len(key) > _MAX_KEY or _repeats(key) > _MAX_REPEATS or _COSTLY_KEY.search(key)
        if costly or key.count("|") > _MAX_BRANCHES:
            raise InputError(
                f"{place}: expected plain module names in {field}, found "
                f"{key[:60]!r}. Refused: matching it could take for ever."
            )
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # `[[` means a set within a set one day
                found.append((re.compile(rf"(.*\.)?({key})$"), value))
        except (re.error, OverflowError, RecursionError, Warning) as error:
            raise InputError(
                f"{place}: expected a pattern in {field}, found {key[:60]!r}: {error}."
            ) from error
    return found


def _repeats(key: str) -> int:
    return sum(key.count(sign) for sign in "*+?{")


def require_cheap(place: Path, patterns: Patterns, modules: Iterable[str]) -> None:
    """Refuse keys and modules that together could be matched for hours: both are the sender's.

    Counted is the worst case: after each dot, every repeat may end at every character, and every
    branch may be taken.

    Raises:
        InputError: They could.
    """
    keys = [
        (_repeats(pattern.pattern) - 2, pattern.pattern.count("|"))  # ours are `.*` and `?`
        for field in patterns.values()
        for pattern, _ in field
    ]
    steps = sum(
        (name.count(".") + 1) * len(name) ** repeats << branches
        for name in modules
        for repeats, branches in keys
    )
    if steps > _MAX_STEPS:
        raise InputError(
            f"{place}: expected patterns and module names that are matched at "
            f"once, found some that could take {steps:.0e} steps. Refused: shorten them."
        )


def by_pattern(pattern: list[tuple[re.Pattern[str], Any]], module: str) -> Any:
    """Return what a pattern field says of a module, or None; the first key that matches wins."""
    return next((value for key, value in pattern if key.match(module)), None)
