"""What generates answers: transformers now; every backend hands over `Completion`s."""

from __future__ import annotations

from dataclasses import dataclass

from ahalab.records.terms import Finish


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model wrote to one prompt."""

    text: str
    ids: tuple[int, ...]  # up to and with the first end token, shape (C,)
    finish: Finish
