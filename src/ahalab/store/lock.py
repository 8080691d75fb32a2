"""One writer at a time: flock on a file that names its owner (store rule 4)."""

from __future__ import annotations

import fcntl
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from ahalab.errors import LockedError


class WriterLock:
    """Holds the lock file for the life of a `with` block.

    `flock` belongs to the open file, so it is released when the process dies, however it dies; a
    dead owner's file is simply taken over. (A POSIX `lockf` lock vanishes when any descriptor of
    the file closes.)

    Raises:
        LockedError: Another process holds it; the message names that process and since when.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = -1

    def __enter__(self) -> Self:
        """Take the lock or name its owner."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        while True:
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
            # The file may have been replaced between open and flock: the lock must be on what
            # lies there now.
            if self.path.exists() and os.fstat(descriptor).st_ino == self.path.stat().st_ino:
                break
            os.close(descriptor)
        os.ftruncate(descriptor, 0)
        owner = json.dumps(
            {"pid": os.getpid(), "since": datetime.now(UTC).isoformat(timespec="seconds")}
        )
        os.pwrite(descriptor, owner.encode(), 0)
        self._descriptor = descriptor
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Release the lock."""
        os.close(self._descriptor)
        self._descriptor = -1
