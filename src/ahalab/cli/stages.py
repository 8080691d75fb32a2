"""`ahalab run`, `train`, `evaluate`, `replay`: what trains and generates."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ahalab.cli.analysis import tell_unsealed
from ahalab.cli.options import (
    RESULTS,
    ForceOption,
    Format,
    FormatOption,
    JobsOption,
    OutOption,
    QuietOption,
    StudyArgument,
    cores,
)

if TYPE_CHECKING:
    from ahalab.pipeline.preflight import Setting
    from ahalab.records.plan import Plan
    from ahalab.records.run import RunRecord
    from ahalab.records.step import Step
    from ahalab.store.layout import RunPaths, StudyPaths

BatchOption = Annotated[
    int | None,
    typer.Option(
        min=1, help="Questions at once, where the plan leaves it open (default: by memory)."
    ),
]
ProcessesOption = Annotated[
    int, typer.Option(min=1, hidden=True, help="Evaluations that share this machine.")
]
CellOption = Annotated[
    list[str] | None,
    typer.Option("--cell", help="base, floor or arms/ARM/seed-S; may be repeated (default: all)."),
]


def run(
    study: StudyArgument,
    out: OutOption = RESULTS,
    jobs: JobsOption = None,
    force: ForceOption = False,
) -> None:
    """Run a study: train, evaluate, analyze, report. Resumes; skips what is current."""
    from ahalab.cli.output import print_verdicts, say
    from ahalab.pipeline.clearance import clear, due, preflight_apart
    from ahalab.pipeline.inputs import check_inputs, check_own_rewards
    from ahalab.pipeline.run import run_study
    from ahalab.pipeline.study import open_study
    from ahalab.store.versions import require_train_extra
    from ahalab.tasks.rewards import reward_folders

    plan, paths = open_study(study, out)
    check_inputs(plan, paths)
    code = reward_folders(study)
    check_own_rewards(plan, code)
    side_by_side = jobs or cores()
    if due(plan, paths):
        require_train_extra()
        say("pre-flight: prompts, base, adapter, memory, arms")
        found = preflight_apart(study, out, plan, paths, side_by_side)
        clear(found, paths, force=force, say=say)
    ran = run_study(plan, paths, side_by_side, say, code)
    print_verdicts(ran.comparison)
    if not ran.did_something:
        say(f"Nothing to do: {paths.root} is complete, current and sealed.")
    say(f"Report: {ran.report}\nCheck it: ahalab verify {paths.root}")


def train(
    study: StudyArgument,
    arm: Annotated[str, typer.Option(help="One of the plan's arms.")],
    seed: Annotated[int, typer.Option(help="One of the plan's seeds.")],
    like: Annotated[
        Path | None,
        typer.Option(help="A pilot's run folder: same prompts, order and configuration."),
    ] = None,
    out: OutOption = RESULTS,
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Train one arm under one seed. Resumes from the last sound checkpoint."""
    from ahalab.errors import PlanError
    from ahalab.pipeline.preflight import Setting
    from ahalab.pipeline.study import open_study
    from ahalab.pipeline.training_progress import TrainingProgress
    from ahalab.plan.cells import run_cell
    from ahalab.store.models import resolve_model
    from ahalab.store.versions import require_train_extra
    from ahalab.tasks.places import run_paths
    from ahalab.tasks.rewards import reward_folders, with_own_rewards
    from ahalab.train.arm import arm_of, train_arm
    from ahalab.train.pilot import load_pilot
    from ahalab.train.ranks import join

    plan, paths = open_study(study, out)
    code = reward_folders(study)
    with_own_rewards(plan, arm_of(plan, arm), code)
    if seed not in plan.seeds:
        raise PlanError(
            f"--seed: expected one of the plan's seeds {list(plan.seeds)}, found {seed}."
        )
    require_train_extra()
    pilot = load_pilot(like) if like else None
    if pilot is not None:  # before anything is frozen under this plan
        pilot.require_same_configuration(plan, seed)
    model = resolve_model(plan.model)
    ranks = join(plan)
    if ranks.first:
        setting = Setting(code=code, attack_own=False, pilot=pilot.study if pilot else None)
        _make_ready(plan, paths, model, setting, force=force)
    ranks.wait()
    steps = int(plan.grpo["max_steps"])
    cell = run_cell(arm, seed)
    with TrainingProgress(steps, show=not quiet and ranks.first) as progress:

        def on_step(step: Step) -> None:
            progress.on_step(cell.name, step)

        record = train_arm(plan, paths, cell, pilot=pilot, on_step=on_step, ranks=ranks)
    ranks.leave()
    if ranks.first:
        _tell_trained(record, run_paths(paths, cell))


def _make_ready(
    plan: Plan, paths: StudyPaths, model: Path, setting: Setting, *, force: bool
) -> None:
    """Pass pre-flight where it is due, then fix the plan and its prompts."""
    from ahalab.cli.output import say
    from ahalab.pipeline.clearance import clear, due
    from ahalab.pipeline.preflight import preflight
    from ahalab.pipeline.study import freeze
    from ahalab.tasks.prepare import prepare_prompts

    if due(plan, paths):
        clear(preflight(plan, paths, setting), paths, force=force, say=say)
    freeze(plan, paths, setting.code)
    prepare_prompts(plan, paths, model, setting.pilot)


def _tell_trained(record: RunRecord | None, run: RunPaths) -> None:
    from ahalab.cli.output import say
    from ahalab.store.reading import changed_on_resume

    if record is None:
        say(f"Nothing to do: {run.folder} is complete.")
        return
    for alarm in record.alarms:
        say(f"alarm {alarm.name}: {alarm.evidence}. Try: {alarm.remedy}.")
    if changed := changed_on_resume((run.rollouts, run.steps, run.validation)):
        say(f"note: {changed}. Was it resumed on another machine, or with other versions?")
    written = f"{record.rollouts_written} rollouts in {run.folder}"
    say(f"Trained {record.arm}, seed {record.seed}: {written}")


def evaluate(
    study: StudyArgument,
    cell: CellOption = None,
    limit: Annotated[
        int | None,
        typer.Option(help="A partial look: so many questions, drawn by seed; no evidence."),
    ] = None,
    templates: Annotated[
        bool,
        typer.Option(
            "--templates",
            help="Instead: the base alone under several prompt templates, on up to 100 questions "
            "(or --limit) that are not the evaluation's.",
        ),
    ] = False,
    batch_size: BatchOption = None,
    processes: ProcessesOption = 1,
    out: OutOption = RESULTS,
    output: FormatOption = Format.text,
    quiet: QuietOption = False,
) -> None:
    """Let base and adapters answer under one protocol. Resumes where it stopped."""
    from ahalab.cli.output import print_partial, say
    from ahalab.cli.templates import evaluate_templates
    from ahalab.errors import InputError
    from ahalab.evaluate.adapter_check import told_nothing_learned
    from ahalab.evaluate.backends.choice import require_backend
    from ahalab.evaluate.pair import Asked, Evaluation
    from ahalab.evaluate.partial import count_partial
    from ahalab.pipeline.progress import StageProgress
    from ahalab.pipeline.study import open_study
    from ahalab.pipeline.templates import AskedTemplates
    from ahalab.plan.cells import answer_cells, find_cell

    if templates:
        if cell:
            raise InputError("--templates: expected no --cell beside it; the base alone answers.")
        evaluate_templates(study, out, AskedTemplates(limit, batch_size, quiet), output)
        return
    if output is Format.json:
        raise InputError("--format: expected --templates with json, found an evaluation.")
    plan, paths = open_study(study, out)
    cells = [find_cell(plan, name) for name in cell] if cell else answer_cells(plan)
    require_backend(plan)
    stage = Evaluation(plan, paths, Asked(limit, batch_size, processes))
    total, there = stage.answers_of(cells), stage.answers_there(cells)
    with StageProgress("evaluate", total, "answers", there, show=not quiet) as progress:
        done = stage.evaluate(cells, progress.advance)
    stage.check_base()
    if limit is not None:
        print_partial([count_partial(answers) for answers in done], limit, paths)
        return
    for one in cells:
        if told := told_nothing_learned(paths, one):
            say(told)
    names = [answers.target.name.removesuffix("/answers") for answers in done]
    say(f"Evaluated {', '.join(names)} in {paths.root}")


def replay(
    study: StudyArgument,
    cell: CellOption = None,
    to: Annotated[
        Path | None,
        typer.Option("--to", help="Folder for the replay (default: the study's own)."),
    ] = None,
    generate_only: Annotated[bool, typer.Option(hidden=True, help="Compare nothing yet.")] = False,
    out: OutOption = RESULTS,
    output: FormatOption = Format.text,
    quiet: QuietOption = False,
) -> None:
    """Answer again from saved weights; compare the verdicts."""
    from ahalab.analyze.replay import require_replay
    from ahalab.cli.replay import print_replay
    from ahalab.evaluate.backends.choice import require_backend
    from ahalab.evaluate.pair import Asked, Evaluation
    from ahalab.pipeline.progress import StageProgress
    from ahalab.pipeline.replay import conclude, replayed_cells, replayed_into
    from ahalab.pipeline.study import open_study
    from ahalab.records.base import encode

    plan, paths = open_study(study, out)
    cells = replayed_cells(plan, paths, cell or ())
    require_backend(plan)
    into = replayed_into(paths, to)
    stage = Evaluation(plan, paths, Asked(into=into))
    total, there = stage.answers_of(cells), stage.answers_there(cells, "replay/")
    with StageProgress("replay", total, "answers", there, show=not quiet) as progress:
        stage.evaluate(cells, progress.advance, under="replay/")
    stage.check_base()
    if generate_only:
        return
    found = conclude(plan, paths, into)
    if output is Format.json:
        typer.echo(encode(found).decode())
    else:
        print_replay(found)
    tell_unsealed(paths)
    require_replay(found, into.root / "replay")
