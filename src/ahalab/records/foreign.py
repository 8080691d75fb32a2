"""JSON that others wrote, read so that it can mean one thing only.

The standard library takes more than JSON has: text in other encodings, a key twice (the last one
counts, elsewhere the first), `NaN`, and `1e999` as infinity. Each is refused here.
"""

from __future__ import annotations

import json
import math
from typing import Any

MAX_LINE_BYTES = 16 << 20  # of a row


def read_json(payload: bytes) -> Any:
    """Return what JSON text says.

    Args:
        payload: UTF-8, with or without a byte order mark.

    Raises:
        ValueError: It is no JSON of UTF-8, names a key twice, or holds a number that is not finite
            or longer than 4,300 digits; in one line.
        RecursionError: It is nested too deep.
    """
    text = payload.decode("utf-8-sig")
    return json.loads(
        text, object_pairs_hook=_no_key_twice, parse_constant=_no_constant, parse_float=_finite
    )


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"a key twice ({twice[:80]!r})")
    return found


def _no_constant(name: str) -> None:
    raise ValueError(f"{name}, which is not JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{digits[:80]}, which is too large for a number")
    return value
