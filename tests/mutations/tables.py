"""The tables of docs/evidence.md: every check in a line, and every mutation under its check."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ahalab.verify.checks import CHECKS
from mutations.by_hand import mutations_by_hand
from mutations.expected import UNJUDGED
from mutations.judging import Judged, check_of
from mutations.on_bytes import bytes_changes
from mutations.on_fields import once_each
from mutations.on_whole_files import file_changes

Group = tuple[str, str, str]  # kind, what is changed, check


def checks_table() -> str:
    """Return the table of checks."""
    rows = [f"| `{name}` | {what} |" for name, what in CHECKS.items()]
    return "\n".join(["| check | what holds when it passes |", "|---|---|", *rows])


def unjudged_table() -> str:
    """Return the table of fields that no check tells of, and why."""
    rows = [
        f"| {_listed(one.struct, one.fields.split())}"
        f"{' of ' + ', '.join(one.doors) if one.doors else ''} | {one.why} |"
        for one in UNJUDGED
    ]
    return "\n".join(["| field | why no check can tell |", "|---|---|", *rows])


def _listed(struct: str, fields: Iterable[str]) -> str:
    return f"{struct}: {', '.join(f'`{field}`' for field in fields)}"


def planned(studies: dict[str, Path]) -> list[Judged]:
    """Return every mutation that the suite makes, before any is tried."""
    found = [_plan("field", c.group, check_of(c)) for _, c in once_each(studies)]
    found += [_plan("record", c.how.name, c.check) for _, c in bytes_changes(studies)]
    found += [_plan("file", c.kind.name, c.kind.check) for _, c in file_changes(studies)]
    return found + [_plan("by hand", h.after, h.mutation.check) for h in mutations_by_hand()]


def _plan(kind: str, what: str, check: str) -> Judged:
    return Judged(kind, "", what, check, caught=True, why="")


def mutations_table(judged: Iterable[Judged]) -> str:
    """Return the table of the suite: mutations by kind, struct and check, and how many were told.

    Fields come as `Struct.field`; those of a struct that one check tells of share a line.
    """
    groups: dict[Group, list[Judged]] = {}
    for one in judged:
        what = one.field.partition(".")[0] if one.kind == "field" else one.field
        groups.setdefault((one.kind, what, one.check), []).append(one)
    rows = []
    for (kind, what, check), members in groups.items():
        if kind == "field":
            names = dict.fromkeys(m.field.partition(".")[2] for m in members)
            what = _listed(what, names)
        told = sum(m.caught for m in members)
        rows.append(f"| {kind} | {what} | `{check}` | {told} of {len(members)} |")
    return "\n".join(["| kind | what is changed | check | told |", "|---|---|---|---|", *rows])
