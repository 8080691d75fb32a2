"""One writer at a time: flock on a file that names its owner (store rule 4)."""

from __future__ import annotations

import fcntl
import json
import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from ahalab.errors import InputError, LockedError
from ahalab.store.durable import make_folder


class WriterLock:
    """Holds the lock file for the life of a `with` block.

    `flock` belongs to the open file, so it is released when the process dies, however it dies; a
    dead owner's file is simply taken over. (A POSIX `lockf` lock vanishes when any descriptor of
    the file closes.)

    Raises:
        LockedError: Another process holds it; the message names that process, its machine, and
            since when.
        InputError: The disk is full, or its file system has no locks.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = -1

    def __enter__(self) -> Self:
        """Take the lock or name its owner."""
        make_folder(self.path.parent)
        # The file may have been replaced between open and flock: the lock must be on what lies
        # there now.
        while not self._same_file(descriptor := self._taken()):
            os.close(descriptor)
        owner = json.dumps(
            {
                "pid": os.getpid(),
                "host": platform.node(),
                "since": datetime.now(UTC).isoformat(timespec="seconds"),
            }
        )
        try:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, owner.encode(), 0)
        except OSError as error:
            os.close(descriptor)
            raise self._refused(error) from error
        self._descriptor = descriptor
        return self

    def _taken(self) -> int:
        """Return an open descriptor that holds the lock."""
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.read(descriptor, 4096).decode("utf-8", "replace").strip()
            os.close(descriptor)
            raise LockedError(
                f"{self.path}: expected no other writer, found {owner or 'one'}. "
                "Wait for it to end, or stop it; then run the same command again."
            ) from None
        except OSError as error:  # a file system without locks
            os.close(descriptor)
            raise self._refused(error) from error
        return descriptor

    def _same_file(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(os.fstat(descriptor), self.path.stat())
        except FileNotFoundError:
            return False

    def _refused(self, error: OSError) -> InputError:
        return InputError(
            f"{self.path}: expected a disk that takes a lock file, found: {error.strerror}. Free "
            "space, or put the results on a local disk; then run the same command to resume."
        )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Release the lock."""
        os.close(self._descriptor)
        self._descriptor = -1
