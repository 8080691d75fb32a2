"""The two readings of an answer, strict and lenient, and what only one of them shows."""

from __future__ import annotations

from ahalab.records.comparison import VerdictWord
from ahalab.records.terms import Metric


def one_scorer_note(metric: Metric, verdict: VerdictWord, other: VerdictWord) -> str | None:
    """Return the note on a change that only one of the two readings shows; None for both or none.

    Args:
        metric: The reading.
        verdict: Its verdict.
        other: The verdict of the other reading.
    """
    if verdict not in ("improved", "worse") or verdict == other:
        return None
    if metric == "lenient":
        opposite = other in ("improved", "worse")
        return "lenient alone, strict opposite" if opposite else "lenient alone"
    if verdict == "improved":
        return "format gain, ability lost" if other == "worse" else "format gain"
    return "format loss, ability gained" if other == "improved" else "format loss"
