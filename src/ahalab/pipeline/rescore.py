"""`ahalab rescore`: what the installed scorer says of saved answers, and what follows."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from ahalab.analyze.answers import Answers, StudyAnswers
from ahalab.analyze.compare import analyze, compare
from ahalab.analyze.protocols import recorded_exceptions, require_comparable
from ahalab.errors import InputError, ProtocolError
from ahalab.evaluate.pair import answers_present
from ahalab.evaluate.rescore import OnRows, Rejudged, rejudge_study, write_rescored
from ahalab.pipeline.run import seal_study
from ahalab.pipeline.study import read_manifest, refuse_tampered
from ahalab.plan.cells import BASE, FLOOR, answer_cells, training_cells
from ahalab.records.answer import Answer, Protocol
from ahalab.records.base import digest
from ahalab.records.comparison import Comparison
from ahalab.records.plan import Plan
from ahalab.records.prompt import Prompt
from ahalab.records.rescoring import Judged, Regraded, RescoredSide, RescoredVerdict, Rescoring
from ahalab.records.terms import METRICS
from ahalab.scoring.answers import SCORER_VERSION
from ahalab.store.layout import StudyPaths
from ahalab.store.lock import WriterLock
from ahalab.tasks.prepare import read_prompts

TIMEOUT = "error: timeout"


def rescore_study(plan: Plan, paths: StudyPaths, *, write: bool, on_rows: OnRows) -> Rescoring:
    """Score a study's answers with the installed scorer; with `write`, let them stand under it.

    Outcomes that are recorded under the installed version, and are not what it says, are returned
    in `unlike`; nothing is then written.

    Args:
        plan: The plan.
        paths: The study.
        write: Whether to replace answers, analysis, report and manifest; the old ones are kept.
        on_rows: Told how many answers were scored.

    Raises:
        IncompleteError: There are no answers, or some are not finished.
        InputError: A sealed study was changed since, another process writes, or answers were cut
            (`ahalab reflect --causal`).
    """
    manifest = read_manifest(paths)
    if manifest is not None:
        refuse_tampered(manifest, paths)
    prompts = read_prompts(paths, "eval")
    if not write:
        return _told(plan, paths, prompts, rejudge_study(plan, paths, prompts, on_rows))
    with WriterLock(paths.lock("rescore")):
        judged = rejudge_study(plan, paths, prompts, on_rows)
        told = _told(plan, paths, prompts, judged)
        if told.unlike:
            return told
        todo = [one for one in judged if not one.done]
        if todo:
            _refuse_continuations(paths)
            paths.manifest.unlink(missing_ok=True)  # the study is open until it is sealed again
        for one in todo:
            write_rescored(plan, paths, one)
        if not paths.manifest.exists() and paths.rescored.is_dir() and _whole(plan, paths):
            analyze(plan, paths, recorded_exceptions(paths))
            seal_study(plan, paths)
    return replace(told, written=True)


def _refuse_continuations(paths: StudyPaths) -> None:
    """Refuse a study with answers that were cut: their outcomes would stay another scorer's."""
    if paths.reflections.is_dir():
        raise InputError(
            f"{paths.reflections}: expected no continuations of answers, whose outcomes a rescore "
            "leaves as they are, found some. Remove this folder, analysis/reflection.json and "
            "manifest.json, rescore, and make them again: ahalab reflect STUDY --causal."
        )


def _whole(plan: Plan, paths: StudyPaths) -> bool:
    """Say whether every planned answer is there, so that the study can be sealed."""
    return all(answers_present(paths, cell) for cell in answer_cells(plan))


def _told(
    plan: Plan, paths: StudyPaths, prompts: list[Prompt], judged: list[Rejudged]
) -> Rescoring:
    """Put into one record what two scorers say, replays apart."""
    first = [one for one in judged if not one.under]
    changed = [row for one in first for row in _differing(one, one.before, one.after)]
    unlike = [row for one in judged if one.now for row in _differing(one, one.now, one.after)]
    clock = sum(_by_clock(a, b) for one in first for a, b in _pairs(one.before, one.after))
    again = {(row.answers, row.line) for row in unlike}
    return Rescoring(
        plan_digest=digest(plan),
        scorer_version=SCORER_VERSION,
        written=all(one.done for one in judged),
        sides=tuple(_side(one) for one in first),
        changed=tuple(row for row in changed if (row.answers, row.line) not in again),
        unlike=tuple(unlike),
        by_clock=clock,
        verdicts=tuple(_verdicts(plan, prompts, first, recorded_exceptions(paths))),
    )


def _pairs(before: Sequence[Answer], after: Sequence[Answer]) -> list[tuple[Answer, Answer]]:
    return list(zip(before, after, strict=True))


def _by_clock(one: Answer, other: Answer) -> bool:
    """Say whether the clock, and not the text, decided: that need not repeat."""
    return TIMEOUT in (one.status, other.status)


def _judged(row: Answer) -> Judged:
    return Judged(
        strict=row.strict, lenient=row.lenient, extracted=row.extracted, rule=row.rule,
        status=row.status,
    )  # fmt: skip


def _differing(one: Rejudged, before: list[Answer], after: list[Answer]) -> list[Regraded]:
    """Return every answer of which the two do not say the same."""
    return [
        Regraded(
            answers=one.target.name,
            line=line,
            prompt_id=old.prompt_id,
            sample=old.sample,
            before=_judged(old),
            after=_judged(new),
        )
        for line, (old, new) in enumerate(_pairs(before, after), start=1)
        if _judged(old) != _judged(new) and not _by_clock(old, new)
    ]


def _side(one: Rejudged) -> RescoredSide:
    kinds: Counter[str] = Counter()
    for old, new in _pairs(one.before, one.after):
        if _judged(old) == _judged(new) or _by_clock(old, new):
            continue
        moved = [
            f"{metric} {getattr(old, metric)} -> {getattr(new, metric)}"
            for metric in METRICS
            if getattr(old, metric) != getattr(new, metric)
        ]
        kinds.update(moved or ["same outcomes, another extraction"])
    correct = {
        (metric, when): sum(getattr(row, metric) == "correct" for row in rows)
        for metric in METRICS
        for when, rows in (("before", one.before), ("after", one.after))
    }
    return RescoredSide(
        answers=one.target.name,
        scorer_version=one.source.protocol.scorer_version,
        n=len(one.before),
        kinds=dict(sorted(kinds.items())),
        strict_correct_before=correct["strict", "before"],
        strict_correct=correct["strict", "after"],
        lenient_correct_before=correct["lenient", "before"],
        lenient_correct=correct["lenient", "after"],
    )


def _verdicts(
    plan: Plan, prompts: list[Prompt], judged: list[Rejudged], allow: Sequence[str]
) -> list[RescoredVerdict]:
    """Return every arm's verdicts under both scorers; none without a base and an adapter."""
    rejudged = {o.cell.name: (o.protocol, o.after) for o in judged}
    after = _comparison(plan, prompts, rejudged, allow)
    if after is None:
        return []
    try:
        earlier = {o.cell.name: (o.source.protocol, o.before) for o in judged}
        before = _comparison(plan, prompts, earlier, allow)
    except ProtocolError:  # several scorers had a hand in them, so they could not be compared
        before = None
    old = {(a.arm, a.against, a.metric): a for a in before.arms} if before else {}
    told = []
    for arm in after.arms:
        was = old.get((arm.arm, arm.against, arm.metric))
        told.append(
            RescoredVerdict(
                arm=arm.arm,
                against=arm.against,
                metric=arm.metric,
                primary=arm.primary,
                difference_points_before=None if was is None else was.difference_points,
                difference_points=arm.difference_points,
                verdict_before=None if was is None else was.verdict,
                verdict=arm.verdict,
            )
        )
    return told


def _comparison(
    plan: Plan,
    prompts: list[Prompt],
    sets: dict[str, tuple[Protocol, list[Answer]]],
    allow: Sequence[str],
) -> Comparison | None:
    """Compare answers as `ahalab analyze` does; None without a base or without any adapter.

    Raises:
        ProtocolError: They were judged by different scorers.
    """
    answers = {
        name: Answers(name, protocol, {(row.prompt_id, row.sample): row for row in rows})
        for name, (protocol, rows) in sets.items()
    }
    base, floor = answers.get(BASE.name), answers.get(FLOOR.name)
    cells = [cell for cell in training_cells(plan) if cell.name in answers]
    if base is None or not cells:
        return None
    for cell in cells:
        require_comparable(base, answers[cell.name], allow)
    if floor is not None:
        same = replace(floor.protocol, batch_size=base.protocol.batch_size, seed=base.protocol.seed)
        require_comparable(base, dataclasses.replace(floor, protocol=same), allow)
    missing = tuple(cell.name for cell in training_cells(plan) if cell not in cells)
    adapters = {cell.run: answers[cell.name] for cell in cells}
    return compare(StudyAnswers(plan, prompts, base, floor, adapters, missing))
