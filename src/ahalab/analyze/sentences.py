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
    """Return a difference with its sign and a true minus: `+3.2`, `−0.4`."""
    return f"{value:+.1f}".replace("-", "\N{MINUS SIGN}")


def percent(fraction: float) -> str:
    """Return a fraction in percent: `31.0 %`."""
    return f"{100 * fraction:.1f} %"


def probability(p: float | None) -> str:
    """Return a p-value as it is printed: `p = .041`, `p < .001`, `p undefined`."""
    if p is None:
        return "p undefined"
    if p < 0.001:
        return "p < .001"
    return f"p = {p:.3f}".replace("0.", ".", 1)


def interval(bounds: tuple[float, float], confidence: float, covers: str) -> str:
    """Return an interval with what it covers."""
    low, high = bounds
    return f"{100 * confidence:.0f} % interval {points(low)} to {points(high)} over {covers}"


def arm_sentence(finding: Finding, notes: tuple[str, ...]) -> str:
    """Return the sentence on a reward design over its seeds."""
    f = finding
    change = (
        f"{f.metric} accuracy {percent(f.accuracy)} against {percent(f.reference_accuracy)} for "
        f"{f.reference}, {points(f.difference_points)} points"
    )
    if f.interval_points is None:
        if f.seeds < 2:
            return (
                f"{f.arm}: no evidence on this reward (one seed). This adapter: {change}; one seed cannot "
                "tell what the reward does from what the seed does."
            )
        return f"{f.arm}: no evidence on this reward: {change}; nothing varies, so no interval can be given."
    told = (
        f"{change} ({interval(f.interval_points, f.confidence, 'questions and seeds')}; "
        f"{probability(f.p_holm)} after Holm)"
    )
    match f.verdict:
        case "improved" | "worse":
            word = "improved" if f.verdict == "improved" else "lowered"
            head = f"{f.arm}: over {f.seeds} seeds this reward {word} {f.metric} accuracy: {told}."
        case "equivalent":
            head = (
                f"{f.arm}: over {f.seeds} seeds this reward left {f.metric} accuracy the same to within "
                f"{f.margin_points:g} points: {told}."
            )
        case _:
            unseen = (
                f" A change below about {f.detectable_points:.1f} points could have gone unseen."
                if f.detectable_points is not None
                else ""
            )
            head = (
                f"{f.arm}: no evidence of a change in {f.metric} accuracy from this reward over "
                f"{f.seeds} seeds: {told}.{unseen}"
            )
    return " ".join([head, *(_note_sentence(note) for note in notes)]).strip()


def _note_sentence(note: str) -> str:
    return {
        "format gain": "The lenient reading shows no such gain, so this is a gain in format.",
        "format gain, ability lost": "The lenient reading fell: a gain in format with a loss of ability.",
        "smaller than the margin": "The change is smaller than the margin that the plan calls relevant.",
        "borderline": "Borderline: p-value and interval disagree.",
        "not after Holm": "Without the correction for several comparisons it would have passed.",
    }.get(note, "")


def adapter_sentence(
    name: str, metric: Metric, difference: float, told: str, verdict: VerdictWord
) -> str:
    """Return the sentence on one adapter; `told` holds counts, interval and p."""
    word = {
        "improved": "is better than",
        "worse": "is worse than",
        "equivalent": "is as good, within the margin, as",
    }.get(verdict, "shows no evidence of a change from")
    return f"This adapter ({name}) {word} the base in {metric} accuracy: {points(difference)} points, {told}."


def floor_sentence(n: int, changed: int, strict: int, lenient: int) -> str:
    """Return the sentence on the noise floor."""
    if changed == 0:
        return (
            f"The base, generated again under another batch plan, gave the same {n} completions: "
            "the floor of this protocol is 0."
        )
    return (
        f"The base, generated again under another batch plan, changed {changed} of {n} completions, "
        f"{strict} strict and {lenient} lenient outcomes: a difference that small is noise."
    )
