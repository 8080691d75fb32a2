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


PROBE_BYTES = 1 << 20


def require_room(folder: Path) -> None:
    """Ask a disk for some room, by taking it: quotas are not seen otherwise.

    Raises:
        InputError: It refuses; the message says why.
    """
    probe = folder / "room.partial"
    try:
        descriptor = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    except OSError as error:
        raise _not_writable(folder, error) from error
    try:
        write_all(descriptor, bytes(PROBE_BYTES), folder)
    finally:
        os.close(descriptor)
        probe.unlink(missing_ok=True)


def fsync_folder(folder: Path) -> None:
    """Flush a folder's entries, so that a new or renamed file survives a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, each entry flushed: a power cut must not lose it whole.

    Raises:
        InputError: The place or the disk refuses.
    """
    missing, above = [], folder
    while not above.is_dir():
        missing.append(above)
        above = above.parent
    try:
        for one in reversed(missing):
            one.mkdir(exist_ok=True)
            fsync_folder(one.parent)
    except OSError as error:
        raise _not_writable(folder, error) from error


def _not_writable(place: Path, error: OSError) -> InputError:
    return InputError(
        f"{place}: expected a writable folder, found: {error.strerror or error}. "
        "Mend the folder or choose another."
    )


def forget_cached(path: Path) -> None:
    """Let a file be read from the disk again, where the system can be asked to.

    After a failed fsync the system calls pages clean that never reached the disk, and hands them
    out as long as they are cached. Source: Rebello et al., "Can Applications Recover from fsync
    Failures?", USENIX ATC 2020.
    """
    if not path.is_file() or not hasattr(os, "posix_fadvise"):
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def replace_file(path: Path, payload: bytes) -> None:
    """Write a small file as a whole: the old content or the new one, never a part.

    Raises:
        InputError: The folder or the disk refuses.
    """
    partial = path.with_name(path.name + ".partial")
    make_folder(path.parent)
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    except OSError as error:
        raise _not_writable(path, error) from error
    try:
        write_all(descriptor, payload, partial)
    except InputError:
        partial.unlink(missing_ok=True)  # on a full disk its bytes are wanted
        raise
    finally:
        os.close(descriptor)
    partial.replace(path)
    fsync_folder(path.parent)
