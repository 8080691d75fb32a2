"""Runs `ahalab` with another scorer than the installed one: `another_scorer.py VERSION ...`.

It takes nothing but the asked format, so that answers stated in words come to nothing. Imported
before anything else of the package, it stands wherever a scorer is used.
"""

from __future__ import annotations

import dataclasses
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from ahalab.scoring import answers as scoring

RULES = ("hashes", "none")  # what it still takes


def install(version: str) -> None:
    """Put the scorer and its version in the place of the installed ones."""
    original = scoring.score_answer

    def strictly(reading: scoring.Reading) -> scoring.Reading:
        if reading.rule in RULES:
            return reading
        return dataclasses.replace(
            reading, outcome="unparsed", extracted=None, span=None, rule="none"
        )

    def score(*arguments: Any, **named: Any) -> scoring.Score:
        found = original(*arguments, **named)
        return scoring.Score(strictly(found.strict), strictly(found.lenient))

    scoring.SCORER_VERSION = version  # type: ignore[misc]
    scoring.score_answer = score


def die_at(event: int) -> list[int]:
    """End this process by SIGKILL at one write, fsync, rename or removal; count them."""
    count = [0]

    def faulty(call: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any, **named: Any) -> Any:
            count[0] += 1
            if count[0] == event:
                if call is write:  # a torn one
                    write(arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*arguments, **named)

        return called

    write = os.write
    os.write, os.fsync, os.replace = faulty(os.write), faulty(os.fsync), faulty(os.replace)
    os.unlink = faulty(os.unlink)
    return count


if __name__ == "__main__":
    install(sys.argv.pop(1))
    from ahalab.cli import main

    sys.exit(main())
