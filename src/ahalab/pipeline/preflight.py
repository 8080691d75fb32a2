"""Pre-flight: what can be measured before the first step, with the model.

It measures in seconds what would make hours worthless. It writes nothing into the results:
a plan that it refuses is mended and begins afresh.
"""

from __future__ import annotations

import dataclasses
import gc
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
from ahalab.records.base import digest
from ahalab.records.plan import Plan
from ahalab.records.preflight import BaseProbe, MemoryEstimate, Preflight, PreflightCheck
from ahalab.records.prompt import Prompt
from ahalab.scoring.answers import score_answer
from ahalab.scoring.arms import resolve_arm
from ahalab.scoring.worker import row_decider
from ahalab.store.layout import StudyPaths
from ahalab.store.memory import available_bytes, resident_bytes
from ahalab.store.models import end_ids, load_model, quiet_libraries, resolve_model
from ahalab.tasks.generation import completion_of
from ahalab.tasks.gym import scores_by_itself
from ahalab.tasks.library_loop import generate_whole
from ahalab.tasks.prepare import DrawnPrompts, present_prompts
from ahalab.tasks.questions import asked_of, scoring_task
from ahalab.tasks.render import load_tokenizer
from ahalab.tasks.rewards import with_own_rewards

PROBE_PROMPTS = 8
PROBE_SAMPLES = 2
PROBE_SECONDS = 60.0  # a long answer on a slow machine is given up, and told as such


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
