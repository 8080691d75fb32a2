"""Writes that are on the disk when they return (EVIDENCE.md, store rules 1 and 3)."""

from __future__ import annotations

import os
from pathlib import Path

from ahalab.errors import InputError


def write_all(descriptor: int, payload: bytes, path: Path) -> None:
    """Write every byte and flush it to the disk.

    A full disk returns a short count before it returns ENOSPC, so the count is checked each time. A
    failed fsync is never retried: the kernel may have dropped the pages, so the caller must reopen.

    Raises:
        InputError: The disk is full or not writable; nothing committed earlier is lost.
    """
    view = memoryview(payload)
    try:
        while view:
            written = os.write(descriptor, view)
            if written == 0:
                raise OSError("the disk took no more bytes")
            view = view[written:]
        os.fsync(descriptor)
    except OSError as error:
        raise InputError(
            f"{path}: expected to write {len(payload)} bytes, found: {error.strerror or error}. "
            "Free space or mend the folder, then run the same command to resume."
        ) from error


def fsync_folder(folder: Path) -> None:
    """Flush a folder's entries, so that a new or renamed file survives a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_file(path: Path, payload: bytes) -> None:
    """Write a small file as a whole: the old content or the new one, never a part.

    Raises:
        InputError: The folder or the disk refuses.
    """
    partial = path.with_name(path.name + ".partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    except OSError as error:
        raise InputError(
            f"{path}: expected a writable folder, found: {error.strerror or error}. "
            "Mend the folder or choose another --out."
        ) from error
    try:
        write_all(descriptor, payload, partial)
    finally:
        os.close(descriptor)
    partial.replace(path)
    fsync_folder(path.parent)
