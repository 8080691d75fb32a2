"""What can be checked before the first step: the inputs without a model, then pre-flight with it.

Pre-flight measures in seconds what would make hours worthless. It writes nothing into the results:
a plan that it refuses is mended and begins afresh.
"""

from __future__ import annotations

import dataclasses
import gc
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from ahalab.errors import CheckFailedError, InputError, RecordError
from ahalab.pipeline.findings import (
    adapter_fits,
    arms_survive,
    base_answers,
    gold_is_all,
    memory_fits,
    prompts_fit,
    require_device,
    splits_apart,
    trackers_there,
    turn_ends,
    words_apart,
)
from ahalab.pipeline.workers import Job, JobError, run_jobs
from ahalab.plain_files import read_plain
from ahalab.plan.cells import training_cells
from ahalab.plan.schedule import generation_batch
from ahalab.records.base import decode_file, digest, encode_pretty
from ahalab.records.plan import Plan
from ahalab.records.preflight import BaseProbe, MemoryEstimate, Preflight, PreflightCheck
from ahalab.records.prompt import Prompt
from ahalab.scoring.answers import score_answer
from ahalab.scoring.arms import resolve_arm
from ahalab.scoring.worker import row_decider
from ahalab.store.durable import replace_file
from ahalab.store.journal import read_journal
from ahalab.store.layout import StudyPaths
from ahalab.store.memory import available_bytes, resident_bytes
from ahalab.store.models import ORGANISM, end_ids, load_model, quiet_libraries, resolve_model
from ahalab.store.reading import journal_path
from ahalab.tasks.generation import completion_of
from ahalab.tasks.gym import scores_by_itself
from ahalab.tasks.library_loop import generate_whole
from ahalab.tasks.prepare import DrawnPrompts, present_prompts, prompts_ready, select_questions
from ahalab.tasks.questions import asked_of, on_hub, scoring_task
from ahalab.tasks.render import load_tokenizer
from ahalab.tasks.rewards import with_own_rewards

PROBE_PROMPTS = 8
PROBE_SAMPLES = 2
PROBE_SECONDS = 60.0  # a long answer on a slow machine is given up, and told as such

Say = Callable[[str], None]


def check_inputs(plan: Plan, paths: StudyPaths) -> list[str]:
    """Check that the model and the questions of a plan are there and sound; downloads nothing.

    A study whose prompts are drawn needs neither any more, so nothing is checked again.

    Returns:
        What could not be checked, as it lies on a hub.

    Raises:
        InputError: The model folder is missing; a task row is malformed; the splits overlap; there
            are fewer training questions than a generation batch needs.
    """
    if prompts_ready(plan, paths):
        return []
    unchecked = []
    if plan.model.id == ORGANISM or not _is_hub_id(plan.model.id):
        resolve_model(plan.model)
    else:
        unchecked.append(f"model {plan.model.id}: fetched from the hub when the study runs")
    if on_hub(plan.task):
        dataset = "gsm8k" if plan.task.name == "gsm8k" else plan.task.dataset
        unchecked.append(f"task {dataset}: read from the hub when the study runs")
        return unchecked
    drawn, _ = select_questions(plan)
    needed = generation_batch(plan) // int(plan.grpo["num_generations"])
    if len(drawn["train"]) < needed:
        raise InputError(
            f"task: expected at least the {needed} training questions of one generation batch, "
            f"found {len(drawn['train'])}. Add questions, or take a smaller batch."
        )
    return unchecked


def check_own_rewards(plan: Plan, code: Sequence[Path]) -> None:
    """Load every own reward of a plan, so that none is missing after an hour of training.

    Raises:
        InputError: One can't be loaded; see `with_own_rewards`.
    """
    for arm in plan.arms:
        with_own_rewards(plan, resolve_arm(arm.name, arm.components), code)


def _is_hub_id(name: str) -> bool:
    """Say whether a model id can only be a hub's `owner/name`."""
    local = name.startswith((".", "/", "~")) or Path(name).expanduser().is_dir()
    return name.count("/") == 1 and not local


@dataclass(frozen=True, slots=True)
class Setting:
    """Under which circumstances a study would train."""

    processes: int = 1  # training processes side by side
    code: Sequence[Path] = ()  # where the code of own rewards is looked for first
    attack_own: bool = True  # own rewards are called with attacks; off where training follows in
    # this very process, since such code may keep a state
    pilot: StudyPaths | None = None


def preflight(plan: Plan, paths: StudyPaths, setting: Setting) -> Preflight:
    """Measure what would make the runs of a plan worthless; writes nothing.

    Raises:
        InputError: The model, the questions or a reward is not what it must be.
        MissingError: The model can't be fetched.
    """
    import torch

    import ahalab.evaluate.backends.transformers
    import ahalab.train.footprint  # noqa: F401 - both are slow to import, and not what is measured
    from ahalab.train.trackers import missing_trackers, wanted_trackers

    began = time.monotonic()
    require_device(plan.model.device, torch.cuda.is_available())
    folder = resolve_model(plan.model)
    drawn = present_prompts(plan, paths, folder, setting.pilot)
    checks, probe, memory = _with_the_model(plan, folder, drawn, setting.processes)
    loaded = []
    for spec in plan.arms:
        arm = resolve_arm(spec.name, spec.components)
        own = with_own_rewards(plan, arm, setting.code) if setting.attack_own else arm
        loaded.append((spec, own))
    checks += arms_survive(plan, loaded)
    if plan.task.name == "reasoning_gym":
        checks.append(
            gold_is_all(
                str(plan.task.dataset), scoring_task(plan.task), scores_by_itself(plan.task)
            )
        )
    checks.append(trackers_there(wanted_trackers(plan), missing_trackers(plan)))
    return Preflight(
        plan_digest=digest(plan),
        checks=tuple(checks),
        probe=probe,
        memory=memory,
        forced=False,
        seconds=round(time.monotonic() - began, 2),
    )


def _with_the_model(
    plan: Plan, folder: Path, drawn: DrawnPrompts, processes: int
) -> tuple[list[PreflightCheck], BaseProbe, MemoryEstimate]:
    """Run the checks that need the base in memory, and let go of it."""
    import torch

    from ahalab.train.footprint import memory_parts
    from ahalab.train.probe import after_assistant, fit_adapter

    on_gpu = plan.model.device == "cuda"
    held = resident_bytes()
    free = torch.cuda.mem_get_info()[0] if on_gpu else available_bytes()
    tokenizer = load_tokenizer(folder)
    model = load_model(plan.model, folder)
    ends = end_ids(model, tokenizer)
    config = model.config.get_text_config()
    probe = _probe(plan, model, tokenizer, drawn.prompts["train"])
    written = after_assistant(tokenizer)
    fit = fit_adapter(model, plan)
    checks = [
        prompts_fit(plan, drawn, getattr(config, "max_position_embeddings", None)),
        splits_apart(drawn),
        words_apart(drawn),
        turn_ends(
            [tokenizer.decode([i]) for i in written],
            [tokenizer.decode([i]) for i in sorted(ends)],
            bool(ends & set(written)),
            probe,
        ),
        *base_answers(probe),
        adapter_fits(fit.layers, fit.parameters, fit.unmatched, fit.names, fit.fault),
    ]
    longest = max(prompt.prompt_tokens for prompt in drawn.prompts["train"])
    parts = memory_parts(plan, model, fit, longest, 0 if on_gpu else held)
    memory = MemoryEstimate(
        parts=parts,
        bytes=sum(part.bytes for part in parts),
        processes=processes,
        # What this process holds already counts as available: it is among the parts.
        available_bytes=None if free is None else free + (0 if on_gpu else held),
    )
    del model
    gc.collect()
    if on_gpu:
        torch.cuda.empty_cache()
    return [*checks, memory_fits(memory)], probe, memory


def _probe(plan: Plan, model: Any, tokenizer: Any, prompts: Sequence[Prompt]) -> BaseProbe:
    """Let the base answer a few training prompts as in training, and score what it writes."""
    import torch
    from transformers import GenerationConfig

    from ahalab.train.probe import training_generation

    ends = end_ids(model, tokenizer)
    fields = training_generation(plan, ends, int(tokenizer.pad_token_id), PROBE_SECONDS)
    few = prompts[:: max(1, len(prompts) // PROBE_PROMPTS)][:PROBE_PROMPTS]
    asked = [prompt for prompt in few for _ in range(PROBE_SAMPLES)]
    torch.set_num_threads(plan.model.threads)
    torch.manual_seed(plan.seeds[0])
    generation = GenerationConfig(**fields)
    # What the model's own configuration sets must not reach `generate` (TRL_FACTS 6).
    model.eval().generation_config = generation
    began = time.monotonic()
    with quiet_libraries(), torch.inference_mode():
        written = generate_whole(model, [p.prompt_ids for p in asked], generation)
    completions = [completion_of(row, ends, tokenizer) for row in written]
    seconds = time.monotonic() - began
    limit = int(plan.grpo["max_completion_length"])
    unended = [c.ids for c in completions if c.finish == "length" and c.ids is not None]
    question = asked_of(plan.task, plan.answer_format)
    decider = row_decider(question.task)
    scores = [
        score_answer(
            c.text, p.gold, c.finish, dataclasses.replace(question, prompt=p.question), decider
        )
        for p, c in zip(asked, completions, strict=True)
    ]
    return BaseProbe(
        prompts=len(few),
        samples=PROBE_SAMPLES,
        max_new_tokens=limit,
        cut=sum(len(ids) >= limit for ids in unended),
        unfinished=sum(len(ids) < limit for ids in unended),
        strict=sum(score.strict.outcome == "correct" for score in scores),
        lenient=sum(score.lenient.outcome == "correct" for score in scores),
        seconds=round(seconds, 2),
    )


def preflight_apart(study: Path, out: Path, plan: Plan, paths: StudyPaths, jobs: int) -> Preflight:
    """Measure in a process of its own, so that its torch and the model are gone with it.

    Raises:
        JobError: It could not be measured.
    """
    path = record_path(paths)
    path.unlink(missing_ok=True)
    arguments = ("preflight", str(study), "--out", str(out), "--jobs", str(jobs))
    log = paths.work / "logs" / "preflight.log"
    try:
        run_jobs([Job("pre-flight", arguments, log, plan.model.threads)], 1, lambda: None)
    except JobError as error:
        if error.exit_code != CheckFailedError.exit_code or not path.is_file():
            raise
    return read_preflight(paths)


def record_path(paths: StudyPaths) -> Path:
    """Return where the findings of pre-flight lie: beside the checkpoints, not among evidence."""
    return paths.work / "preflight.json"


def keep(found: Preflight, paths: StudyPaths) -> None:
    """Write the findings."""
    replace_file(record_path(paths), encode_pretty(found))


def read_preflight(paths: StudyPaths) -> Preflight:
    """Return the findings that were kept.

    Raises:
        RecordError: They are malformed.
    """
    path = record_path(paths)
    return decode_file(read_plain(path), Preflight, str(path))


def due(plan: Plan, paths: StudyPaths) -> bool:
    """Say whether pre-flight is to come: nothing was trained, and it did not pass for this plan."""
    if os.environ.get("RANK", "0") != "0":  # of several processes of one run, the first one looks
        return False
    for cell in training_cells(plan):
        run = paths.run(str(cell.arm), int(cell.seed or 0))
        if run.record.is_file() or read_journal(journal_path(run.steps)).rows:
            return False
    if not record_path(paths).is_file():
        return True
    try:
        found = read_preflight(paths)
    except RecordError:  # of another version: it is no evidence, and is made again
        return True
    return found.plan_digest != digest(plan) or bool(found.refused and not found.forced)


def clear(found: Preflight, paths: StudyPaths, *, force: bool, say: Say) -> None:
    """Tell what was found, keep it, and refuse to go on over a refusal unless forced.

    Raises:
        CheckFailedError: A run would be worthless, with what to do.
    """
    standing = [c for c in found.refused if not (force and c.forcible)]
    found = msgspec.structs.replace(found, forced=bool(found.refused) and not standing)
    keep(found, paths)
    for line in lines(found):
        say(line)
    if standing:
        forcible = all(check.forcible for check in standing)
        raise CheckFailedError(
            f"pre-flight: {'; '.join(f'{c.name}: {c.found}' for c in standing)}. "
            f"To do: {'; '.join(c.remedy for c in standing)}"
            + (". `--force` goes on all the same." if forcible else ".")
        )


def lines(found: Preflight) -> list[str]:
    """Return what a person has to know: one line per check that is not in order, then a summary."""
    told = [
        f"pre-flight: {check.level}, {check.name}: {check.found}"
        + (f". To do: {check.remedy}." if check.remedy else ".")
        for check in found.checks
        if check.level != "ok"
    ]
    return [*told, f"pre-flight: {summary(found)}"]


def summary(found: Preflight) -> str:
    """Return the counts of one pre-flight on one line."""
    levels: list[str] = [check.level for check in found.checks]
    counts = [f"{levels.count('ok')} of {len(levels)} checks in order"]
    for level, named in (("note", "noted"), ("warning", "warned of"), ("refused", "refused")):
        if levels.count(level):
            counts.append(f"{levels.count(level)} {named}")
    return f"{', '.join(counts)} ({found.seconds:.1f} s)"
