"""Sentences that people quote: their figures and words must be those of the comparison."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import UNSET, UnsetType

from ahalab.records.comparison import AdapterComparison, ArmComparison, Comparison, NoiseFloor
from ahalab.records.templates import TemplateComparison, TemplateRange
from ahalab.verify.reading import Study

FILE = "analysis/comparison.json"
TEMPLATES = "analysis/templates.json"
MINUS = "\N{MINUS SIGN}"
_FIGURE = re.compile(rf"[+{MINUS}-]?(?:\d+(?:\.\d+)?|\.\d+)")
ARM_WORDS = {
    "improved": "this reward improved",
    "worse": "this reward lowered",
    "equivalent": "the same to within",
    "no evidence": "no evidence",
}
ADAPTER_WORDS = {
    "improved": "is better than",
    "worse": "is worse than",
    "equivalent": "is as good",
    "no evidence": "no evidence of a change",
}

NOTE_WORDS = {
    "format gain": "a format gain:",
    "format gain, ability lost": "a format gain with a loss of ability",
    "format loss": "a format loss:",
    "format loss, ability gained": "a format loss with a gain in ability",
    "lenient alone": "by the lenient reading alone, which takes the right value in any format: the",
    "lenient alone, strict opposite": "accuracy went the other way",
    "smaller than the margin": "smaller than the plan's margin",
    "borderline": "Borderline",
    "not after Holm": "Without the correction for several comparisons",
}
POWER = "80"  # percent, at which the smallest detectable change is told
TEMPLATE_WORDS = {
    "own is best": "the best of them",
    "better exists": "a straw man",
    "no evidence": "no evidence that another is better",
}


def points(value: float) -> str:
    """Return a difference as sentences write it; what rounds to zero has no sign."""
    rounded = round(value, 1)
    return f"{rounded:+.1f}".replace("-", MINUS) if rounded else "0.0"


def p_told(value: float | None) -> str:
    """Return a p-value as sentences write it, without `p`; nothing where there is none."""
    if value is None:
        return ""
    if value >= 0.9995:
        return "1.00"
    return ".001" if value < 0.001 else f"{value:.3f}".replace("0.", ".", 1)


def span(bounds: tuple[float, float] | None) -> tuple[str, ...]:
    """Return the bounds of an interval as sentences write them."""
    return () if bounds is None else (points(bounds[0]), points(bounds[1]))


def check_arm_sentence(study: Study, found: ArmComparison, comparison: Comparison) -> None:
    """Check the sentence on a reward design."""
    figures = [
        f"{100 * found.accuracy:.1f}",
        f"{100 * found.reference_accuracy:.1f}",
        points(found.difference_points),
        *span(found.interval_points),
        *_unseen(found.verdict, found.minimal_detectable_points),
    ]
    optional = [
        p_told(found.p_holm),
        f"{100 * comparison.confidence:.4g}",
        f"{comparison.margin_points:g}",
        str(found.seeds),
        str(len({a.seed for a in comparison.adapters if a.arm == comparison.control})),
        POWER,
    ]
    text = found.sentence.replace(found.arm, "").replace(comparison.control, "")
    place = f"{found.arm} against {found.against}, {found.metric}"
    check_sentence(study, place, (text, found.verdict), (figures, optional), ARM_WORDS)
    if _worded(comparison):
        _check_notes(study, place, text, set(found.notes))


def _worded(comparison: Comparison) -> bool:
    """Say whether the sentences are of the version that has words for every note."""
    return any(adapter.p_max_t is not UNSET for adapter in comparison.adapters)


def _unseen(verdict: str, detectable: float | UnsetType | None) -> list[str]:
    """Return the figure that must stand beside "no evidence"."""
    if verdict != "no evidence" or not isinstance(detectable, float):
        return []
    return [f"{detectable:.1f}"]


def _check_notes(study: Study, place: str, text: str, notes: set[str]) -> None:
    """Check that a sentence says each note of its comparison, and no other."""
    for note, words in NOTE_WORDS.items():
        if (words in text) != (note in notes):
            what = f"{place}: {'' if note in notes else 'no '}{words!r} in its sentence"
            study.ledger["stat.sentence"].fail(FILE, None, what, text)


def check_adapter_sentence(
    study: Study, found: AdapterComparison, comparison: Comparison, notes: set[str], *, same: bool
) -> None:
    """Check the sentence on one adapter; `same` when its every answer is the base's."""
    figures = [points(found.difference_points), *span(found.interval_points)]
    family = sum(a.metric == found.metric for a in comparison.adapters)
    optional = [
        p_told(found.p_value),
        p_told(found.p_max_t if isinstance(found.p_max_t, float) else None),
        f"{100 * comparison.confidence:.4g}",
        f"{comparison.margin_points:g}",
        str(found.seed),
        str(found.n),
        str(family),
        POWER,
    ]
    if found.gained is not None and found.lost is not None:
        figures += [str(found.gained), str(found.lost)]
    else:
        clusters = min(found.n, len(study.prompts("eval")))  # of questions
        optional += [str(n) for n in range(1, clusters + 1)]
    if not same:
        figures += _unseen(found.verdict, found.minimal_detectable_points)
    place = f"{found.arm}, seed {found.seed}, {found.metric}"
    text = found.sentence.replace(found.arm, "")
    check_sentence(study, place, (text, found.verdict), (figures, optional), ADAPTER_WORDS)
    if _worded(comparison):
        _check_notes(study, place, text, notes)
    said = "It learned nothing" in text
    if same != said:
        what = "that it learned nothing" if same else "nothing of learning nothing"
        study.ledger["stat.sentence"].fail(FILE, None, f"{place}: {what}, as its answers say", text)


def check_floor_sentence(study: Study, found: NoiseFloor) -> None:
    """Check the sentence on the noise floor."""
    strict, lenient = (
        found.strict_gained + found.strict_lost,
        found.lenient_gained + found.lenient_lost,
    )
    figures = [found.n] + (
        [found.changed_completions, strict, lenient] if found.changed_completions else [0]
    )
    check_sentence(study, "floor", (found.sentence, ""), ([str(n) for n in figures], []), {})


def check_template_sentence(study: Study, found: TemplateRange, whole: TemplateComparison) -> None:
    """Check the sentence on how far the template moves the base under one reading."""
    spread, lead = found.spread_interval_points, found.lead_interval_points
    own = f"{100 * found.own_accuracy:.1f}"
    counts = [str(whole.questions), str(len(whole.templates))]
    others = str(len(whole.templates) - 1)
    figures, words = [own, *counts], {"own is best": "does not move the base"}
    if spread is not None:
        accuracies = (found.worst_accuracy, found.best_accuracy, found.spread_points / 100)
        figures += [f"{100 * value:.1f}" for value in accuracies] + [*span(spread), *span(lead)]
        figures += [] if lead is None else [f"{found.lead_points:.1f}", others]
        words = TEMPLATE_WORDS
    text = found.sentence
    for name in (found.worst, found.best):
        if spread is not None and f"({name})" not in text:
            study.ledger["stat.sentence"].fail(TEMPLATES, None, f"the template ({name})", text)
        text = text.replace(f"({name})", "")
    moves = spread is not None and spread[0] > 0
    chance = spread is not None and spread[0] <= 0
    for word, wanted in (
        ("The protocol alone moves the base", moves),
        ("no evidence that the protocol alone moves it", chance),
        (found.metric, True),
    ):
        if (word in text) != wanted:
            what = f"{found.metric}: {'' if wanted else 'no '}{word!r} in its sentence"
            study.ledger["stat.sentence"].fail(TEMPLATES, None, what, text)
    optional = [f"{100 * whole.confidence:.4g}"]
    said = (text, found.verdict)
    check_sentence(study, found.metric, said, (figures, optional), words, TEMPLATES)


def check_sentence(
    study: Study,
    place: str,
    said: tuple[str, str],
    figures: tuple[Iterable[str], Iterable[str]],
    words: dict[str, str],
    file: str = FILE,
) -> None:
    """Check that a sentence holds the needed figures, known ones only, and its verdict's words.

    Args:
        study: The study.
        place: For failures.
        said: The sentence, and its verdict.
        figures: Those that it must hold, and those that it may.
        words: By verdict, what it must say.
        file: Where it stands.
    """
    text, verdict = said
    needed, optional = (set(f) for f in figures)
    found = set(_FIGURE.findall(text))
    tally = study.ledger["stat.sentence"]
    for figure in sorted(needed - found):
        tally.fail(file, None, f"{place}: the figure {figure} in its sentence", text)
    for figure in sorted(found - needed - optional):
        tally.fail(file, None, f"{place}: only figures of the comparison", f"{figure} in: {text}")
    if verdict in words and words[verdict] not in text:
        tally.fail(file, None, f"{place}: {words[verdict]!r} for the verdict {verdict}", text)
    tally.passed()
