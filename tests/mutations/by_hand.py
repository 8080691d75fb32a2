"""The catalogue by hand: what a walk over fields does not come to, and how digests are mended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ahalab.verify.checks import Check
from mutations.judging import Judged, by_name, copy_of, verify
from mutations.kinds import ANY_LINE, Mutation
from mutations.on_analysis import ANALYSIS
from mutations.on_files import PLAIN
from mutations.on_rebuilt import REBUILT
from mutations.on_records import RECORDS
from mutations.on_rows import ROWS
from mutations.on_templates import TEMPLATES
from mutations.on_validation import VALIDATION
from tampering import rebuild, reseal


@dataclass(frozen=True, slots=True)
class ByHand:
    """One mutation of the catalogue, and what is done after it."""

    mutation: Mutation
    after: str  # `nothing mended`, `digests mended`, `all made again`
    mend: Callable[[Path], None]


def _leave(root: Path) -> None:
    """Mend nothing."""


def mutations_by_hand() -> Iterator[ByHand]:
    """Yield the whole catalogue."""
    yield from (ByHand(m, "nothing mended", _leave) for m in PLAIN)
    mended = (*ROWS, *VALIDATION, *TEMPLATES, *RECORDS, *ANALYSIS)
    yield from (ByHand(m, "digests mended", reseal) for m in mended)
    yield from (ByHand(m, "all made again", rebuild) for m in REBUILT)


def judge_by_hand(root: Path, by_hand: ByHand, folder: Path) -> Judged:
    """Tamper with a copy, mend what the owner would, and see who tells, at which file and line."""
    mutation = by_hand.mutation
    with copy_of(root, folder / "study") as copy:
        mutation.tamper(copy)
        by_hand.mend(copy)
        checks = by_name(verify(copy))
    check = checks[mutation.check]
    told = [f"{n}: {c.failures[0]}" for n, c in checks.items() if c.failed]
    why = str(check.failures[0]) if check.failures else f"{check.status}; told: {told}"
    return Judged("by hand", mutation.name, by_hand.after, check.name, _told(mutation, check), why)


def _told(mutation: Mutation, check: Check) -> bool:
    """Say whether a check failed at the place that the mutation names."""
    if not mutation.file:  # a planned cell that is gone: nothing to point at
        return check.status == "incomplete" and bool(check.note)
    lines = {f.line for f in check.failures if f.file.removesuffix(".zst") == mutation.file}
    placed = any(lines) if mutation.line == ANY_LINE else mutation.line in lines
    return (
        check.status == "failed" and placed and all(f.expected and f.found for f in check.failures)
    )
