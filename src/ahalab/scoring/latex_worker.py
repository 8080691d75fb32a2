r"""The process that compares LaTeX with math-verify: `python -m ahalab.scoring.latex_worker`.

It reads length-prefixed JSON from standard input and answers on standard output, one request at a
time, until standard input ends. math-verify is imported here and nowhere else; its own timeouts
use signals and stay off, because the parent's kill is the clock (`worker.py`).
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import resource
import signal
import struct
import sys
import threading
import time
from functools import lru_cache
from typing import Any

HEADER = struct.Struct(">I")
MAX_MEMORY_BYTES = 4 << 30
CPU_GRACE_SECONDS = 3  # what a worker whose parent was killed may still compute
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


def _limit(kind: int, amount: int) -> None:
    """Lower a limit of this process; a system without it, or with a lower one, keeps its own."""
    _, hard = resource.getrlimit(kind)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(kind, (amount, hard))


def _answer(request: dict[str, Any]) -> str:
    spent = resource.getrusage(resource.RUSAGE_SELF)
    cpu = int(spent.ru_utime + spent.ru_stime + request["seconds"]) + CPU_GRACE_SECONDS
    _limit(resource.RLIMIT_CPU, cpu)
    try:
        return compare(request["stated"], request["gold"])
    except MemoryError:
        os._exit(1)  # the parent sees the end and starts another
    except Exception:  # noqa: BLE001 - a fault of the parser on one answer is no reading of it
        return "different"


def _send(descriptor: int, message: dict[str, Any]) -> None:
    body = json.dumps(message).encode("ascii")
    os.write(descriptor, HEADER.pack(len(body)) + body)


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(0)


def main() -> None:
    """Serve comparisons until standard input ends."""
    out = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints is no answer
    logging.disable(logging.CRITICAL)
    threading.Thread(target=_end_with, args=(int(sys.argv[1]),), daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer
    _limit(resource.RLIMIT_AS, MAX_MEMORY_BYTES)
    _limit(resource.RLIMIT_CORE, 0)
    try:
        compare(r"\sqrt{8}+x", r"2\sqrt{2}+x")  # builds the parser's tables before the first clock
    except ImportError:
        _send(out, {"verdict": "missing"})
        return
    _send(out, {"verdict": "ready"})
    source = sys.stdin.buffer
    while header := source.read(HEADER.size):
        request = json.loads(source.read(HEADER.unpack(header)[0]))
        _send(out, {"verdict": _answer(request)})


if __name__ == "__main__":
    main()
