"""The sentences on reflection: their figures and words must be those of the record."""

from __future__ import annotations

from ahalab.records.reflection import ArmReflection, Reflection, ReflectionEffect, SideReflection
from ahalab.verify.reading import Study
from ahalab.verify.wording import check_sentence, p_told, points, span

FILE = "analysis/reflection.json"
SIDE_WORDS = {
    "caused right answers": "Reflection caused right answers in",
    "caused wrong answers": "Reflection caused wrong answers in",
    "no evidence": "No evidence that reflection changes the answers of",
    "no answer reflected": "has a marker, so nothing was cut",
    "not measured": "did so again",
}
ARM_WORDS = {
    "caused right answers": "reflection caused right answers",
    "caused wrong answers": "reflection caused wrong answers",
    "no evidence": "no evidence that reflection changes accuracy",
    "no answer reflected": "no answer reflects",
    "not measured": "did so again",
}
UNJUDGED = {"no evidence": "reflection is worth"}  # without an interval


def check_sentences(study: Study, found: Reflection) -> None:
    """Check every sentence of the record."""
    for side in found.causal:
        _check_floor(study, side)
        for effect in side.effects:
            _check_effect(study, side, effect, found.confidence)
    for arm in found.arms:
        _check_arm(study, arm, found.confidence)


def _check_floor(study: Study, side: SideReflection) -> None:
    figures = [side.marked] if side.marked else []
    words = "came out the same" if side.marked else "No answer was cut"
    if side.kept_same < side.marked:
        figures += [side.kept_same, side.kept_strict, side.kept_lenient]
    elif side.marked:
        figures += [0]
    needed = [str(n) for n in figures]
    place, said = f"{side.answers}: floor", (side.floor, "floor")
    check_sentence(study, place, said, (needed, ()), {"floor": words}, FILE)


def _check_effect(
    study: Study, side: SideReflection, found: ReflectionEffect, confidence: float
) -> None:
    place = f"{side.answers}, {found.metric}"
    name = side.answers.removesuffix("/answers").removeprefix("arms/")
    name = "the base" if name == "base" else f"this adapter ({name.replace('/seed-', ', seed ')})"
    if name not in found.sentence:
        study.ledger["stat.sentence"].fail(FILE, None, f"{place}: {name!r}", found.sentence)
    optional = []
    if found.verdict == "no answer reflected":
        figures = [str(side.n)]
    elif found.verdict == "not measured":
        figures = [str(side.marked)]
    else:
        counts = (found.pairs, found.correct_with, found.correct_without, found.gained, found.lost)
        figures = [*map(str, counts), points(found.difference_points or 0.0)]
        figures += [*span(found.interval_points), p_told(found.p_holm)]
        figures += [str(side.still), str(side.marked)] if side.still else []
        seen = found.detectable_points if found.verdict == "no evidence" else None
        figures += [] if seen is None else [f"{seen:.1f}"]
        optional = [f"{100 * confidence:.4g}"]
        alone = "it may be the cut alone" in found.sentence
        if alone != found.only_as_written or f"({found.metric})" not in found.sentence:
            what = f"{place}: its reading, and whether it holds against free continuations"
            study.ledger["stat.sentence"].fail(FILE, None, what, found.sentence)
    said = (found.sentence.replace(name, ""), found.verdict)
    needed = [figure for figure in figures if figure]
    check_sentence(study, place, said, (needed, optional), SIDE_WORDS, FILE)


def _check_arm(study: Study, found: ArmReflection, confidence: float) -> None:
    words, figures = ARM_WORDS, []
    if found.verdict not in ("no answer reflected", "not measured"):
        figures = [points(found.difference_points), *span(found.interval_points)]
        if found.interval_points is None:
            words = UNJUDGED
        else:
            figures += [p_told(found.p_holm)]
            seen = found.detectable_points if found.verdict == "no evidence" else None
            figures += [] if seen is None else [f"{seen:.1f}"]
    optional = [f"{100 * confidence:.4g}", str(found.seeds)]
    if not found.sentence.startswith(f"{found.arm}: "):
        study.ledger["stat.sentence"].fail(FILE, None, f"{found.arm}:", found.sentence)
    said = (found.sentence.removeprefix(f"{found.arm}: "), found.verdict)
    needed = [figure for figure in figures if figure]
    place = f"{found.arm}, {found.metric}"
    check_sentence(study, place, said, (needed, optional), words, FILE)
