"""The closed-world inventory of a study: every file's size and sha256, and one root."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from ahalab.errors import InputError
from ahalab.plain_files import open_plain, read_plain
from ahalab.records.base import digest_bytes, encode_pretty
from ahalab.records.manifest import Manifest, ManifestEntry
from ahalab.store.durable import replace_file
from ahalab.store.layout import StudyPaths

# What names the root can't be part of it. Each has a check of its own; there are no others.
UNLISTED = ("manifest.json", "statement.json", "statement.json.sig")
# What is made from the evidence, and carries its root: the report, and adapters' model cards.
_DERIVED = re.compile(
    r"report\.html|arms/[^/]+/seed-[^/]+/adapter/(README\.md|\.eval_results/[^/]+\.yaml)"
)


def is_derived(name: str) -> bool:
    """Say whether a file, by its name within the study, is made from the evidence."""
    return _DERIVED.fullmatch(name) is not None


def files_below(root: Path) -> Iterator[tuple[str, Path, int]]:
    """Yield (relative path, path, file mode) of everything below but folders, in a fixed order.

    Links are not followed: what is not a plain file is for the caller to refuse.
    """
    for folder, names, files in os.walk(root, followlinks=False):
        names.sort()
        links = [n for n in names if Path(folder, n).is_symlink()]
        for name in sorted([*files, *links]):
            path = Path(folder, name)
            yield path.relative_to(root).as_posix(), path, path.lstat().st_mode


def hash_file(path: Path) -> str:
    """Return the sha256 of a file's bytes, 64 hex digits."""
    with open_plain(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def root_digest(plan_digest: str, evidence: tuple[ManifestEntry, ...]) -> str:
    """Return the evidence root: digest of the plan's digest and of every entry, in order."""
    lines = [plan_digest, *(f"{e.sha256} {e.bytes} {e.path}" for e in evidence)]
    return digest_bytes(("\n".join(lines) + "\n").encode())


def evidence_entries(root: Path) -> tuple[ManifestEntry, ...]:
    """Return an entry for every evidence file below `root`, hashed now.

    Raises:
        InputError: Something there is not a plain file.
    """
    return _entries(root, derived=False)


def _entries(root: Path, *, derived: bool) -> tuple[ManifestEntry, ...]:
    entries = []
    for name, path, mode in files_below(root):
        if name in UNLISTED or is_derived(name) != derived:
            continue
        if not name.isprintable():  # a line break would let one name stand for two entries
            raise InputError(
                f"{root}: expected printable file names, found {name!r}. Rename the file."
            )
        if not stat.S_ISREG(mode):
            raise InputError(f"{path}: expected a plain file, found a link or device. Remove it.")
        entries.append(ManifestEntry(path=name, bytes=path.stat().st_size, sha256=hash_file(path)))
    return tuple(entries)


def write_manifest(paths: StudyPaths, plan_digest: str) -> Manifest:
    """Seal the study: hash every file below it and write the inventory, last."""
    # What a kill during an earlier sealing left: it would be sealed, and then be gone.
    paths.manifest.with_name(paths.manifest.name + ".partial").unlink(missing_ok=True)
    evidence = evidence_entries(paths.root)
    manifest = Manifest(
        plan_digest=plan_digest,
        root=root_digest(plan_digest, evidence),
        evidence=evidence,
        derived=_entries(paths.root, derived=True),
    )
    payload = encode_pretty(manifest)
    if not paths.manifest.exists() or read_plain(paths.manifest) != payload:
        replace_file(paths.manifest, payload)
    return manifest
