"""Exceptions to the one protocol: what is recorded as allowed is what differs, and is told."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator

from msgspec.structs import replace

from ahalab.plan.cells import FLOOR, Cell, answer_cells
from ahalab.records.answer import Protocol
from ahalab.records.base import to_plain
from ahalab.records.comparison import AllowedDifference, Comparison
from ahalab.records.plan import Plan
from ahalab.tasks.places import answer_paths
from ahalab.verify.reading import Study

FILE = "analysis/comparison.json"
ADAPTER = frozenset({"adapter_digest", "companions"})
# No exception makes a comparison of other questions, another base, or part of the answers.
NEVER = ADAPTER | {"schema", "plan_digest", "prompts_digest", "base_digest", "samples", "limit"}


def field_differences(first: Protocol, again: Protocol) -> dict[str, tuple[str, str]]:
    """Return every field that differs, nested ones as `versions.torch`, with both values as text.

    Values are compared by their JSON, so that 1, 1.0 and true are three values.
    """
    both = [dict(_fields(protocol)) for protocol in (first, again)]
    found: dict[str, tuple[str, str]] = {}
    for field in sorted({*both[0], *both[1]}):
        one, other = (values.get(field) for values in both)
        if one != other:
            found[field] = (_plain(one), _plain(other))
    return found


def _fields(protocol: Protocol) -> Iterator[tuple[str, str]]:
    """Yield every field and its value's JSON."""
    for key, value in to_plain(protocol).items():
        if isinstance(value, dict) and value:
            yield from ((f"{key}.{name}", json.dumps(inner)) for name, inner in value.items())
        else:
            yield key, json.dumps(value)


def _plain(text: str | None) -> str:
    """Return a value as records have it: texts without quotes."""
    if text is None:
        return "absent"
    value = json.loads(text)
    return value if isinstance(value, str) else text


def within(field: str, names: Collection[str]) -> bool:
    """Say whether a field is one of these, or nested in one."""
    return field in names or field.partition(".")[0] in names


def exceptions(study: Study) -> tuple[AllowedDifference, ...]:
    """Return the exceptions that the comparison records."""
    comparison = study.record(study.paths.comparison, Comparison)
    return comparison.allowed or () if comparison else ()


def exception_fields(study: Study) -> list[str]:
    """Return the fields of the exceptions, as ablation and changed responses list them."""
    return sorted({allowed.field for allowed in exceptions(study)})


def check_exceptions(study: Study, plan: Plan) -> dict[str, frozenset[str]]:
    """Compare the recorded exceptions with the protocols; return their fields by answer set.

    One that holds is told, and the check of protocols is then not one that passed.
    """
    recorded, tally = exceptions(study), study.ledger["protocol"]
    fields: dict[str, set[str]] = {}
    for allowed in recorded:
        if within(allowed.field, NEVER):
            tally.fail(FILE, None, "exceptions in how answers are made", allowed.field)
        else:
            fields.setdefault(allowed.answers, set()).add(allowed.field)
    expected = [
        AllowedDifference(answers=name, field=field, base=base, found=found)
        for cell in answer_cells(plan)
        for name, field, base, found in _actual(study, cell)
        if field in fields.get(name, ())
    ]
    for name in {one.field for one in expected}:
        study.recomputed[f"exception.{name}"] = sum(one.field == name for one in expected)
    if recorded and not tally.expect(
        FILE, None, "allowed", [_told(e) for e in expected], [_told(e) for e in recorded]
    ):
        return {}
    for allowed in recorded:
        tally.not_checked(f"EXCEPTION by --allow: {_told(allowed)}")
    return {name: frozenset(own) for name, own in fields.items()}


def _actual(study: Study, cell: Cell) -> list[tuple[str, str, str, str]]:
    """Return (answer set, field, base's value, own value) of every difference from the base."""
    base = study.record(study.paths.base_answers().protocol, Protocol)
    target = answer_paths(study.paths, cell)
    own = study.record(target.protocol, Protocol)
    if base is None or own is None:
        return []
    if cell == FLOOR:
        base = replace(base, batch_size=own.batch_size, seed=own.seed)
    found = field_differences(base, own).items()
    return [(target.name, f, a, b) for f, (a, b) in found if not within(f, ADAPTER)]


def _told(allowed: AllowedDifference) -> str:
    return f"{allowed.field} of {allowed.answers}: {allowed.found}, the base's {allowed.base}"
