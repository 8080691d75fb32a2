"""Which checkpoint may be resumed from: only one that our own marker, written last, vouches for.

The trainer saves in place and takes the highest number, half-written or not; so a marker over
the digest of every file, and over how many batches of rows were committed by then, decides
instead (store rule 6).
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ahalab.errors import AhaLabError, RecordError
from ahalab.plain_files import read_plain
from ahalab.records.base import Record, decode_file, encode_pretty
from ahalab.store.durable import replace_file, require_room
from ahalab.store.manifest import hash_file

MARKER = "ahalab-checkpoint.json"


class Checkpoint(Record, frozen=True, kw_only=True):
    """The marker of a sound checkpoint."""

    plan_digest: str
    run: str
    base_digest: str
    step: int
    batches: dict[str, int]  # committed batches of each row file at this step
    files: dict[str, str]  # name -> sha256


@contextmanager
def full_disk_told(root: Path) -> Iterator[None]:
    """Say that the disk refuses where a library that saves says something else.

    torch reports a full disk as "unexpected pos", without an error number; safetensors by an
    exception of its own.

    Raises:
        InputError: The disk of the checkpoints takes no more.
    """
    try:
        yield
    except (AhaLabError, OSError):
        raise  # these say so themselves
    except Exception:  # of whatever kind a library raises: the disk is asked
        if root.is_dir():
            require_room(root)
        raise


def folder_of(root: Path, step: int) -> Path:
    """Return the folder in which the trainer saves a step."""
    return root / f"checkpoint-{step}"


def mark(root: Path, checkpoint: Checkpoint) -> None:
    """Vouch for a checkpoint that was just saved, then drop the ones before it."""
    folder = folder_of(root, checkpoint.step)
    replace_file(folder / MARKER, encode_pretty(checkpoint))
    for other in root.glob("checkpoint-*"):
        if other != folder:
            shutil.rmtree(other, ignore_errors=True)


def file_digests(folder: Path) -> dict[str, str]:
    """Return the sha256 of every file of a checkpoint, the marker apart."""
    names = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())
    return {name: hash_file(folder / name) for name in names if not name.startswith(MARKER)}


def last_sound(root: Path, plan_digest: str, run: str) -> Checkpoint | None:
    """Return the newest checkpoint of this run that is whole; None: start from the beginning."""
    names = [re.fullmatch(r"checkpoint-(\d+)", p.name) for p in root.glob("checkpoint-*")]
    steps = sorted((int(name.group(1)) for name in names if name), reverse=True)
    for step in steps:
        folder = folder_of(root, step)
        try:
            payload = read_plain(folder / MARKER)
            marker = decode_file(payload, Checkpoint, str(folder / MARKER))
        except (OSError, RecordError):
            continue
        if (marker.plan_digest, marker.run, marker.step) != (plan_digest, run, step):
            continue
        if file_digests(folder) == marker.files:
            return marker
    return None
