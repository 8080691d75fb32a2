"""Every field of every record is changed, and the check that the table names must tell."""

from __future__ import annotations

import importlib
import os
import pkgutil
from pathlib import Path

import pytest

from ahalab import records
from ahalab.records.base import Record
from ahalab.verify.checks import CHECKS
from mutations.doors import DOORS, Door
from mutations.expected import BY_DOOR, BY_STRUCT, UNJUDGED, expected_check, unjudged, untold
from mutations.fields import struct_fields
from mutations.judging import Judged, judge_bytes, judge_field, judge_file
from mutations.not_made import NO_DOOR, NOT_MADE
from mutations.on_bytes import bytes_changes
from mutations.on_fields import FieldChange, changes_in, once_each
from mutations.on_whole_files import file_changes

# CI tries a quarter of it; `AHALAB_MUTATIONS=all` and `python -m benchmarks.mutations` all of it.
SHARE = 1 if os.environ.get("AHALAB_MUTATIONS") == "all" else 4
NAMED = [(door.name, *field) for door in DOORS for field in struct_fields(door.kind)]


def missed(judged: list[Judged]) -> list[str]:
    return [f"{j.name}: expected {j.check}, {j.why}" for j in judged if not j.caught]


def test_every_field_of_every_record_has_a_check_or_a_reason_why_none_can_tell() -> None:
    left = [
        f"{struct}.{field} ({door})"
        for door, struct, field in NAMED
        if not (expected_check(door, struct, field) or untold(struct, field))
        and not unjudged(door, struct, field)
    ]
    assert left == []


def test_every_record_lies_behind_a_door_or_in_no_study() -> None:
    behind = {struct for _, struct, _ in NAMED}
    left = [
        f"{module.name}.{name}"
        for module in pkgutil.iter_modules(records.__path__)
        for name, kind in vars(importlib.import_module(f"ahalab.records.{module.name}")).items()
        if isinstance(kind, type)
        and issubclass(kind, Record)
        and kind is not Record
        and kind.__module__ == f"ahalab.records.{module.name}"
        and name not in behind
        and not {name, module.name} & NO_DOOR.keys()
    ]
    assert left == []


def test_the_tables_name_no_field_and_no_check_that_is_gone() -> None:
    known = {(struct, field) for _, struct, field in NAMED}
    known |= {(s, "kind") for s, _ in known if s.startswith("Journal")}
    tables = [*BY_STRUCT.items(), *((struct, table) for (_, struct), table in BY_DOOR.items())]
    told = {(s, f) for s, table in tables for fields in table.values() for f in fields.split()}
    told |= {(one.struct, field) for one in UNJUDGED for field in one.fields.split()}
    assert told - known == set()
    assert {check for _, table in tables for check in table} <= CHECKS.keys()


def test_every_field_is_changed_in_one_of_the_studies(studies: dict[str, Path]) -> None:
    changed = {
        (change.place.owner, change.place.field)
        for root in studies.values()
        for door in DOORS
        for change in changes_in(root, door, door.files(root))
    }
    absent = {(s, f) for _, s, f in NAMED} - changed
    excused = {(s, f) for s, fields, _ in NOT_MADE for f in fields.split()}
    assert absent == excused


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.name)
def test_a_changed_field_is_told_by_its_check(
    studies: dict[str, Path], tmp_path: Path, door: Door
) -> None:
    chosen = [(study, change) for study, change in once_each(studies) if change.door == door]
    judged = [judge_field(studies[s], change, tmp_path / "copy") for s, change in chosen[::SHARE]]
    assert missed(judged) == []


def test_a_record_that_is_written_otherwise_is_told(
    studies: dict[str, Path], tmp_path: Path
) -> None:
    chosen = list(bytes_changes(studies))[:: SHARE * 2]
    judged = [judge_bytes(studies[s], change, tmp_path / "copy") for s, change in chosen]
    assert missed(judged) == []


def test_whatever_is_done_to_a_file_is_told(studies: dict[str, Path], tmp_path: Path) -> None:
    chosen = list(file_changes(studies))[:: SHARE * 2]
    judged = [judge_file(studies[s], change, tmp_path / "copy") for s, change in chosen]
    assert missed(judged) == []


def test_a_change_names_where_it_is_made(studies: dict[str, Path]) -> None:
    found = next(c for _, c in once_each(studies) if c.place.label == "Rollout.reward")
    assert isinstance(found, FieldChange)
    assert found.name.startswith("Rollout.reward in arms/")
