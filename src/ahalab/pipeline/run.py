"""`ahalab run`: prompts, training, evaluation, replay, analysis, report, seal."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ahalab.analyze.compare import analyze
from ahalab.analyze.protocols import recorded_exceptions
from ahalab.analyze.replay import read_replay, require_replay
from ahalab.evaluate.backends.choice import require_backend
from ahalab.evaluate.batch_size import batch_size_of
from ahalab.evaluate.pair import answers_present
from ahalab.pipeline.cards import renew_cards
from ahalab.pipeline.progress import StageProgress
from ahalab.pipeline.study import freeze, read_manifest, refuse_tampered
from ahalab.pipeline.training_progress import TrainingProgress
from ahalab.pipeline.watch import Watch
from ahalab.pipeline.workers import Job, run_jobs
from ahalab.plan.cells import BASE, Cell, answer_cells, pilot_of, rounds, training_cells
from ahalab.plan.endpoint import backend_name
from ahalab.records.base import digest
from ahalab.records.comparison import Comparison
from ahalab.records.plan import Plan
from ahalab.report.html import write_report
from ahalab.store.journal import read_journal
from ahalab.store.layout import StudyPaths
from ahalab.store.manifest import evidence_entries, write_manifest
from ahalab.store.models import resolve_model
from ahalab.store.reading import journal_path
from ahalab.store.versions import require_train_extra
from ahalab.tasks.places import answer_paths
from ahalab.tasks.prepare import prepare_prompts, prompts_ready, read_prompts
from ahalab.train.arm import run_complete

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Ran:
    """What a run of the stages came to."""

    did_something: bool
    comparison: Comparison
    report: Path


def is_current(plan: Plan, paths: StudyPaths) -> bool:
    """Say whether the study is complete and sealed as it lies there.

    Raises:
        InputError: It was sealed, and evidence was changed since.
    """
    manifest = read_manifest(paths)
    if manifest is None or manifest.plan_digest != digest(plan):
        return False
    refuse_tampered(manifest, paths)
    complete = all(answers_present(paths, cell) for cell in answer_cells(plan))
    same = manifest.evidence == evidence_entries(paths.root)
    return complete and same and all((paths.root / e.path).is_file() for e in manifest.derived)


def run_study(plan: Plan, paths: StudyPaths, jobs: int, say: Say, code: Sequence[Path] = ()) -> Ran:
    """Bring a study to its report, doing only what is not done.

    Args:
        plan: The plan, pinned.
        paths: The study.
        jobs: Processes side by side.
        say: Told each stage.
        code: Where the code of own rewards is looked for first.

    Raises:
        AhaLabError: A stage failed; the same command resumes.
    """
    if is_current(plan, paths):
        return Ran(False, _analyze(plan, paths), paths.report)
    freeze(plan, paths, code)
    paths.manifest.unlink(missing_ok=True)  # the study is open again until it is sealed
    if not prompts_ready(plan, paths):
        require_train_extra()
        say("prompts: drawing and rendering")
        prepare_prompts(plan, paths, resolve_model(plan.model))
    _train(plan, paths, jobs)
    _evaluate(plan, paths, jobs)
    say("analysis: comparing paired answers")
    comparison = _analyze(plan, paths)
    say("report: drawing")
    seal_study(plan, paths)
    # A kill between a run's record and its clean-up leaves them; nothing resumes from them now.
    shutil.rmtree(paths.work / "checkpoints", ignore_errors=True)
    return Ran(True, comparison, paths.report)


def seal_study(plan: Plan, paths: StudyPaths) -> None:
    """Write report and cards over the evidence as it lies there, and the manifest, last."""
    write_report(paths)
    renew_cards(plan, paths)
    write_manifest(paths, digest(plan))


def _train(plan: Plan, paths: StudyPaths, jobs: int) -> None:
    cells = training_cells(plan)
    todo = [c for c in cells if not run_complete(plan, paths, c)]
    if not todo:
        return
    require_train_extra()
    steps = int(plan.grpo["max_steps"])
    work = [_training_job(plan, paths, cell) for cell in todo]

    watch = Watch(paths, cells)
    watch.look()
    with TrainingProgress(steps * len(cells), watch.done) as progress:

        def on_poll() -> None:
            watch.look()
            progress.update(watch.running, watch.done)

        run_jobs(work, max(1, jobs // plan.training.processes), on_poll)


def _training_job(plan: Plan, paths: StudyPaths, cell: Cell) -> Job:
    """Return the command that trains a cell; every arm follows the pilot of its seed."""
    pilot = pilot_of(plan, cell)
    like = ("--like", str(paths.root / pilot.name)) if pilot else ()
    return Job(
        cell.name,
        (
            "train",
            str(paths.root),
            "--arm",
            str(cell.arm),
            "--seed",
            str(cell.seed),
            *like,
            "--quiet",
        ),
        paths.work / "logs" / f"train-{cell.name.replace('/', '-')}.log",
        plan.model.threads,
        after=pilot.name if pilot else None,
        processes=plan.training.processes,
    )


def _evaluate(plan: Plan, paths: StudyPaths, jobs: int) -> None:
    cells: list[tuple[str, Cell]] = [("evaluate", cell) for cell in answer_cells(plan)]
    if plan.evaluation.replay:
        cells += [("replay", cell) for cell in (BASE, *training_cells(plan))]

    def under(stage: str) -> str:
        return "replay/" if stage == "replay" else ""

    total = len(read_prompts(paths, "eval")) * plan.evaluation.samples * len(cells)

    def done() -> int:
        return sum(_rows(answer_paths(paths, cell, under(stage)).answers) for stage, cell in cells)

    for stage in ("evaluate", "replay"):
        todo = [
            together
            for together in rounds(plan, [cell for s, cell in cells if s == stage])
            if not all(answers_present(paths, cell, under(stage)) for cell in together)
        ]
        if not todo:
            continue
        require_backend(plan)
        # An engine takes the whole GPU, and an endpoint's concurrency is the plan's.
        side_by_side = min(jobs if backend_name(plan) == "transformers" else 1, len(todo))
        work = [
            _evaluation_job(plan, paths, stage, todo[number::side_by_side], side_by_side)
            for number in range(side_by_side)
        ]
        with StageProgress(stage, total, "answers", done()) as progress:
            run_jobs(work, jobs, lambda: progress.update(done()))


def _evaluation_job(
    plan: Plan, paths: StudyPaths, stage: str, todo: list[tuple[Cell, ...]], side_by_side: int
) -> Job:
    """Return the command that evaluates or replays some rounds, by the first cell of each."""
    cells = [part for together in todo for part in ("--cell", together[0].name)]
    later = ("--generate-only",)  # a replay is compared once every set is there
    more = _batch_size(plan, paths, side_by_side) if stage == "evaluate" else later
    name = f"{stage}-{todo[0][0].name.replace('/', '-')}"
    return Job(
        name,
        (stage, str(paths.root), *cells, *more, "--quiet"),
        paths.work / "logs" / f"{name}.log",
        plan.model.threads,
    )


def _batch_size(plan: Plan, paths: StudyPaths, side_by_side: int) -> tuple[str, ...]:
    """Return the option that gives every process one batch size, where the plan leaves it open."""
    if plan.evaluation.batch_size is not None:
        return ()
    folder, prompts = resolve_model(plan.model), read_prompts(paths, "eval")
    return "--batch-size", str(batch_size_of(plan, paths, folder, prompts, (None, side_by_side)))


def _analyze(plan: Plan, paths: StudyPaths) -> Comparison:
    """Analyse, with the exceptions that were recorded earlier.

    Raises:
        CheckFailedError: There is a replay that speaks against the evaluation.
    """
    comparison, _ = analyze(plan, paths, recorded_exceptions(paths))
    replay = read_replay(paths)
    if replay is not None:
        require_replay(replay, paths.root / "replay")
    return comparison


def _rows(path: Path) -> int:
    return read_journal(journal_path(path)).rows
