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
        f"{probability(f.p_holm)} after Holm)"
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
            if f.detectable_points is not None:
                head += (
                    f" A true change of up to about {f.detectable_points:.1f} points could have "
                    "gone unseen."
                )
    told_notes = (_note_sentence(note, f.margin_points) for note in notes)
    return " ".join([f"{f.arm}: {head}", *filter(None, told_notes)])


def _without_interval(f: Finding, change: str) -> str:
    """Return the rest of the sentence where no interval could be made."""
    if f.seeds < 2:
        return (
            f" (one seed). This adapter: {change}; one seed cannot tell what the reward does from "
            "what the seed does."
        )
    if f.control_seeds is not None and f.control_seeds < 2:
        return (
            f" (the control arm has one seed). Over {f.seeds} seeds: {change}; one seed of the "
            "control cannot tell what its reward does from what its seed does."
        )
    return f": {change}; no seed or question differs in this, so there is no error to judge it by."


ONE_READING = {
    "format gain": "The lenient reading shows no such gain, so this may be a gain in answer "
    "format alone.",
    "format gain, ability lost": "The lenient reading is lower: a gain in answer format with a "
    "loss of ability.",
    "format loss": "The lenient reading shows no such loss, so this may be a loss of answer "
    "format alone.",
    "format loss, ability gained": "The lenient reading is higher: a loss of answer format "
    "with a gain in ability.",
    "lenient alone": "This holds under the lenient reading alone: the strict one does not show it.",
}
"""Sentences on a change that one of the two readings alone shows, by note."""


def _note_sentence(note: str, margin_points: float) -> str:
    return {
        **ONE_READING,
        "smaller than the margin": "The whole interval lies within the plan's margin of "
        f"{margin_points:g} points: too small a change to matter, as the plan has it.",
        "borderline": "Borderline: the p-value (before Holm) and the interval disagree, which "
        "counts as no evidence.",
        "not after Holm": "Alone it would have counted as a change; after the correction for "
        "several comparisons it does not.",
    }.get(note, "")


SAME_ANSWERS = "It learned nothing that shows: every answer is the base's, to the letter."


def adapter_sentence(
    name: str,
    metric: Metric,
    difference: float,
    told: str,
    verdict: VerdictWord,
    *notes: str,
) -> str:
    """Return the sentence on one adapter; `told` holds counts, interval and p.

    Notes are `borderline` and `same answers`.
    """
    word = {
        "improved": "is better than",
        "worse": "is worse than",
        "equivalent": "is as good, within the margin, as",
    }.get(verdict, "shows no evidence of a change from")
    change = f"{points(difference)} points, {told}"
    head = f"This adapter ({name}) {word} the base in {metric} accuracy: {change}."
    if "borderline" in notes:
        head += " Borderline: the p-value and the interval disagree."
    return f"{head} {SAME_ANSWERS}" if "same answers" in notes else head


def floor_sentence(n: int, changed: int, strict: int, lenient: int) -> str:
    """Return the sentence on the noise floor."""
    if changed == 0:
        return (
            f"The base, generated again under another batch plan, gave the same {n} completions: "
            "the floor of this protocol is 0."
        )
    return (
        f"The base, generated again under another batch plan, changed {changed} of {n} "
        f"completions, {strict} strict and {lenient} lenient outcomes: a difference that small is "
        "noise."
    )
