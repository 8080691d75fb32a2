"""A disk that is full, for tests that may not mount one."""

from __future__ import annotations

import errno
import os


class Disk:
    """Stands in for os.write: takes `room` bytes, in short counts, then says ENOSPC."""

    def __init__(self, room: int, piece: int) -> None:
        self.room, self.piece, self.write = room, piece, os.write

    def __call__(self, descriptor: int, payload: bytes | memoryview) -> int:
        if self.room <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = self.write(descriptor, bytes(payload)[: min(self.room, self.piece)])
        self.room -= written
        return written
