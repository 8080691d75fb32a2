"""Reads what the report prints: every file of a study, checked to belong to one plan."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ahalab.errors import InputError, PlanError
from ahalab.plain_files import read_plain
from ahalab.plan.load import load_plan
from ahalab.records.answer import Protocol, comparable_digest
from ahalab.records.base import Record, decode_file, digest
from ahalab.records.comparison import Ablation, ChangedResponses, Comparison
from ahalab.records.diagnostics import Diagnostics
from ahalab.records.manifest import Claims
from ahalab.records.plan import Plan
from ahalab.records.prompt import Selection
from ahalab.records.reflection import Reflection
from ahalab.records.replay import Replay
from ahalab.records.run import RunRecord
from ahalab.records.step import Step
from ahalab.records.templates import TemplateComparison
from ahalab.store.layout import StudyPaths
from ahalab.store.reading import read_rows

R = TypeVar("R", bound=Record)


@dataclass(frozen=True, slots=True)
class RunSource:
    """One training run: what it was, what it did."""

    arm: str
    seed: int
    record: RunRecord
    steps: tuple[Step, ...]
    diagnostics: Diagnostics | None  # None: not summarised


@dataclass(frozen=True, slots=True)
class Study:
    """Everything that one report is made from."""

    plan: Plan
    plan_digest: str
    plan_text: str
    comparison: Comparison
    changed: ChangedResponses
    claims: Claims
    ablation: Ablation | None  # None: not made
    selection: Selection | None
    runs: tuple[RunSource, ...]  # in plan order; runs that were not finished are absent
    protocol: Protocol | None  # the base's
    unequal: tuple[str, ...]  # answer sets made under another protocol than the comparison's
    replay: Replay | None = None  # None: nothing was generated again
    templates: TemplateComparison | None = None  # None: not tried
    reflection: Reflection | None = None  # None: `ahalab reflect` was not asked


def read_study(paths: StudyPaths) -> Study:
    """Read a study for its report.

    Raises:
        InputError: A file that the report rests on is missing.
        RecordError: A file is malformed.
        PlanError: A file was made under another plan.
    """
    plan = load_plan(paths.plan)
    plan_digest = digest(plan)
    comparison = _required(paths.comparison, Comparison, "analyze")
    changed = _required(paths.changed, ChangedResponses, "analyze")
    claims = _required(paths.claims, Claims, "analyze")
    ablation = _optional(paths.ablation, Ablation)
    selection = _optional(paths.prompt_report, Selection)
    replay = _optional(paths.replay, Replay)
    templates = _optional(paths.template_comparison, TemplateComparison)
    reflection = _optional(paths.reflection, Reflection)
    for path, record in (
        (paths.comparison, comparison),
        (paths.changed, changed),
        (paths.claims, claims),
        (paths.ablation, ablation),
        (paths.prompt_report, selection),
        (paths.replay, replay),
        (paths.template_comparison, templates),
        (paths.reflection, reflection),
    ):
        if record is not None:
            _same_plan(path, record.plan_digest, plan_digest)
    return Study(
        plan=plan,
        plan_digest=plan_digest,
        plan_text=read_plain(paths.plan).decode("utf-8"),
        comparison=comparison,
        changed=changed,
        claims=claims,
        ablation=ablation,
        selection=selection,
        runs=_runs(paths, plan, plan_digest),
        protocol=_optional(paths.base_answers().protocol, Protocol),
        unequal=_unequal(paths, plan, comparison.protocol_digest),
        replay=replay,
        templates=templates,
        reflection=reflection,
    )


def _required(path: Path, kind: type[R], command: str) -> R:
    record = _optional(path, kind)
    if record is None:
        raise InputError(
            f"{path}: expected a {kind.__name__} record, found no file. "
            f"Run `ahalab {command}` first."
        )
    return record


def _optional(path: Path, kind: type[R]) -> R | None:
    if not path.is_file():
        return None
    return decode_file(read_plain(path), kind, str(path))


def _same_plan(path: Path, found: str, expected: str) -> None:
    if found != expected:
        raise PlanError(
            f"{path}: expected plan_digest={expected} (study.yaml), found {found}. "
            "It was made under another plan; run `ahalab analyze` again."
        )


def _runs(paths: StudyPaths, plan: Plan, plan_digest: str) -> tuple[RunSource, ...]:
    runs = []
    for arm in plan.arms:
        for seed in plan.seeds:
            run = paths.run(arm.name, seed)
            record = _optional(run.record, RunRecord)
            if record is None:
                continue
            _same_plan(run.record, record.plan_digest, plan_digest)
            steps = tuple(row for _, row in read_rows(run.steps, Step))
            diagnostics = _optional(run.diagnostics, Diagnostics)
            runs.append(RunSource(arm.name, seed, record, steps, diagnostics))
    return tuple(runs)


def _unequal(paths: StudyPaths, plan: Plan, expected: str) -> tuple[str, ...]:
    sets = [paths.base_answers()]
    sets += [paths.answers(arm.name, seed) for arm in plan.arms for seed in plan.seeds]
    unequal = []
    for answers in sets:
        protocol = _optional(answers.protocol, Protocol)
        if protocol is not None and comparable_digest(protocol) != expected:
            unequal.append(answers.name)
    return tuple(unequal)
