"""Reflection in a study: marker rates, accuracy with and without, and what reflecting causes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ahalab.analyze.answers import Answers, expected_keys, load_answers
from ahalab.analyze.causes import Checked, Setting, arm_effects, load_checked, side_effects
from ahalab.errors import IncompleteError
from ahalab.plan.cells import FLOOR, Cell, answer_cells, training_cells
from ahalab.plan.schedule import step_buckets
from ahalab.records.base import digest
from ahalab.records.plan import Plan
from ahalab.records.prompt import Prompt
from ahalab.records.reflection import (
    GroupAccuracy,
    MarkedAccuracy,
    MarkerBucket,
    Reflection,
    SideMarkers,
    TrainingMarkers,
)
from ahalab.records.rollout import Rollout
from ahalab.records.terms import METRICS, Metric
from ahalab.scoring.reflection import MARKERS_VERSION, reflection_markers
from ahalab.statistics.association import GroupRate, compare_groups
from ahalab.store.journal import read_journal
from ahalab.store.layout import AnswerPaths, StudyPaths
from ahalab.store.reading import journal_path, read_rows
from ahalab.tasks.places import answer_paths, run_paths
from ahalab.tasks.prepare import read_prompts
from ahalab.tasks.text import normalised


def reflect(plan: Plan, paths: StudyPaths) -> Reflection:
    """Return what rollouts, answers and continuations say of reflection, as far as they are there.

    Args:
        plan: The plan.
        paths: The study.

    Raises:
        IncompleteError: There is neither a finished run nor an answer set.
        ProtocolError: Continuations are not those of today's answers.
        RecordError: A row is malformed, doubled or missing.
    """
    training = [found for cell in training_cells(plan) if (found := _training(plan, paths, cell))]
    sides = _sides(plan, paths)
    if not training and not sides:
        raise IncompleteError(f"{paths.root}: no rollouts and no answers yet. Run: ahalab run")
    setting = Setting(plan, read_prompts(paths, "eval"))
    checked: dict[Cell, Checked] = {}
    for cell, answers in sides.items():
        one = None if cell == FLOOR else load_checked(answers, paths.continuations(cell.name))
        if one is not None:
            checked[cell] = one
    by_seed = {c.run: one for c, one in checked.items() if c.trained}
    return Reflection(
        plan_digest=digest(plan),
        markers=MARKERS_VERSION,
        primary=plan.analysis.primary,
        confidence=plan.analysis.confidence,
        alpha=plan.analysis.alpha,
        training=tuple(training),
        sides=tuple(_markers(setting, answers) for answers in sides.values()),
        causal=tuple(side_effects(setting, list(checked.values()))),
        arms=tuple(arm_effects(setting, by_seed)),
    )


def _sides(plan: Plan, paths: StudyPaths) -> dict[Cell, Answers]:
    """Return every answer set that is finished."""
    if not any(_begun(answer_paths(paths, cell)) for cell in answer_cells(plan)):
        return {}
    expected = expected_keys(plan, read_prompts(paths, "eval"))
    found = {cell: load_answers(answer_paths(paths, cell), expected) for cell in answer_cells(plan)}
    return {cell: answers for cell, answers in found.items() if answers is not None}


def _begun(target: AnswerPaths) -> bool:
    return read_journal(journal_path(target.answers)).seal is not None


def _training(plan: Plan, paths: StudyPaths, cell: Cell) -> TrainingMarkers | None:
    """Count the rollouts of a finished run that have a marker."""
    run, (arm, seed) = run_paths(paths, cell), cell.run
    if read_journal(journal_path(run.rollouts)).seal is None:
        return None
    rollouts, marked = Counter[int](), Counter[int]()
    for _, row in read_rows(run.rollouts, Rollout):
        rollouts[row.step] += 1
        marked[row.step] += bool(row.reflection)
    buckets = [
        MarkerBucket(
            first_step=first,
            last_step=last,
            rollouts=sum(rollouts[step] for step in range(first, last + 1)),
            marked=sum(marked[step] for step in range(first, last + 1)),
        )
        for first, last in step_buckets(plan)
    ]
    return TrainingMarkers(
        arm=arm,
        seed=seed,
        rollouts=rollouts.total(),
        marked=marked.total(),
        buckets=tuple(bucket for bucket in buckets if bucket.rollouts),
    )


def _markers(setting: Setting, answers: Answers) -> SideMarkers:
    found = {key: reflection_markers(row.completion) for key, row in answers.rows.items()}
    counts = Counter(marker for markers in found.values() for marker in markers)
    samples = range(setting.plan.evaluation.samples)
    order = [(prompt, sample) for prompt in setting.prompts for sample in samples]
    marked = [bool(found[prompt.prompt_id, sample]) for prompt, sample in order]
    return SideMarkers(
        answers=answers.name,
        n=len(answers.rows),
        marked=sum(marked),
        markers=dict(sorted(counts.items())),
        accuracy=tuple(_accuracy(setting, answers, m, order, marked) for m in METRICS),
    )


def _accuracy(
    setting: Setting,
    answers: Answers,
    metric: Metric,
    order: Sequence[tuple[Prompt, int]],
    marked: Sequence[bool],
) -> MarkedAccuracy:
    rows = [answers.rows[prompt.prompt_id, sample] for prompt, sample in order]
    correct = [getattr(row, metric) == "correct" for row in rows]
    questions = [normalised(prompt.question) for prompt, _ in order]
    found = compare_groups(correct, marked, questions, setting.plan.analysis.confidence)
    bounds = found.interval
    return MarkedAccuracy(
        metric=metric,
        marked=_group(found.marked),
        unmarked=_group(found.unmarked),
        difference_points=None if found.difference is None else 100 * found.difference,
        interval_points=None if bounds is None else (100 * bounds.low, 100 * bounds.high),
    )


def _group(rate: GroupRate) -> GroupAccuracy:
    return GroupAccuracy(
        answers=rate.answers,
        questions=rate.questions,
        correct=rate.correct,
        accuracy=rate.rate,
        interval=None if rate.low is None or rate.high is None else (rate.low, rate.high),
    )
