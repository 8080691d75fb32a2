"""Values that a field's type takes and nothing sound would hold: none may end the verifier."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from msgspec import inspect

from ahalab.errors import PlanError, RecordError
from mutations.fields import Place
from mutations.judging import Judged, copy_of, verify
from mutations.on_fields import FieldChange, once_each

INTEGERS = (0, -1, 2**63 - 1, -(2**63), 10**400)
FLOATS = (0.0, -0.0, -1.5, 1e100, -1e100, 1e308, 5e-324)
TEXTS = ("", "x" * 70_000, "\x00\u202e", "1e999999", "../../x", "9" * 5_000, "\N{SUPERSCRIPT NINE}")


def extremes(place: Place) -> list[Any]:
    """Return values that the schema of a field takes."""
    found = _of(place.type)
    return [
        value for value in found if value != place.value or type(value) is not type(place.value)
    ]


def _of(kind: inspect.Type) -> list[Any]:
    """Return the extremes of a type; of a list or a table, with an extreme in it, too."""
    match kind:
        case inspect.UnionType():
            return [value for one in kind.types for value in _of(one)]
        case inspect.IntType():
            return list(INTEGERS)
        case inspect.FloatType():
            return list(FLOATS)
        case inspect.StrType():
            return list(TEXTS)
        case inspect.BoolType():
            return [False, True]
        case inspect.NoneType():
            return [None]
        case inspect.AnyType():
            return [None, 10**400, 1e308, "", [], {}, True, [[]], {"": None}]
        case inspect.VarTupleType() | inspect.ListType():
            return [[], *([value] for value in _of(kind.item_type))]
        case inspect.TupleType():
            return [list(values) for values in zip(*map(_of, kind.item_types), strict=True)]
        case inspect.DictType():
            return [{}, *({"x": value} for value in _of(kind.value_type))]
    return []  # a struct, by its fields; a name of a closed list


def extreme_changes(studies: dict[str, Path]) -> Iterator[tuple[str, FieldChange]]:
    """Yield (study, change) of every field, once for each of its extremes."""
    for study, change in once_each(studies):
        for value in extremes(change.place):
            yield study, replace(change, value=value)


def judge_extreme(root: Path, change: FieldChange, folder: Path) -> Judged:
    """Make one change in a copy, all digests mended; whatever is told, it is no exception.

    An owner holds the root as well, so a field that no check judges may be found sound.
    """
    with copy_of(root, folder) as copy:
        try:
            change.tamper(copy)
        except (ValueError, PlanError, RecordError) as error:  # what writes it has the same bounds
            return _judged(change, None, f"not written: {type(error).__name__}")
        try:
            result = verify(copy).result
        except Exception as error:  # noqa: BLE001 - that is what is looked for
            return _judged(change, error, "")
    return _judged(change, None, result)


def _judged(change: FieldChange, error: Exception | None, told: str) -> Judged:
    shown = repr(change.value)[:40]
    why = told if error is None else f"{type(error).__name__}: {error}"
    return Judged("extreme", f"{change.name} = {shown}", change.group, "", error is None, why)
