"""One attempt at one run: from the last sound checkpoint to the last one."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from ahalab.errors import AlarmError, InputError
from ahalab.records.base import digest
from ahalab.records.plan import Plan
from ahalab.records.prompt import Prompt
from ahalab.records.rollout import Rollout
from ahalab.records.step import Step
from ahalab.scoring.arms import ArmDefinition
from ahalab.statistics.diagnostics import diagnose
from ahalab.store.base_tensors import fingerprint_base
from ahalab.store.fingerprint import (
    base_tensors,
    weights_digest,
)
from ahalab.store.layout import StudyPaths
from ahalab.store.models import (
    end_ids,
    has_experts,
    load_model,
    quiet_libraries,
    resolve_model,
)
from ahalab.store.reading import read_rows
from ahalab.tasks.prepare import read_prompts
from ahalab.tasks.questions import asked_of
from ahalab.tasks.render import load_tokenizer, messages
from ahalab.train.checkpoints import (
    Checkpoint,
    file_digests,
    folder_of,
    full_disk_told,
    last_sound,
    mark,
)
from ahalab.train.ranks import Ranks
from ahalab.train.reconcile import reconcile
from ahalab.train.trackers import attach, name_run
from ahalab.train.trl_compat import (
    grpo_config,
    lean_step_of,
    lora_config,
)
from ahalab.train.writers import RunWriters, open_writers, run_files, seal_left_open

if TYPE_CHECKING:
    from ahalab.train.validation import Validator

LEAST_STEPS_TO_STOP = 5  # an alarm raised from fewer steps is chance
Progress = Callable[[Step], None]


class Session:
    """One attempt at one run: what its parts share."""

    def __init__(
        self, plan: Plan, paths: StudyPaths, arm: ArmDefinition, seed: int, ranks: Ranks
    ) -> None:
        run = paths.run(arm.name, seed)
        self.ranks = ranks
        self.plan = plan
        self.paths = paths
        self.run = run
        self.arm = arm
        self.seed = seed
        self.plan_digest = digest(plan)
        self.model = resolve_model(plan.model)
        tensors = fingerprint_base(paths, self.model) if ranks.first else base_tensors(self.model)
        self.base_digest = weights_digest(tensors)
        self.prompts = read_prompts(paths, "train")
        self.files = run_files(plan, paths, run)
        self.checkpoints = paths.work / "checkpoints" / run.name
        with quiet_libraries():
            self.config = grpo_config(plan, seed, self.checkpoints)
            experts = has_experts(self.model)
        self.lean_step = lean_step_of(
            plan.training, self.config, experts=experts, processes=ranks.count
        )
        self.tokenizer = load_tokenizer(self.model)
        self.steps_planned = int(plan.grpo["max_steps"])
        self.trackers = paths.work / "trackers"

    def train(self, on_step: Progress) -> None:
        """Bring the run to its last checkpoint, from the last sound one.

        Raises:
            InputError: The base's weights are no longer those that the run began with, or the disk
                is full.
        """
        checkpoint = self._checkpoint()
        if checkpoint is not None and checkpoint.step == self.steps_planned:
            if self.ranks.first:
                seal_left_open(self.files, checkpoint.batches)
            return
        resume = str(folder_of(self.checkpoints, checkpoint.step)) if checkpoint else None
        with self._writers(checkpoint) as writers:
            trainer = self._trainer(writers, on_step)
            with quiet_libraries(), full_disk_told(self.checkpoints):
                trainer.train(resume_from_checkpoint=resume)
            for writer in writers.by_name().values() if writers else ():
                writer.seal()

    def _checkpoint(self) -> Checkpoint | None:
        """Return the checkpoint to go on from, and remove what nothing may pick up.

        Raises:
            InputError: It was made of another base.
            AlarmError: The run was stopped there.
        """
        found = None
        if self.ranks.first:
            found = last_sound(self.checkpoints, self.plan_digest, self.run.name)
            if found is not None and found.base_digest != self.base_digest:
                raise InputError(
                    f"{self.model}: expected the base {found.base_digest[:19]}... that "
                    f"{self.run.name} began with, found {self.base_digest[:19]}.... Restore its "
                    f"weights, or remove {self.checkpoints} to begin again."
                )
            if found is None or found.step < self.steps_planned:
                self._clear_unsound(found)
            if found is not None and found.step < self.steps_planned:
                self._stop_at_alarm()
        return self.ranks.from_first(found)

    @contextmanager
    def _writers(self, checkpoint: Checkpoint | None) -> Iterator[RunWriters | None]:
        """Open the row files in the first process; the others write nothing."""
        if not self.ranks.first:
            yield None
            return
        with open_writers(self.files, checkpoint.batches if checkpoint else None) as writers:
            yield writers

    def _vouch(self, writers: RunWriters, step: int) -> None:
        """Vouch for the checkpoint on disk and for the rows committed by now.

        Raises:
            InputError: The rows are not those that the trainer made.
            AlarmError: The run raises an alarm that the plan stops at.
        """
        self.reconciled(step)
        checkpoint = Checkpoint(
            plan_digest=self.plan_digest,
            run=self.run.name,
            base_digest=self.base_digest,
            step=step,
            batches={n: len(w.state.batches) for n, w in writers.by_name().items()},
            files=file_digests(folder_of(self.checkpoints, step)),
        )
        mark(self.checkpoints, checkpoint)
        self._stop_at_alarm()

    def _stop_at_alarm(self) -> None:
        """End a run that raises an alarm which the plan names.

        Raises:
            AlarmError: It does, with evidence and remedy.
        """
        if not self.plan.training.stop_on:
            return
        steps, rollouts = self._rows()
        if len(steps) < LEAST_STEPS_TO_STOP:
            return
        for alarm in diagnose(self.arm.name, self.seed, steps, rollouts, None).alarms:
            if alarm.name in self.plan.training.stop_on:
                raise AlarmError(
                    f"{self.run.name}, step {len(steps)}: stopped by the alarm {alarm.name}, which "
                    f"the plan's training.stop_on names: {alarm.evidence}. Try: {alarm.remedy}."
                )

    def reconciled(self, done: int) -> tuple[list[Step], list[Rollout]]:
        """Return the rows of so many steps, after comparing them with what the trainer did.

        Raises:
            InputError: See `reconcile`.
        """
        steps, rollouts = self._rows()
        reconcile(
            self.plan,
            steps,
            rollouts,
            done=done,
            prompt_tokens={p.prompt_id: p.prompt_tokens for p in self.prompts},
            place=self.run.rollouts,
        )
        return steps, rollouts

    def _rows(self) -> tuple[list[Step], list[Rollout]]:
        steps = [row for _, row in read_rows(self.run.steps, Step)]
        return steps, [row for _, row in read_rows(self.run.rollouts, Rollout)]

    def _clear_unsound(self, checkpoint: Checkpoint | None) -> None:
        """Remove checkpoints that are not whole, so that nothing can pick one up."""
        keep = folder_of(self.checkpoints, checkpoint.step) if checkpoint else None
        for folder in self.checkpoints.glob("checkpoint-*"):
            if folder != keep:
                shutil.rmtree(folder)

    def _trainer(self, writers: RunWriters | None, on_step: Progress) -> Any:
        import torch
        from datasets import Dataset
        from transformers import PrinterCallback, set_seed

        from ahalab.train.response_logger import ResponseLogger, RewardTerms
        from ahalab.train.trainer import RecordedTrainer, StepRecorder

        name_run(self.plan, self.config, self.trackers, self.run.name)
        torch.set_num_threads(self.plan.model.threads)
        set_seed(self.seed)  # the adapter's A matrices are drawn when the trainer wraps the model
        model = load_model(self.plan.model, self.model)
        ends = end_ids(model, self.tokenizer)
        terms = RewardTerms(
            self.arm,
            on_error=next(a.on_error for a in self.plan.arms if a.name == self.arm.name),
            seed=self.seed,
            asked=asked_of(self.plan.task, self.plan.answer_format),
            group_size=int(self.plan.grpo["num_generations"]),
        )
        logger = ResponseLogger(terms, ends, writers.rollouts if writers else None, self.ranks)
        rows = [self._dataset_row(prompt) for prompt in self.prompts]
        with quiet_libraries():
            trainer = RecordedTrainer(
                logger=logger,
                lean_step=self.lean_step == "on",
                zero_dead_groups=self.plan.training.zero_dead_groups,
                model=model,
                args=self.config,
                train_dataset=Dataset.from_list(rows),
                processing_class=self.tokenizer,
                peft_config=lora_config(self.plan),
            )
        trainer.remove_callback(PrinterCallback)
        attach(
            trainer,
            StepRecorder(
                logger,
                writers,
                ranks=self.ranks,
                validator=self._validator(writers, ends),
                on_step=on_step,
                on_checkpoint=self._vouch,
            ),
            self.trackers,
            self.run.name,
        )
        return trainer

    def _validator(self, writers: RunWriters | None, ends: frozenset[int]) -> Validator | None:
        from ahalab.train.validation import Validator, questions_of

        spec = self.plan.validation
        if spec is UNSET:
            return None
        return Validator(
            questions_of(self.plan, spec, read_prompts(self.paths, "validation")),
            self.tokenizer,
            ends,
            writer=writers.validation if writers else None,
            ranks=self.ranks,
        )

    def _dataset_row(self, prompt: Prompt) -> dict[str, Any]:
        return {
            "prompt": messages(self.plan.task, prompt.question),
            "prompt_id": prompt.prompt_id,
            "gold": prompt.gold,
            "question": prompt.question,
        }
