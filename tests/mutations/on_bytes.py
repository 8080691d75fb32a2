"""Rows and records written as no writer of ours would, whatever they say: strict reading tells."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ahalab.store.layout import StudyPaths
from ahalab.store.manifest import write_manifest
from ahalab.store.reading import sealed_path
from mutations.doors import DOORS, Door
from tampering import mend_journals, read_lines

LOOSE = {"plan"}  # YAML, read by a parser of its own
Edit = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True)
class Malformed:
    """One way to write a record that is not the canonical one."""

    name: str
    check: str
    edit: Edit  # of the whole record, or of one row without its newline


def _number(value: str) -> Edit:
    """Put a text where the first whole number of a record stands, or else its last field."""

    def edit(payload: bytes) -> bytes:
        tree = json.loads(payload)
        name = next((k for k, v in tree.items() if type(v) is int), next(reversed(tree)))
        return _written({**tree, name: _Raw(value)})

    return edit


class _Raw(str):
    """A value that is written as it stands."""

    __slots__ = ()


def _written(tree: dict[str, Any]) -> bytes:
    parts = (
        f"{json.dumps(key)}:{value if isinstance(value, _Raw) else json.dumps(value)}"
        for key, value in tree.items()
    )
    return ("{" + ",".join(parts) + "}").encode()


def _twice(payload: bytes) -> bytes:
    """Write the last field twice."""
    tree = json.loads(payload)
    name = next(reversed(tree))
    return _written(tree)[:-1] + b"," + _written({name: tree[name]})[1:]


def _without(payload: bytes) -> bytes:
    """Leave the first field after the schema out."""
    tree = json.loads(payload)
    del tree[list(tree)[1]]
    return _written(tree)


MALFORMED = (
    Malformed("an unknown field", "schema.type", lambda p: p.rstrip()[:-1] + b',"more":1}'),
    Malformed("a key twice", "json.strict", _twice),
    Malformed("NaN", "json.finite", _number("NaN")),
    Malformed("infinity", "json.finite", _number("-Infinity")),
    Malformed("true for a number", "schema.type", _number("true")),
    Malformed("a text for a number", "schema.type", _number('"1"')),
    Malformed("a field left out", "schema.type", _without),
    Malformed("white space", "json.strict", lambda p: p[:1] + b"  " + p[1:]),
    Malformed("bad UTF-8", "json.strict", lambda p: p[:1] + b'"\xff":1,' + p[1:]),
    Malformed("a tree 100,000 deep", "schema.type", lambda _: b"[" * 100_000),
    Malformed("null", "schema.type", lambda _: b"null"),
)


@dataclass(frozen=True, slots=True)
class BytesChange:
    """One record of one file, written otherwise."""

    door: Door
    file: str
    line: int | None
    how: Malformed

    @property
    def name(self) -> str:
        """Say what is changed, and where."""
        return f"{self.how.name} in {self.file}"

    @property
    def check(self) -> str:
        """Return the check that must tell."""
        return "manifest.schema" if self.door.name == "manifest" else self.how.check

    def tamper(self, root: Path) -> None:
        """Write it, and mend every digest that an owner can mend."""
        path = root / self.file
        manifest = json.loads((root / "manifest.json").read_bytes())
        if self.line is None:
            path.write_bytes(self.how.edit(path.read_bytes()) + b"\n")
        else:
            lines = read_lines(path)
            lines[self.line - 1] = self.how.edit(lines[self.line - 1][:-1]) + b"\n"
            path.write_bytes(b"".join(lines))
            sealed_path(path).unlink(missing_ok=True)
        if self.door.name == "manifest":
            return
        if self.door.name != "journal":
            mend_journals(root)
        write_manifest(StudyPaths(root), manifest["plan_digest"])


def bytes_changes(studies: dict[str, Path]) -> Iterator[tuple[str, BytesChange]]:
    """Yield (study, change): every malformed form of every kind of record, in its first file."""
    for door in DOORS:
        found = ((name, file) for name, root in studies.items() for file in door.files(root))
        study, file = next(found, ("", ""))
        if study and door.name not in LOOSE:
            for how in MALFORMED:
                yield study, BytesChange(door, file, 2 if door.rows else None, how)
