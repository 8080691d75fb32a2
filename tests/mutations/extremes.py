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
FLOATS = (0.0, -0.0, -1.5, 1e308, 5e-324)
TEXTS = ("", "x" * 70_000, "\x00\u202e", "1e999999", "../../x", "9" * 5_000, "\N{SUPERSCRIPT NINE}")


def extremes(place: Place) -> list[Any]:
    """Return values that the schema of a field takes."""
    options = place.type.types if isinstance(place.type, inspect.UnionType) else (place.type,)
    found: list[Any] = []
    for one in options:
        if isinstance(one, inspect.IntType):
            found += INTEGERS
        elif isinstance(one, inspect.FloatType):
            found += FLOATS
        elif isinstance(one, inspect.StrType):
            found += TEXTS
        elif isinstance(one, inspect.BoolType):
            found += (False, True)
        elif isinstance(one, inspect.NoneType):
            found.append(None)
        elif isinstance(one, inspect.AnyType):
            found += (None, 10**400, 1e308, "", [], {}, True, [[]], {"": None})
        elif isinstance(one, inspect.VarTupleType | inspect.ListType):
            found.append([])
        elif isinstance(one, inspect.DictType):
            found.append({})
    return [
        value for value in found if value != place.value or type(value) is not type(place.value)
    ]


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
