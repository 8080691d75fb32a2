"""The study's record of its base: written once, compared whenever the base is loaded again."""

from __future__ import annotations

from pathlib import Path

from ahalab.errors import InputError, LockedError
from ahalab.plain_files import read_plain
from ahalab.records.base import decode_file, encode_pretty
from ahalab.records.weights import BaseTensors, Tensor
from ahalab.store.durable import replace_file
from ahalab.store.fingerprint import base_tensors, weights_difference, weights_digest
from ahalab.store.layout import StudyPaths
from ahalab.store.lock import WriterLock


def recorded_base(paths: StudyPaths) -> BaseTensors | None:
    """Return the study's record of its base; None where there is none.

    Raises:
        RecordError: It is malformed.
    """
    path = paths.base_tensors
    if not path.is_file():
        return None
    return decode_file(read_plain(path), BaseTensors, str(path))


def fingerprint_base(paths: StudyPaths, folder: Path) -> tuple[Tensor, ...]:
    """Fingerprint a base tensor by tensor; the first time, record it with the study.

    A sealed study is not added to: one from before there was such a record stays without.

    Args:
        paths: The study.
        folder: The model's folder.

    Returns:
        Every tensor, in name order.

    Raises:
        InputError: The weights are no safetensors, or not those that the study recorded.
    """
    tensors = base_tensors(folder)
    recorded = recorded_base(paths)
    if recorded is not None:
        require_same_base(recorded.tensors, tensors, folder, f"{paths.base_tensors} records")
    elif not paths.manifest.exists():
        _record(paths, tensors)
    return tensors


def _record(paths: StudyPaths, tensors: tuple[Tensor, ...]) -> None:
    record = BaseTensors(base_digest=weights_digest(tensors), tensors=tensors)
    try:
        with WriterLock(paths.lock("base-tensors")):
            if not paths.base_tensors.exists():
                replace_file(paths.base_tensors, encode_pretty(record))
    except LockedError:
        pass  # another process of the study writes the same bytes at this moment


def require_same_base(
    expected: tuple[Tensor, ...], found: tuple[Tensor, ...], folder: Path, known_from: str
) -> None:
    """Refuse a base whose weights are not the expected ones.

    Raises:
        InputError: The tensors are named.
    """
    difference = weights_difference(expected, found)
    if difference is not None:
        raise InputError(
            f"{folder}: expected the base that {known_from}, found another: {difference}. "
            "Restore its weights, or use a new --out."
        )
