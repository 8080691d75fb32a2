"""Every field of every record changed to another sound value, found by walking the structs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from ahalab.plan.load import dump_plan, load_plan
from ahalab.records.base import encode
from ahalab.records.plan import Plan
from ahalab.store.layout import StudyPaths
from ahalab.store.manifest import write_manifest
from ahalab.store.reading import sealed_path
from mutations.doors import DOORS, Door
from mutations.expected import BY_DOOR
from mutations.fields import ABSENT, Place, another, assign, places
from tampering import Row, canonical, chain, mend_journals, read_lines


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field of one record in one file, and the value it gets."""

    door: Door
    file: str
    line: int | None  # of a row file
    place: Place
    value: Any

    @property
    def name(self) -> str:
        """Say what is changed, and where."""
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{self.place.label} in {where}"

    @property
    def group(self) -> str:
        """Name the field of the struct, whatever the key."""
        return f"{self.place.owner}.{self.place.field}"

    def tamper(self, root: Path) -> None:
        """Write the value, and mend every digest that an owner can mend."""
        if self.door.name == "plan":
            _change_plan(root, self)
        elif self.door.rows:
            _change_row(root, self)
        else:
            _change_record(root, self)
        if self.door.name == "manifest":
            return
        if self.door.name != "journal":
            mend_journals(root)
        manifest = json.loads((root / "manifest.json").read_bytes())
        write_manifest(StudyPaths(root), manifest["plan_digest"])


def _change_plan(root: Path, change: FieldChange) -> None:
    tree = _plan_tree(root, change.file)
    assign(tree, change.place.path, change.value)
    plan = msgspec.convert(tree, Plan, strict=False)
    (root / change.file).write_text(dump_plan(plan), encoding="utf-8")


def _plan_tree(root: Path, file: str) -> Any:
    return json.loads(encode(load_plan(root / file)))


def _change_record(root: Path, change: FieldChange) -> None:
    tree = json.loads((root / change.file).read_bytes())
    assign(tree, change.place.path, change.value)
    (root / change.file).write_bytes((json.dumps(tree, indent=1) + "\n").encode())


def _change_row(root: Path, change: FieldChange) -> None:
    path = root / change.file
    rows: list[Row] = [json.loads(line) for line in read_lines(path)]
    assign(rows[(change.line or 1) - 1], change.place.path, change.value)
    if change.door.name == "journal" and change.place.field != "previous":
        chain(path, rows)
    else:
        path.write_bytes(b"".join(map(canonical, rows)))
    sealed_path(path).unlink(missing_ok=True)


def changes_in(root: Path, door: Door, files: Iterable[str]) -> list[FieldChange]:
    """Return a change of every field that files hold: the first place of each that has a value.

    A dict without a schema counts as a field a key.
    """
    found: dict[str, FieldChange] = {}
    for file in files:
        for line, tree in _records(root, door, file):
            for place in places(tree, door.kind):
                known = found.get(place.label)
                if known is not None and known.place.value not in (None, [], {}):
                    continue
                value = another(place)
                if value is ABSENT or (door.name == "plan" and _is_filled_in(place)):
                    continue
                found[place.label] = FieldChange(door, file, line, place, value)
    return list(found.values())


def _is_filled_in(place: Place) -> bool:
    """Say whether a key that is left out comes back when the plan is read."""
    return place.field in ("grpo", "lora") and not place.key


def _records(root: Path, door: Door, file: str) -> Iterator[tuple[int | None, Any]]:
    if door.name == "plan":
        yield None, _plan_tree(root, file)
    elif door.rows:
        for number, line in enumerate(read_lines(root / file), start=1):
            yield number, json.loads(line)
    else:
        yield None, json.loads((root / file).read_bytes())


def every_change(root: Path, *, every_file: bool = False) -> Iterator[FieldChange]:
    """Yield the changes of a study, by kind of file: in the first that has a field, or in all."""
    for door in DOORS:
        files = door.files(root)
        for some in [[file] for file in files] if every_file else [files]:
            yield from changes_in(root, door, some)


def once_each(studies: dict[str, Path]) -> Iterator[tuple[str, FieldChange]]:
    """Yield (study, change) of every field once, in the first kind of file that holds it.

    Tables by kind of file count as fields of their own; dicts without a schema count once.
    """
    seen: set[tuple[str, str, str]] = set()
    for study, root in studies.items():
        for change in every_change(root):
            own = change.door.name if (change.door.name, change.place.owner) in BY_DOOR else ""
            key = (own, change.place.owner, change.place.field)
            if key not in seen:
                seen.add(key)
                yield study, change
