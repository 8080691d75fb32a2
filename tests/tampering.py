"""Tools of an adversary: edit rows and records, then mend journals, manifest and report."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import zstandard

from ahalab.analyze.compare import analyze
from ahalab.plan.load import load_plan
from ahalab.records.base import digest
from ahalab.report.html import write_report
from ahalab.store.layout import StudyPaths
from ahalab.store.manifest import write_manifest
from ahalab.store.reading import journal_path, sealed_path

Row = dict[str, Any]


def canonical(row: Row) -> bytes:
    """Return a row as the store writes it."""
    return json.dumps(row, separators=(",", ":")).encode() + b"\n"


def read_lines(path: Path) -> list[bytes]:
    """Return the lines of a row file, with their newlines."""
    if not path.is_file():
        packed = sealed_path(path).read_bytes()
        return zstandard.ZstdDecompressor().decompress(packed).splitlines(keepends=True)
    return path.read_bytes().splitlines(keepends=True)


def edit_rows(path: Path, edit: Callable[[list[Row]], list[Row] | None]) -> None:
    """Let `edit` change, drop, add or reorder the rows of a file."""
    rows = [json.loads(line) for line in read_lines(path)]
    changed = edit(rows)
    path.write_bytes(b"".join(canonical(row) for row in (rows if changed is None else changed)))
    sealed_path(path).unlink(missing_ok=True)  # rows lie plain or compressed, never both


def edit_row(path: Path, line: int, **fields: Any) -> None:
    """Change fields of the row in one line."""

    def edit(rows: list[Row]) -> None:
        rows[line - 1].update(fields)

    edit_rows(path, edit)


def edit_json(path: Path, edit: Callable[[Row], None]) -> None:
    """Let `edit` change a single-record file."""
    tree = json.loads(path.read_bytes())
    edit(tree)
    path.write_bytes((json.dumps(tree, indent=1) + "\n").encode())


def mend_journal(rows: Path) -> None:
    """Rebuild the chain over the rows as they now lie there; attempts and cuts are kept."""
    path, lines = journal_path(rows), read_lines(rows)
    entries = [json.loads(line) for line in read_lines(path)]
    doomed = [_is_cut_later(entries, at) for at in range(len(entries))]
    standing = [n for n, e in enumerate(entries) if e["kind"] == "batch" and not doomed[n]]
    at, taken, kept = 0, 0, [(0, 0)]  # kept: (bytes, rows) after so many standing batches
    for number, entry in enumerate(entries):
        if entry["kind"] == "batch" and doomed[number]:  # its rows are gone
            length = entry["end"] - entry["start"]
            entry.update(start=at, end=at + length)
            at, taken = at + length, taken + entry["rows"]
        elif entry["kind"] == "batch":
            left = lines[taken:]
            part = left if number == standing[-1] else left[: entry["rows"]]
            payload = b"".join(part)
            entry.update(rows=len(part), start=at, end=at + len(payload))
            entry["sha256"] = hashlib.sha256(payload).hexdigest()
            at, taken = at + len(payload), taken + len(part)
            kept.append((at, taken))
        elif entry["kind"] == "cut":
            at, taken = kept[entry["sequence"]]
            entry.update(rows=taken, end=at)
        elif entry["kind"] == "attempt":
            entry.update(rows=taken, bytes=at)
        elif entry["kind"] == "seal":
            whole = hashlib.sha256(b"".join(lines)).hexdigest()
            entry.update(rows=taken, bytes=at, sha256=whole)
    chain(path, entries)


def _is_cut_later(entries: list[Row], at: int) -> bool:
    """Say whether a batch was taken back by a cut below it."""
    if entries[at]["kind"] != "batch":
        return False
    return any(
        later["kind"] == "cut" and later["sequence"] <= entries[at]["sequence"]
        for later in entries[at + 1 :]
    )


def chain(path: Path, entries: list[Row]) -> None:
    """Write journal lines, each naming the digest of the one before."""
    previous, payload = "0" * 64, b""
    for entry in entries:
        entry["previous"] = previous
        line = canonical(entry)
        previous = hashlib.sha256(line[:-1]).hexdigest()
        payload += line
    path.write_bytes(payload)


def mend_journals(root: Path) -> None:
    """Rebuild the chain of every row file that is there."""
    for journal in sorted(root.rglob("*.journal.jsonl")):
        rows = journal.with_name(journal.name.replace(".journal.jsonl", ".jsonl"))
        if rows.is_file():
            mend_journal(rows)


def reseal(root: Path) -> None:
    """Mend journals and manifest, so that only deeper checks can catch what was done."""
    mend_journals(root)
    manifest = json.loads((root / "manifest.json").read_bytes())
    write_manifest(StudyPaths(root), manifest["plan_digest"])


def rebuild(root: Path) -> None:
    """Do what the owner can: mend journals, analyse, report and seal with the tool's own means."""
    mend_journals(root)
    paths = StudyPaths(root)
    plan = load_plan(paths.plan)
    analyze(plan, paths)
    write_report(paths)
    write_manifest(paths, digest(plan))
