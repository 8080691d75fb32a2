"""Rows of any file of answers, as the index keeps them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from ahalab.records.answer import Answer
from ahalab.records.reflection import Continuation, Ending
from ahalab.records.validation import ValidationAnswer
from ahalab.view.sets import SetKind

CONTENT = ("completion", "completion_ids", "finish", "extracted", "rule", "status", "strict",
           "lenient")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Written:
    """One answer, whatever file it stands in."""

    prompt_id: str
    sample: int
    step: int | None  # of a validation
    row: Answer | ValidationAnswer | Ending
    cuts: str | None = None  # JSON: the markers it was cut before, and whether it still has one

    @property
    def content(self) -> bytes:
        """A digest of all that it says, whatever it was made under: equal to the byte or not."""
        told = json.dumps([getattr(self.row, field) for field in CONTENT])
        return hashlib.blake2b(told.encode(), digest_size=16).digest()


def _answer(row: Answer) -> Written:
    return Written(row.prompt_id, row.sample, None, row)


def _validation(row: ValidationAnswer) -> Written:
    return Written(row.prompt_id, 0, row.step, row)


def _without(row: Continuation) -> Written:
    cuts = {"markers": [turn.marker for turn in row.turns], "still": row.reflects}
    return Written(row.prompt_id, row.sample, None, row.without, json.dumps(cuts))


def _kept(row: Continuation) -> Written:
    cuts = {"markers": [turn.marker for turn in row.turns[:1]], "still": False}
    return Written(row.prompt_id, row.sample, None, row.kept, json.dumps(cuts))


@dataclass(frozen=True, slots=True)
class Reader:
    """How the rows of a kind of file are read."""

    decoder: msgspec.json.Decoder[Any]
    written: Callable[[Any], Written]

    def read(self, line: bytes) -> Written:
        """Decode one row."""
        return self.written(self.decoder.decode(line))


_ANSWERS = Reader(msgspec.json.Decoder(Answer), _answer)
_CONTINUATIONS = msgspec.json.Decoder(Continuation)
READERS: dict[SetKind, Reader] = {
    "evaluation": _ANSWERS,
    "floor": _ANSWERS,
    "replay": _ANSWERS,
    "template": _ANSWERS,
    "validation": Reader(msgspec.json.Decoder(ValidationAnswer), _validation),
    "without": Reader(_CONTINUATIONS, _without),
    "kept": Reader(_CONTINUATIONS, _kept),
}
