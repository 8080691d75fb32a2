"""The sentences on reflection: what goes with a marker is never told as what it causes."""

from __future__ import annotations

from ahalab.analyze.sentences import interval, points, probability
from ahalab.plan.cells import BASE
from ahalab.records.reflection import ArmReflection, ReflectionEffect, ReflectionVerdict

ONE_SEED = "One seed cannot tell what the reward does from what the seed does."


def who(name: str) -> str:
    """Return how a sentence names a side, from the name of its answer set."""
    cell = name.removesuffix("/answers")
    if cell == BASE.name:
        return "the base"
    return "this adapter (" + cell.removeprefix("arms/").replace("/seed-", ", seed ") + ")"


def floor_sentence(marked: int, same: int, strict: int, lenient: int) -> str:
    """Return the sentence on what a free continuation repeats."""
    if marked == 0:
        return "No answer was cut."
    if same == marked:
        return (
            f"Continued freely from the same cuts, all {marked} answers came out the same to the "
            "token: the floor of this check is 0."
        )
    return (
        f"Continued freely from the same cuts, {same} of {marked} answers came out the same to the "
        f"token, and {strict} strict and {lenient} lenient outcomes are others: a difference that "
        "small is noise."
    )


def effect_sentence(
    found: ReflectionEffect, side: str, counts: tuple[int, int, int], confidence: float
) -> str:
    """Return the sentence on one side.

    Args:
        found: The effect.
        side: From `who`.
        counts: Answers, those with a marker, those that still reflect.
        confidence: Of the interval.
    """
    answers, marked, still = counts
    if found.verdict == "no answer reflected":
        return f"No answer of {side} reflects: none of {answers} has a marker, so nothing was cut."
    if found.verdict == "not measured" or found.interval_points is None:
        return (
            f"Nothing can be said of {side}: all {marked} answers that reflect did so again, "
            "wherever they were cut."
        )
    head = {
        "caused right answers": f"Reflection caused right answers in {side}",
        "caused wrong answers": f"Reflection caused wrong answers in {side}",
    }.get(found.verdict, f"No evidence that reflection changes the answers of {side}")
    change = found.difference_points or 0.0
    told = (
        f"{head} ({found.metric}): of {found.pairs} that reflect {found.correct_with} are right as "
        f"written, and {found.correct_without} finished without reflecting "
        f"({found.gained} gained by reflecting, {found.lost} lost), {points(change)} points "
        f"({interval(found.interval_points, confidence, 'questions')}; "
        f"{probability(found.p_holm)} after Holm)."
    )
    return " ".join([told, *_notes(found, marked, still)])


def _notes(found: ReflectionEffect, marked: int, still: int) -> list[str]:
    notes = []
    if found.verdict == "no evidence":
        notes.append(unseen(found.detectable_points))
        if found.only_as_written:
            notes.append(
                "Against the answers continued freely it does not hold, so it may be the cut alone."
            )
    if still:
        notes.append(f"{still} of {marked} still reflect, and are left out.")
    return notes


def unseen(detectable: float | None) -> str:
    """Return what could have gone unseen."""
    if detectable is None:
        return "Too few answers changed to tell what could have gone unseen."
    return f"A true change of up to about {detectable:.1f} points could have gone unseen."


def arm_sentence(found: ArmReflection, confidence: float) -> str:
    """Return the sentence on one arm over its seeds."""
    over = "one seed" if found.seeds == 1 else f"{found.seeds} seeds"
    if found.verdict == "no answer reflected":
        return f"{found.arm}: no answer reflects over {over}."
    if found.verdict == "not measured":
        return f"{found.arm}: every answer that reflects did so again, wherever it was cut."
    change = f"{points(found.difference_points)} points of {found.metric} accuracy"
    if found.interval_points is None:
        why = ONE_SEED if found.seeds == 1 else "Nothing varies, so there is no error to judge by."
        return f"{found.arm}: over {over} reflection is worth {change}. {why}"
    heads: dict[ReflectionVerdict, str] = {
        "caused right answers": "reflection caused right answers",
        "caused wrong answers": "reflection caused wrong answers",
    }
    head = heads.get(found.verdict, "no evidence that reflection changes accuracy")
    told = (
        f"{found.arm}: over {over} {head}: {change} over all questions "
        f"({interval(found.interval_points, confidence, 'questions and seeds')}; "
        f"{probability(found.p_holm)} after Holm)."
    )
    return told if found.verdict in heads else f"{told} {unseen(found.detectable_points)}"
