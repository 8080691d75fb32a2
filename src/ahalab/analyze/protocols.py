"""Which protocols may be compared: one and the same but for the adapter, or by a told exception."""

from __future__ import annotations

import difflib
import typing
from collections.abc import Iterable, Sequence

from ahalab.errors import InputError, ProtocolError, RecordError
from ahalab.plain_files import read_plain
from ahalab.records.answer import Protocol, covers, differing_fields, without_adapter
from ahalab.records.answer import as_text as text
from ahalab.records.base import decode_file
from ahalab.records.comparison import AllowedDifference, Comparison
from ahalab.store.layout import StudyPaths

ADAPTER = ("adapter_digest", "companions")  # what is compared
# Without these equal there is no comparison: other questions, another base, part of the answers.
FIXED = ("schema", "plan_digest", "prompts_digest", "base_digest", "samples", "limit")


class Made(typing.Protocol):
    """An answer set: its path, and what it was made under."""

    @property
    def name(self) -> str:
        """Path, as `base/answers`."""

    @property
    def protocol(self) -> Protocol:
        """The protocol beside it."""


def check_allowed(names: Sequence[str], protocol: Protocol, fixed: Sequence[str] = FIXED) -> None:
    """Refuse an exception that cannot be made.

    Args:
        names: Fields, as `device`, `versions` or `versions.torch`.
        protocol: One that has them.
        fixed: Fields that are never an exception.

    Raises:
        InputError: A name is no field of the protocol, or one that is never an exception.
    """
    fields = [f for f in Protocol.__struct_fields__ if f not in (*ADAPTER, *fixed)]
    for name in names:
        stem = name.partition(".")[0]
        if stem in ADAPTER:
            raise InputError(
                f"--allow: expected a field other than the adapter's, found {name}. The adapter is "
                "what is compared and needs no exception: leave it out."
            )
        if stem in fixed:
            raise InputError(
                f"--allow: expected a field of how answers are made, found {name}, without which "
                "equal there is nothing to compare. Evaluate both sides under one plan."
            )
        nested = isinstance(getattr(protocol, stem, None), dict)
        if stem not in fields or (stem != name and not nested):
            near = difflib.get_close_matches(name, fields, n=3, cutoff=0.5)
            hint = f"Did you mean {' or '.join(near)}?" if near else f"Fields: {', '.join(fields)}."
            raise InputError(f"--allow: expected a field of the protocol, found {name!r}. {hint}")


def require_comparable(
    base: Made,
    other: Made,
    allow: Sequence[str] = (),
    command: str = "ahalab analyze STUDY",
    fixed: Sequence[str] = FIXED,
) -> list[AllowedDifference]:
    """Refuse to compare answers made under different protocols.

    Args:
        base: The measure.
        other: The set that is compared with it.
        allow: Fields in which they may differ (see `check_allowed`).
        command: What takes `--allow`.
        fixed: Fields that are never an exception.

    Returns:
        The allowed differences there are.

    Raises:
        ProtocolError: They differ in more than the adapter and these; each field is named.
    """
    fields = differing_fields(without_adapter(base.protocol), without_adapter(other.protocol))
    refused = {field: both for field, both in fields.items() if not covers(allow, field)}
    if refused:
        told = "; ".join(f"{field}: {a!r} and {b!r}" for field, (a, b) in refused.items())
        remedy = "Evaluate both again under the same plan, on the same machine"
        if "scorer_version" in refused:
            remedy = "`ahalab rescore STUDY --write` brings all answers to the installed scorer"
        raise ProtocolError(
            f"{base.name} and {other.name} are not comparable: expected one protocol, found "
            f"different {told}. "
            f"{remedy}{_or_allow(refused, command, fixed)}."
        )
    return [
        AllowedDifference(answers=other.name, field=field, base=text(a), found=text(b))
        for field, (a, b) in fields.items()
    ]


def _or_allow(fields: Iterable[str], command: str, fixed: Sequence[str]) -> str:
    """Return the other way out, where every one of these fields may be an exception."""
    stems = list(dict.fromkeys(field.partition(".")[0] for field in fields))
    if any(stem in fixed for stem in stems):
        return ""
    options = " ".join(f"--allow {stem}" for stem in stems)
    return f", or record the exception ({command} {options})"


def unused(names: Sequence[str], allowed: Iterable[AllowedDifference]) -> list[str]:
    """Return the fields that were allowed to differ and do not."""
    found = [difference.field for difference in allowed]
    return [name for name in names if not any(covers([name], field) for field in found)]


def recorded_exceptions(paths: StudyPaths) -> tuple[str, ...]:
    """Return the fields in which `ahalab analyze --allow` let this study's protocols differ."""
    try:
        comparison = decode_file(read_plain(paths.comparison), Comparison, str(paths.comparison))
    except (OSError, RecordError):  # absent, or to be written again
        return ()
    return tuple(dict.fromkeys(allowed.field for allowed in comparison.allowed or ()))
