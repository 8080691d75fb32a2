"""The closed world: what lies in the folder against what the manifest lists."""

from __future__ import annotations

import json
import stat
from pathlib import Path, PurePosixPath

from ahalab.errors import RecordError
from ahalab.plain_files import read_plain
from ahalab.records.base import decode_file
from ahalab.records.manifest import Manifest, ManifestEntry
from ahalab.store.manifest import UNLISTED, files_below, hash_file, is_derived, root_digest
from ahalab.verify.checks import Ledger
from ahalab.verify.reading import Study

NAMES = (
    "file.type", "manifest.schema", "manifest.closed", "manifest.unique", "path.safe",
    "file.missing", "file.extra", "file.path", "file.hash", "root", "root.anchor", "plan.anchor",
)  # fmt: skip
MANIFEST = "manifest.json"
LEAVING_OUT = ("ignore", "exclude", "skip", "allow", "except")
NEEDS_MANIFEST = (
    "manifest.closed", "manifest.unique", "path.safe", "file.missing", "file.extra", "file.path",
    "file.hash", "root",
)  # fmt: skip


def check_files(study: Study, expected_root: str | None, expected_plan: str | None) -> None:
    """Check the inventory; reads every file once."""
    ledger = study.ledger
    present = _plain_files(study)
    manifest = _manifest(study)
    if manifest is not None:
        study.match_plan(study.paths.manifest, manifest.plan_digest)
        entries = _sound_entries(manifest, ledger)
        _compare(study, entries, present)
        root = root_digest(manifest.plan_digest, manifest.evidence)
        ledger["root"].expect(MANIFEST, None, "root of the entries", root, manifest.root)
    _anchor(ledger, "root.anchor", manifest.root if manifest else None, expected_root)
    _anchor(ledger, "plan.anchor", study.plan_digest, expected_plan)
    ledger.close(NAMES)


def _plain_files(study: Study) -> dict[str, Path]:
    """Return every plain file by its name; links, pipes and devices are failures."""
    tally = study.ledger["file.type"]
    present = {}
    for name, path, mode in files_below(study.root):
        if stat.S_ISREG(mode):
            tally.passed()
            present[name] = path
        else:
            tally.fail(name, None, "a plain file", _kind(mode))
    return present


def _kind(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "a symbolic link"
    return "a pipe" if stat.S_ISFIFO(mode) else "a device or socket"


def _manifest(study: Study) -> Manifest | None:
    ledger, path = study.ledger, study.paths.manifest
    if not path.is_file() or path.is_symlink():
        for name in ("manifest.schema", *NEEDS_MANIFEST):
            ledger[name].incomplete("no manifest.json: the study is not sealed")
        return None
    try:
        payload = read_plain(path)
        manifest = decode_file(payload, Manifest, MANIFEST)
    except OSError as error:
        ledger["manifest.schema"].fail(MANIFEST, None, "a readable manifest", error.strerror)
        return None
    except RecordError as error:
        ledger["manifest.schema"].fail(
            MANIFEST, None, "a manifest", str(error).partition(", found")[2]
        )
        _look_for_gaps(payload, ledger)
        return None
    ledger["manifest.schema"].passed()
    return manifest


def _look_for_gaps(payload: bytes, ledger: Ledger) -> None:
    """Name a field that would let files be left out of the inventory."""
    try:
        tree = json.loads(payload.decode("utf-8"))
    except (ValueError, RecursionError):
        return
    for key in tree if isinstance(tree, dict) else ():
        if any(word in str(key).lower() for word in LEAVING_OUT):
            ledger["manifest.closed"].fail(
                MANIFEST, None, "an inventory of every file", f"a field {key!r}"
            )


def _sound_entries(manifest: Manifest, ledger: Ledger) -> dict[str, ManifestEntry]:
    """Return the entries by path, after checking their names."""
    entries: dict[str, ManifestEntry] = {}
    for derived, listed in ((False, manifest.evidence), (True, manifest.derived)):
        for entry in listed:
            path = PurePosixPath(entry.path)
            safe = (
                entry.path == path.as_posix() != "."
                and not path.is_absolute()
                and ".." not in path.parts
                and "\\" not in entry.path
                and entry.path.isprintable()
            )
            ledger["path.safe"].expect(
                MANIFEST, None, f"{entry.path!r} to be a safe path", True, safe
            )
            if entry.path in entries:
                ledger["manifest.unique"].fail(MANIFEST, None, "each path once", entry.path)
                continue
            ledger["manifest.unique"].passed()
            rightly = is_derived(entry.path) == derived
            where = "under derived" if is_derived(entry.path) else "under evidence"
            ledger["manifest.closed"].expect(MANIFEST, None, f"{entry.path} {where}", True, rightly)
            if safe:
                entries[entry.path] = entry
    return entries


def _compare(study: Study, entries: dict[str, ManifestEntry], present: dict[str, Path]) -> None:
    ledger = study.ledger
    hashes = {name: _digest_of(path) for name, path in present.items() if name not in UNLISTED}
    extra = [name for name in hashes if name not in entries]
    for name, entry in entries.items():
        if name in hashes:
            ledger["file.missing"].passed()
            found = f"{present[name].stat().st_size} bytes, sha256 {hashes[name]}"
            expected = f"{entry.bytes} bytes, sha256 {entry.sha256}"
            ledger["file.hash"].expect(name, None, "content", expected, found)
            continue
        ledger["file.missing"].fail(name, None, "the file that the manifest lists", "none")
        for other in extra:
            if hashes[other] == entry.sha256:
                ledger["file.path"].fail(
                    name, None, "the file under this name", f"its content as {other}"
                )
    for name in extra:
        ledger["file.extra"].fail(name, None, "only files that the manifest lists", "another file")
    ledger["file.extra"].passed(len(hashes) - len(extra))
    ledger["file.path"].passed(len(hashes))


def _digest_of(path: Path) -> str:
    try:
        return hash_file(path)
    except OSError as error:
        return f"unreadable ({error.strerror})"


def _anchor(ledger: Ledger, name: str, found: str | None, expected: str | None) -> None:
    what = "root" if name == "root.anchor" else "plan digest"
    if expected is None:
        ledger[name].not_checked(
            f"no {what} from outside was given: an owner who rebuilds everything is not caught"
        )
    else:
        ledger[name].expect(MANIFEST, None, f"{what} published earlier", expected, found or "none")
