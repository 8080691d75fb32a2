"""Whether base and adapter may be compared: their protocols, and what the analysis allowed."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ahalab.errors import ProtocolError
from ahalab.plain_files import read_plain
from ahalab.plan.cells import BASE, Cell
from ahalab.records.answer import Protocol, covers, differing_fields, without_adapter
from ahalab.records.base import decode_file
from ahalab.tasks.places import answer_paths
from ahalab.view.sources import Study
from ahalab.visible import plain


def comparability(study: Study, cell: Cell) -> str:
    """Return what a reader must know before comparing; mostly nothing.

    Raises:
        ProtocolError: The protocols differ in more than the analysis was allowed.
    """
    base = _protocol(answer_paths(study.paths, BASE).protocol)
    adapter = _protocol(answer_paths(study.paths, cell).protocol)
    if base is None or adapter is None:
        return "" if base is adapter else "Only one side has a protocol yet."
    differing = differing_fields(without_adapter(base), without_adapter(adapter))
    if not differing:
        return ""
    allowed = _allowed(study.paths.comparison)
    refused = [field for field in differing if not covers(allowed, field)]
    if refused:
        raise ProtocolError(
            f"{cell.name}: expected the protocol of the base, found another "
            f"{', '.join(map(plain, refused))}. Such answers are not compared."
        )
    return f"An exception: the protocols differ in {', '.join(map(plain, differing))}."


def _protocol(path: Path) -> Protocol | None:
    try:
        return decode_file(read_plain(path), Protocol, str(path))
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
