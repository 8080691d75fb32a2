"""Whether two sets of answers may be compared: their protocols, and what was allowed or meant."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

from ahalab.errors import ProtocolError
from ahalab.plain_files import read_plain
from ahalab.records.answer import (
    MACHINE_FIELDS,
    Protocol,
    covers,
    differing_fields,
    without_adapter,
)
from ahalab.records.base import Record, decode_file, digest
from ahalab.records.reflection import ReflectionProtocol
from ahalab.view.sets import AnswerSet, SetKind, read_templates
from ahalab.view.sources import Study
from ahalab.visible import plain

# Kinds of two sets -> the fields that these are made to differ in, and what that tells.
MEANT: dict[frozenset[SetKind], tuple[tuple[str, ...], str]] = {
    frozenset({"evaluation", "floor"}): (
        ("batch_size", "cells_per_batch", "seed"),
        "The noise floor: the base again, in other batches (differing in {}).",
    ),
    frozenset({"evaluation", "replay"}): (
        MACHINE_FIELDS,
        "Generated again elsewhere: the protocols differ in {}.",
    ),
    frozenset({"template"}): (("prompts_digest",), "The base under two prompt templates: {}."),
}
R = TypeVar("R", bound=Record)
CUT = frozenset({"without", "kept"})
FINISHED = (
    "Only answers with a reflection marker: each was cut before its first one, which is framed, "
    "and finished. Those that reflect still (still=yes) count in no analysis."
)
UNBOUND = (
    "To read, not to count: a validation answers during the training and keeps no protocol to "
    "compare with the other side's."
)


def comparability(study: Study, before: AnswerSet, after: AnswerSet) -> str:
    """Return what a reader must know before comparing; mostly nothing.

    Raises:
        ProtocolError: The questions are others, or the protocols differ in more than the kinds of
            these sets are made to and the analysis was allowed.
    """
    kinds = frozenset({before.file.kind, after.file.kind})
    if before.file.split != after.file.split:
        raise ProtocolError(
            f"{after.name}: expected answers to the {before.file.split} questions, as "
            f"{before.name}, found answers to the {after.file.split} questions."
        )
    if kinds & CUT:
        return _cut(before, after)
    if "validation" in kinds:
        return "" if kinds == {"validation"} else UNBOUND
    return _answered(study, before, after, kinds)


def _answered(study: Study, before: AnswerSet, after: AnswerSet, kinds: frozenset[SetKind]) -> str:
    """Compare two protocols."""
    one = _read(before.file.paths.protocol, Protocol)
    other = _read(after.file.paths.protocol, Protocol)
    if one is None or other is None:
        return "" if one is other else "Only one side has a protocol yet."
    differing = differing_fields(without_adapter(one), without_adapter(other))
    if not differing:
        return ""
    meant, says = MEANT.get(kinds, ((), ""))
    allowed = _allowed(study.paths.comparison)
    refused = [field for field in differing if not covers((*meant, *allowed), field)]
    if refused:
        raise ProtocolError(
            f"{after.name}: expected the protocol of {before.name}, found another "
            f"{', '.join(map(plain, refused))}. Such answers are not compared."
        )
    excepted = [field for field in differing if not covers(meant, field)]
    if excepted:
        return f"An exception: the protocols differ in {', '.join(map(plain, excepted))}."
    if kinds == {"template"}:
        return says.format(f"{_template(study, before)}; {_template(study, after)}")
    return says.format(", ".join(map(plain, differing)))


def _template(study: Study, one: AnswerSet) -> str:
    """Return what a template puts around a question."""
    asked = read_templates(study.paths)
    name = one.name.rpartition("/")[2]
    for template in asked.templates if asked else ():
        if template.name == name:
            system = f", system {template.system!r}" if template.system else ""
            return f"{name} asks {plain(template.template)!r}{plain(system)}"
    return name


def _cut(before: AnswerSet, after: AnswerSet) -> str:
    """Compare answers that were cut and finished with the answers that they were."""
    cut, other = (before, after) if before.file.kind in CUT else (after, before)
    if cut.file.cell != other.file.cell or other.file.kind not in (*CUT, "evaluation"):
        raise ProtocolError(
            f"{cut.name}: expected the answers that were cut, {cut.file.cell.name}, found "
            f"{other.name}. Such answers are not compared."
        )
    made = _read(cut.file.paths.protocol, ReflectionProtocol)
    answered = _read(other.file.paths.protocol, Protocol) if other.file.kind not in CUT else None
    if made is not None and answered is not None and made.answers != digest(answered):
        raise ProtocolError(
            f"{cut.name}: expected continuations of the answers that lie there, found those of "
            "others, under another protocol. Such answers are not compared."
        )
    return FINISHED


def _read(path: Path, kind: type[R]) -> R | None:
    try:
        return decode_file(read_plain(path), kind, str(path))
    except OSError:
        return None


class _Allowed(msgspec.Struct):
    field: str


class _Exceptions(msgspec.Struct):
    allowed: tuple[_Allowed, ...] = ()


def _allowed(comparison: Path) -> tuple[str, ...]:
    """Return the fields in which the analysis was allowed to compare unequal protocols."""
    try:
        found = msgspec.json.decode(read_plain(comparison), type=_Exceptions)
    except (OSError, msgspec.MsgspecError):
        return ()
    return tuple(exception.field for exception in found.allowed)
