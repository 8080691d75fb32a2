"""Tampers with a copy of a study and says whether the right check told, and where."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ahalab.verify.checks import Check, Verification
from ahalab.verify.study import NOTHING, Held, verify_study
from drawing import INSTALLED
from mutations.expected import expected_check, unjudged, untold
from mutations.on_bytes import BytesChange
from mutations.on_fields import FieldChange
from mutations.on_whole_files import FileChange

ANCHOR = "root.anchor"
Checks = dict[str, Check]
IN_PLACE = {"record", "file"}  # kinds whose failure names the very file
# Told where the report was not made again, as an owner would: by themselves they prove little.
STALE = {"report.root", "report.bind", "report.drawn"}


@dataclass(frozen=True, slots=True)
class Judged:
    """What became of one mutation."""

    kind: str  # `field`, `record`, `file` or `by hand`
    name: str
    field: str
    check: str  # that must tell
    caught: bool
    why: str  # what was told, or what was told instead


@contextmanager
def copy_of(root: Path, folder: Path) -> Iterator[Path]:
    """Lend a copy of a study."""
    copy = folder / root.name
    shutil.copytree(root, copy, symlinks=True)
    try:
        yield copy
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def root_of(root: Path) -> str:
    """Return the root that a reader would have written down before."""
    return str(json.loads((root / "manifest.json").read_bytes())["root"])


def by_name(verification: Verification) -> Checks:
    """Return the checks by name."""
    return {check.name: check for check in verification.checks}


def verify(root: Path, held: Held = NOTHING) -> Verification:
    """Verify as a reader does who trusts the rewards."""
    return verify_study(root, held, trust_rewards=True, drawing=INSTALLED)


def check_of(change: FieldChange) -> str:
    """Return the check that must tell of a field; the anchor where only an outside root does."""
    door, place = change.door.name, change.place
    if unjudged(door, place.owner, place.field) is not None:
        return ANCHOR
    version = untold(place.owner, place.field)
    return version or expected_check(door, place.owner, place.field) or ""


def judge_field(root: Path, change: FieldChange, folder: Path) -> Judged:
    """Change one field of a copy, all digests mended, and see who tells."""
    place = change.place
    with copy_of(root, folder) as copy:
        change.tamper(copy)
        checks = by_name(verify(copy, Held(root_of(root))))
    name, label = check_of(change), change.group
    if name == ANCHOR:  # a field that some check tells of does not belong there
        told = {n for n, check in checks.items() if check.failed}
        exact = told - STALE == {ANCHOR}
        return Judged("field", change.name, label, ANCHOR, exact, f"told by {sorted(told)}")
    if not name:
        return Judged("field", change.name, label, "", False, "stands in no table")
    if untold(place.owner, place.field):
        seen = checks[name].status == "not checked" and bool(checks[name].note)
        return Judged("field", change.name, label, name, seen, f"NOT CHECKED: {checks[name].note}")
    return _by_check(
        "field", (change.name, label), checks[name], (change.file, change.line), checks
    )


def judge_bytes(root: Path, change: BytesChange, folder: Path) -> Judged:
    """Write one record otherwise in a copy, all digests mended, and see who tells."""
    with copy_of(root, folder) as copy:
        change.tamper(copy)
        checks = by_name(verify(copy))
    named = (change.name, change.how.name)
    place = (change.file, change.line)
    return _by_check("record", named, checks[change.check], place, checks)


def judge_file(root: Path, change: FileChange, folder: Path) -> Judged:
    """Do something to one file of a copy, nothing mended, and see who tells."""
    with copy_of(root, folder / "study") as copy:
        place = (change.tamper(copy), None)
        checks = by_name(verify(copy))
        shutil.rmtree(folder, ignore_errors=True)
    named = (change.name, change.kind.name)
    return _by_check("file", named, checks[change.kind.check], place, checks)


def _by_check(
    kind: str, named: tuple[str, str], check: Check, place: tuple[str, int | None], checks: Checks
) -> Judged:
    file, line = place
    told = [f for f in check.failures if f.file and f.expected and f.found]
    here = [f for f in told if f.file.removesuffix(".zst") == file.removesuffix(".zst")]
    here = [f for f in here if f.line == line] or here
    if told:
        first = (here or told)[0]
        at = "" if first.line is None else f":{first.line}"
        why = f"{first.file}{at}: expected {first.expected}, found {first.found}"
    else:
        why = f"{check.status}; told: {sorted(n for n, c in checks.items() if c.failed)}"
    caught = bool(here) if kind in IN_PLACE else bool(told)
    return Judged(kind, named[0], named[1], check.name, caught, why)
