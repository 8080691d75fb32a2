"""Every file of a study flipped, cut, emptied, removed, renamed, linked, doubled: digests tell."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Kind:
    """One thing that can be done to any file."""

    name: str
    check: str
    do: Callable[[Path], Path]  # returns the path that the failure must name


def _flip(path: Path) -> Path:
    payload = bytearray(path.read_bytes())
    payload[len(payload) // 2] ^= 1
    path.write_bytes(payload)
    return path


def _cut(path: Path) -> Path:
    path.write_bytes(path.read_bytes()[:-1])
    return path


def _append(path: Path) -> Path:
    with path.open("ab") as file:
        file.write(b"\n")
    return path


def _empty(path: Path) -> Path:
    path.write_bytes(b"")
    return path


def _remove(path: Path) -> Path:
    path.unlink()
    return path


def _rename(path: Path) -> Path:
    path.rename(path.with_name(f"old-{path.name}"))
    return path


def _link(path: Path) -> Path:
    """Put a link to the same content in its place."""
    outside = path.with_name(f"{path.name}.moved")
    for above in path.parents:
        if (above / "manifest.json").exists() or (above / "study.yaml").exists():
            outside = above.parent / f"moved-{path.name}"
    shutil.move(path, outside)
    path.symlink_to(outside)
    return path


def _pipe(path: Path) -> Path:
    path.unlink()
    os.mkfifo(path)
    return path


def _double(path: Path) -> Path:
    return Path(shutil.copyfile(path, path.with_name(f"{path.name}.copy")))


KINDS = (
    Kind("a byte flipped", "file.hash", _flip),
    Kind("the last byte cut", "file.hash", _cut),
    Kind("a byte appended", "file.hash", _append),
    Kind("emptied", "file.hash", _empty),
    Kind("removed", "file.missing", _remove),
    Kind("renamed", "file.path", _rename),
    Kind("a link to the same content", "file.type", _link),
    Kind("a pipe in its place", "file.type", _pipe),
    Kind("copied beside it", "file.extra", _double),
)


@dataclass(frozen=True, slots=True)
class FileChange:
    """One thing done to one file."""

    kind: Kind
    file: str

    @property
    def name(self) -> str:
        """Say what is done, and to which file."""
        return f"{self.kind.name}: {self.file}"

    def tamper(self, root: Path) -> str:
        """Do it; return the name that the failure must give."""
        return self.kind.do(root / self.file).relative_to(root).as_posix()


def file_changes(studies: dict[str, Path]) -> Iterator[tuple[str, FileChange]]:
    """Yield (study, change): whatever can be done, to one file of each name but the manifest."""
    seen = {"manifest.json"}
    for study, root in studies.items():
        for path in sorted(root.rglob("*")):
            if path.is_file() and path.name not in seen:
                seen.add(path.name)
                name = path.relative_to(root).as_posix()
                yield from ((study, FileChange(kind, name)) for kind in KINDS)
