"""Sentences on two files of answers: of these answers alone, never of what made them."""

from __future__ import annotations

from collections.abc import Sequence

from ahalab.analyze.sentences import (
    interval,
    note_sentence,
    percent,
    points,
    probability,
    unseen,
)
from ahalab.records.comparison import AllowedDifference
from ahalab.records.pair import PairReading

ONE_PAIR = (
    "All of this is about these two files. Whether the training method behind them matters takes "
    "several seeds: ahalab power says how many."
)


def pair_sentence(reading: PairReading, confidence: float, margin_points: float | None) -> str:
    """Return the sentence on one reading of the two files, the second against the first.

    Args:
        reading: All but its sentence.
        confidence: Of its interval.
        margin_points: Largest difference that does not matter; None: none was given.
    """
    r = reading
    first, second = (percent(right / r.n) for right in (r.base_correct, r.adapter_correct))
    p_told = probability(r.p_value)
    if r.p_value is not None:
        p_told += f" by {'mid-p McNemar' if r.gained is not None else 'question'}"
    bounds = interval(r.interval_points, confidence, "questions")
    told = (
        f"{second} (B) against {first} (A) of {r.n:,} questions, "
        f"{points(r.difference_points)} points ({bounds}; {p_told})"
    )
    if r.gained is not None:
        told += f"; {r.gained} gained, {r.lost} lost"
    match r.verdict:
        case "improved" | "worse":
            word = "more" if r.verdict == "improved" else "less"
            head = f"these answers of B are right {word} often than those of A"
        case "equivalent":
            head = (
                "these answers of A and B are right equally often to within "
                f"{margin_points:g} points"
            )
        case _:
            head = "no evidence that these answers of A and B differ in how often they are right"
    parts = [f"{r.metric}: {head}: {told}."]
    if r.verdict == "no evidence":
        parts.append(_unseen(r))
    parts += [
        text for note in r.notes if (text := note_sentence(note, margin_points, "the margin"))
    ]
    return " ".join(parts)


def _unseen(reading: PairReading) -> str:
    if reading.gained == reading.lost == 0:
        return "Not one question changed, so there is nothing to test."
    return unseen(reading.minimal_detectable_points)


def protocol_sentence(
    known: bool, without: Sequence[str], allowed: Sequence[AllowedDifference]
) -> str | None:
    """Return what must be said of the protocols; None where they are the same.

    Args:
        known: Whether a protocol lies beside both files.
        without: Names of the files beside which none lies.
        allowed: Fields that differ and were allowed to.
    """
    if not known:
        return (
            f"No protocol beside {' and '.join(without)}: that both sets of answers were produced "
            "and scored in one way is taken on trust."
        )
    if allowed:
        told = "; ".join(f"{pair.field} ({pair.base} and {pair.found})" for pair in allowed)
        return f"The protocols differ in {told}, as allowed: the difference may come from that."
    return None
