"""Finished replies of an endpoint, kept on disk until the rows of their batch are committed.

A request is a row with a resume of its own: what the server has answered is never asked again,
though a kill falls in the middle of a batch. A spool is no evidence; rows are made from it.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import msgspec

from ahalab.errors import InputError, RecordError
from ahalab.evaluate.backends import Kept
from ahalab.plain_files import read_plain
from ahalab.records.terms import Finish
from ahalab.store.durable import fsync_folder, write_all


class Reply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a server answered to one request."""

    request: str  # digest of model, prompt and every field that was sent
    text: str
    ids: tuple[int, ...] | None  # None: it told none
    finish: Finish


class Spool:
    """The replies of one answer set, by the digest of their request; one process has it open.

    The first line says to which journal of rows it belongs: a spool of answers that were since
    removed begins anew. A torn last line, which a kill leaves, is cut off; that request is sent
    again.

    Raises:
        InputError: The folder refuses.
        RecordError: A line before the last is not a reply.
    """

    def __init__(self, kept: Kept) -> None:
        self.path = kept.path
        self.replies: dict[str, Reply] = {}
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            self._descriptor = os.open(self.path, flags, 0o644)
        except OSError as error:
            raise InputError(
                f"{self.path}: expected a writable folder, found: {error.strerror}. Mend it, then "
                "run the same command to resume."
            ) from error
        self._read(_owner(kept.journal))
        fsync_folder(self.path.parent)

    def _read(self, owner: bytes) -> None:
        payload = read_plain(self.path)
        if not payload.startswith(owner):
            os.ftruncate(self._descriptor, 0)
            write_all(self._descriptor, owner, self.path)
            return
        whole = payload[: payload.rfind(b"\n") + 1]
        for number, line in enumerate(whole[len(owner) :].split(b"\n")[:-1], start=2):
            try:
                reply = msgspec.json.decode(line, type=Reply)
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                raise RecordError(
                    f"{self.path}:{number}: expected a reply of the endpoint, found: {error}. "
                    "Remove the file; what it held is asked again."
                ) from error
            self.replies[reply.request] = reply
        if len(whole) < len(payload):
            os.ftruncate(self._descriptor, len(whole))

    def keep(self, reply: Reply) -> None:
        """Write a reply to the disk.

        Raises:
            InputError: The disk refuses.
        """
        write_all(self._descriptor, msgspec.json.encode(reply) + b"\n", self.path)
        self.replies[reply.request] = reply

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def _owner(journal: Path) -> bytes:
    """Return the line that names a journal: its head and first attempt, which nothing changes."""
    begun = read_plain(journal).split(b"\n")[:2] if journal.is_file() else []
    return hashlib.sha256(b"\n".join(begun)).hexdigest().encode() + b"\n"
