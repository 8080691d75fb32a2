r"""The process that compares LaTeX with math-verify: `python -m ahalab.scoring.latex_worker`.

It answers one question at a time, until it is killed (`ahalab/killable.py`). math-verify is
imported here and nowhere else; its own timeouts use signals and stay off, because the parent's kill
is the clock (`worker.py`).
"""

from __future__ import annotations

import os
import re
import resource
from functools import lru_cache
from typing import Any

from ahalab.killable import Message, limit, limit_cpu, serve

MAX_MEMORY_BYTES = 4 << 30
_DIGITS = 60  # two numbers that agree in so many digits, out of what math-verify calls equal
_ROUNDED = re.compile(r"[-+]?\d*\.(\d{3,})")  # the rule for golds in docs/scoring.md


@lru_cache(maxsize=1024)
def _parsed(latex: str) -> tuple[Any, ...]:
    """Return the expression and math-verify's reading of it as text; empty when it has none."""
    import math_verify

    wanted = [
        math_verify.LatexExtractionConfig(boxed_match_priority=-1),
        math_verify.ExprExtractionConfig(),
    ]
    return tuple(
        math_verify.parse(
            f"${latex}$", wanted, fallback_mode="no_fallback", parsing_timeout=None
        )
    )  # fmt: skip


def _equal(stated: tuple[Any, ...], gold: tuple[Any, ...], gold_text: str) -> bool:
    """Compare two readings; what is a number is compared exactly, not to math-verify's 6 places."""
    import math_verify
    from sympy import Expr  # type: ignore[import-untyped]

    a, b = stated[0], gold[0]
    rounded = _ROUNDED.fullmatch(gold_text.strip())
    if isinstance(a, Expr) and isinstance(b, Expr) and not (a.free_symbols or b.free_symbols):
        x, y = a.evalf(_DIGITS + 20), b.evalf(_DIGITS + 20)
        distance = abs(x - y)
        if distance.is_number and distance.is_comparable:
            if rounded is not None:
                return bool(2 * distance * 10 ** len(rounded[1]) <= 1)
            return bool(distance <= abs(y) * 10**-_DIGITS)
    return bool(
        math_verify.verify(
            list(gold), list(stated), allow_set_relation_comp=True, timeout_seconds=None
        )
    )


@lru_cache(maxsize=1024)
def _readable(gold: str) -> bool:
    reading = _parsed(gold)
    return bool(reading) and _equal(reading, reading, gold)


def compare(stated: str, gold: str) -> str:
    """Compare two LaTeX answers: equal, different, or unreadable (the gold)."""
    if not _readable(gold):
        return "unreadable"
    reading = _parsed(stated)
    return "equal" if reading and _equal(reading, _parsed(gold), gold) else "different"


def _ready() -> Message:
    limit(resource.RLIMIT_AS, MAX_MEMORY_BYTES)
    try:
        compare(r"\sqrt{8}+x", r"2\sqrt{2}+x")  # builds the parser's tables before the first clock
    except ImportError:
        return {"verdict": "missing"}
    return {"verdict": "ready"}


def _reply(request: Message) -> Message:
    limit_cpu(request["seconds"])
    try:
        return {"verdict": compare(request["stated"], request["gold"])}
    except MemoryError:
        os._exit(1)  # the parent sees the end and starts another
    except Exception:  # noqa: BLE001 - a fault of the parser on one answer is no reading of it
        return {"verdict": "different"}


if __name__ == "__main__":
    serve(_ready, _reply)
