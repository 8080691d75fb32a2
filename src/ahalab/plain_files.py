"""Reads what others may have put there: plain files only, so that no pipe makes a reader wait."""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path

from ahalab.errors import InputError


class NotPlainError(InputError, OSError):
    """A folder, a pipe, a socket or a device lies where a file is read."""

    def __str__(self) -> str:
        return f"{self.filename}: expected a plain file, found: {self.strerror}. Remove it."


def open_plain(path: Path) -> BufferedReader:
    """Open a plain file, or a link to one, to read its bytes.

    Raises:
        NotPlainError: It is a folder, a pipe, a socket or a device.
        OSError: It is not there, or can't be read.
    """
    # Without O_NONBLOCK, opening a pipe waits until someone writes to it: forever, perhaps.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise NotPlainError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise NotPlainError(errno.EINVAL, "Not a plain file", str(path))


def read_plain(path: Path) -> bytes:
    """Return the bytes of a plain file, or of what a link to one points at.

    Raises:
        NotPlainError: It is a folder, a pipe, a socket or a device.
        OSError: It is not there, or can't be read.
    """
    with open_plain(path) as file:
        return file.read()
