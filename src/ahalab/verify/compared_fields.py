"""Fields of a record that were computed again: how they are compared, and which check tells."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ahalab.records.base import Record, to_plain
from ahalab.verify.reading import Study, differences

SOLVED = 1e-6  # tolerance of intervals, which two solvers find
P_RATIO, P_SMALLEST = 1e-6, 1e-300  # of p far below any tolerance


@dataclass(frozen=True, slots=True)
class ComparedFields:
    """The fields of one file's records, each of which goes to its own check."""

    file: str
    counts: frozenset[str]  # told by `stat.n`
    methods: frozenset[str]  # told by `stat.method`; every other field by `stat.recompute`
    tolerance: float
    tolerances: Mapping[str, float] = field(default_factory=dict)  # of single fields

    def compare(self, study: Study, place: str, expected: Mapping[str, Any], found: Record) -> None:
        """Compare what was computed again with what is recorded.

        Args:
            study: The study.
            place: How the record is called in a failure; empty for the file itself.
            expected: Values by field.
            found: The recorded ones.
        """
        plain = to_plain(found)
        for name, value in expected.items():
            tally = study.ledger[self._check_of(name)]
            tolerance = self.tolerances.get(name, self.tolerance)
            wrong = list(differences(value, plain[name], tolerance, name))
            if not wrong and name.startswith("p_") and not _same_size(value, plain[name]):
                wrong = [(name, value, plain[name])]
            for what, ours, theirs in wrong:
                named = f"{place}: {what}" if place else what
                tally.fail(self.file, None, f"{named} {ours}", theirs)
            if not wrong:
                tally.passed()

    def _check_of(self, name: str) -> str:
        if name in self.counts:
            return "stat.n"
        return "stat.method" if name in self.methods else "stat.recompute"


def _same_size(expected: float | None, found: float | None) -> bool:
    """Compare two p by their ratio: absolutely, any two far below the tolerance are equal."""
    if expected is None or found is None:
        return True  # told already
    return math.isclose(expected, found, rel_tol=P_RATIO, abs_tol=P_SMALLEST)


COUNTS = {
    "n", "seeds", "base_correct", "adapter_correct", "gained", "lost", "gained_mean", "lost_mean",
}  # fmt: skip
COMPARISON = ComparedFields(
    "analysis/comparison.json",
    counts=frozenset(COUNTS),
    methods=frozenset({"interval_covers"}),
    tolerance=1e-9,
    tolerances={"interval_points": SOLVED, "minimal_detectable_points": SOLVED},
)
TEMPLATES = ComparedFields(
    "analysis/templates.json",
    counts=frozenset({"n", "questions"}),
    methods=frozenset({"name", "template", "system", "split", "confidence", "metric"}),
    tolerance=SOLVED,
)
