"""The sentences a person quotes. They never confuse this adapter with this reward."""

from __future__ import annotations

from dataclasses import dataclass

from ahalab.records.comparison import VerdictWord
from ahalab.records.terms import Metric


@dataclass(frozen=True, slots=True)
class Finding:
    """The numbers of one comparison, in points and fractions, as a sentence needs them."""

    arm: str
    metric: Metric
    seeds: int
    control_seeds: int | None  # None: compared with the base
    accuracy: float  # fraction
    reference: str  # "the base" or "the control arm random"
    reference_accuracy: float
    difference_points: float
    interval_points: tuple[float, float] | None
    p_holm: float | None
    confidence: float
    margin_points: float
    detectable_points: float | None
    verdict: VerdictWord


def points(value: float) -> str:
    """Return a difference with its sign and a true minus: `+3.2`, `−0.4`, `0.0`."""
    rounded = round(value, 1)
    return f"{rounded:+.1f}".replace("-", "\N{MINUS SIGN}") if rounded else "0.0"


def percent(fraction: float) -> str:
    """Return a fraction in percent: `31.0 %`."""
    return f"{100 * fraction:.1f} %"


def probability(p: float | None) -> str:
    """Return a p-value as it is printed: `p = .041`, `p < .001`, `p = 1.00`, `p undefined`."""
    if p is None:
        return "p undefined"
    if p < 0.001:
        return "p < .001"
    return f"p = {p:.3f}".replace("0.", ".", 1) if p < 0.9995 else "p = 1.00"


def interval(bounds: tuple[float, float], confidence: float, covers: str) -> str:
    """Return an interval with what it covers."""
    low, high = bounds
    level = f"{100 * confidence:.4g}"
    return f"{level} % interval {points(low)} to {points(high)} over {covers}"


def unseen(detectable_points: float | None, under: str = "") -> str:
    """Return what must stand beside "no evidence": which true change could have gone unseen.

    Args:
        detectable_points: Smallest change found with 80 % power; None where too little changed.
        under: What the power is counted under, as ` (before Holm)`.
    """
    if detectable_points is None:
        return "Too few questions changed for a change of any size to be found."
    return (
        f"The smallest true change that such a comparison finds with 80 % power is about "
        f"{detectable_points:.1f} points{under}: a smaller one could have gone unseen."
    )


def arm_sentence(finding: Finding, notes: tuple[str, ...]) -> str:
    """Return the sentence on a reward design over its seeds.

    A comparison with the control arm says so before its figures: a reward may stand above the
    control and still below the base.
    """
    f = finding
    figures = f"{percent(f.accuracy)} against {percent(f.reference_accuracy)}"
    if f.interval_points is None:
        change = (
            f"{f.metric} accuracy {figures} for {f.reference}, {points(f.difference_points)} points"
        )
        return f"{f.arm}: no evidence on this reward{_without_interval(f, change)}"
    told = (
        f"{figures}, {points(f.difference_points)} points "
        f"({interval(f.interval_points, f.confidence, 'questions and seeds')}; "
        f"{probability(f.p_holm)} after Holm's correction)"
    )
    over = f"over {f.seeds} seeds"
    if f.control_seeds is not None and f.control_seeds != f.seeds:
        over += f" (the control over {f.control_seeds})"
    match f.verdict:
        case "improved" | "worse":
            word = "improved" if f.verdict == "improved" else "lowered"
            head = (
                f"{over} this reward {word} {f.metric} accuracy relative to {f.reference}: {told}."
            )
        case "equivalent":
            head = (
                f"{over} {f.metric} accuracy under this reward and under {f.reference} was the "
                f"same to within {f.margin_points:g} points: {told}."
            )
        case _:
            head = (
                f"no evidence {over} that this reward changed {f.metric} accuracy relative to "
                f"{f.reference}: {told}."
            )
            head += f" {unseen(f.detectable_points, ' (before the correction)')}"
    told_notes = (note_sentence(note, f.margin_points) for note in notes)
    return " ".join([f"{f.arm}: {head}", *filter(None, told_notes)])


def _without_interval(f: Finding, change: str) -> str:
    """Return the rest of the sentence where no interval could be made."""
    if f.seeds < 2:
        return (
            f" (one seed). This adapter: {change}; however large the change, one seed cannot tell "
            "what the reward does from what the seed does."
        )
    if f.control_seeds is not None and f.control_seeds < 2:
        return (
            f" (the control arm has one seed). Over {f.seeds} seeds: {change}; however large the "
            "change, one seed of the control cannot tell what its reward does from what its seed "
            "does."
        )
    return (
        f": {change}; there is no error to judge it by (nothing varies between seeds and "
        "questions, or there is one question), and no telling what could have gone unseen."
    )


ONE_READING = {
    "format gain": "This is a format gain: the lenient reading, which takes the right value in any "
    "format, shows no evidence of a gain.",
    "format gain, ability lost": "This is a format gain with a loss of ability: by the lenient "
    "reading, which takes the right value in any format, accuracy fell.",
    "format loss": "This is a format loss: the lenient reading, which takes the right value in any "
    "format, shows no evidence of a loss.",
    "format loss, ability gained": "This is a format loss with a gain in ability: by the lenient "
    "reading, which takes the right value in any format, accuracy rose.",
    "lenient alone": "This holds by the lenient reading alone, which takes the right value in any "
    "format: the strict one, which asks for the format too, does not show it.",
    "lenient alone, strict opposite": "This holds by the lenient reading alone, which takes the "
    "right value in any format: by the strict one, which asks for the format too, accuracy went "
    "the other way.",
}
"""Sentences on a change that one of the two readings alone shows, by note."""


def note_sentence(
    note: str, margin_points: float | None, said_of: str = "the plan's margin"
) -> str:
    """Return what a note adds to a sentence; nothing for a note that the sentence says already.

    Args:
        note: As in the record.
        margin_points: The margin; None: there is none.
        said_of: How the margin is called.
    """
    return {
        **ONE_READING,
        "smaller than the margin": f"The change is smaller than {said_of}: the whole interval lies "
        f"within {margin_points or 0:g} points.",
        "borderline": "Borderline: the uncorrected p-value and the interval disagree about a "
        "change, which counts as no evidence.",
        "not after Holm": "Without the correction for several comparisons this would count as a "
        "change.",
    }.get(note, "")


SAME_ANSWERS = "It learned nothing that shows: every answer is the base's, to the letter."


@dataclass(frozen=True, slots=True)
class AdapterFinding:
    """The numbers of one adapter against the base, as its sentence needs them."""

    name: str  # `random, seed 0`
    metric: Metric
    difference_points: float
    told: str  # counts, interval and p
    margin_points: float
    detectable_points: float | None
    verdict: VerdictWord


def adapter_sentence(finding: AdapterFinding, notes: tuple[str, ...]) -> str:
    """Return the sentence on one adapter, which says nothing of its reward."""
    f = finding
    word = {
        "improved": "is better than the base",
        "worse": "is worse than the base",
        "equivalent": f"is as good as the base to within {f.margin_points:g} points",
    }.get(f.verdict, "shows no evidence of a change from the base")
    change = f"{points(f.difference_points)} points, {f.told}"
    parts = [f"This adapter ({f.name}) {word} in {f.metric} accuracy: {change}."]
    if "same answers" in notes:
        parts.append(SAME_ANSWERS)
    elif f.verdict == "no evidence":
        parts.append(unseen(f.detectable_points))
    return " ".join([*parts, *filter(None, (note_sentence(n, f.margin_points) for n in notes))])


def floor_sentence(n: int, changed: int, strict: int, lenient: int) -> str:
    """Return the sentence on the noise floor."""
    if changed == 0:
        return (
            f"The base, generated again under another batch plan, gave the same {n} completions: "
            "the noise floor of this protocol is 0."
        )
    return (
        f"The base, generated again under another batch plan, changed {changed} of {n} "
        f"completions, {strict} strict and {lenient} lenient outcomes: a difference that small is "
        "noise."
    )
