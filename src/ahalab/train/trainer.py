"""TRL's GRPOTrainer with our records attached at the two points where nothing can be lost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import torch
from torch.utils.data import Sampler
from transformers import TrainerCallback
from trl import GRPOTrainer
from trl.trainer.utils import RepeatSampler

from ahalab.records.rollout import Rollout
from ahalab.records.step import Step, Timing
from ahalab.statistics.training import step_figures
from ahalab.train.lean_step import kept_rows, lean, no_gradient, scale_back
from ahalab.train.ranks import Ranks
from ahalab.train.response_logger import ResponseLogger
from ahalab.train.trackers import tracked
from ahalab.train.trl_compat import check_trainer
from ahalab.train.validation import Validator
from ahalab.train.writers import RunWriters


class ResumableOrder(Sampler[int]):
    """TRL's order of prompts, the same in a resumed run.

    TRL draws each epoch's order from one generator; a process that resumes within a later epoch
    begins with a new generator, and would see the first epoch's order again.
    """

    def __init__(self, sampler: Any, steps_done: Callable[[], int], accumulation: int) -> None:
        self.sampler = sampler  # trl.trainer.utils.RepeatSampler
        self.steps_done = steps_done
        self.accumulation = accumulation

    def __iter__(self) -> Iterator[int]:
        if self.sampler.shuffle:
            chunks = self.sampler.num_samples // self.sampler.batch_size
            steps = -(-chunks * self.sampler.repeat_count // self.accumulation)  # in an epoch
            self.sampler.generator.manual_seed(self.sampler.seed)
            for _ in range(self.steps_done() // steps):
                torch.randperm(self.sampler.num_samples, generator=self.sampler.generator)
        return iter(self.sampler)

    def __len__(self) -> int:
        return len(self.sampler)


class RecordedTrainer(GRPOTrainer):  # type: ignore[misc]
    """GRPOTrainer that hands each generation batch with its advantages to the logger."""

    def __init__(
        self, *, logger: ResponseLogger, lean_step: bool, zero_dead_groups: bool, **arguments: Any
    ) -> None:
        check_trainer(GRPOTrainer, RepeatSampler)
        super().__init__(reward_funcs=[logger], **arguments)
        self._logger: ResponseLogger = logger
        self._lean_step = lean_step
        self._zero_dead_groups = zero_dead_groups
        self._used_rewards: torch.Tensor | None = None  # (B, 1)

    def _get_train_sampler(self, *arguments: Any, **named: Any) -> ResumableOrder:
        sampler = super()._get_train_sampler(*arguments, **named)
        accumulation = self.args.gradient_accumulation_steps
        return ResumableOrder(sampler, lambda: self.state.global_step, accumulation)

    def _calculate_rewards(self, *arguments: Any, **named: Any) -> torch.Tensor:
        rewards: torch.Tensor = super()._calculate_rewards(*arguments, **named)
        self._used_rewards = rewards
        return rewards

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        output = super()._generate_and_score_completions(inputs)
        if self.model.training and self._used_rewards is not None:
            taught_nothing = self._logger.without_advantage(self._zero_dead_groups)
            output["advantages"][taught_nothing] = 0.0
            advantages = output["advantages"].tolist()
            first = self.accelerator.process_index * len(advantages)  # TRL gathers the rewards
            used = self._used_rewards[first : first + len(advantages), 0].tolist()
            self._logger.commit(advantages, used)
        return output

    def _compute_loss(self, model: Any, inputs: Any) -> torch.Tensor:
        if not (self._lean_step and self.model.training):
            return super()._compute_loss(model, inputs)  # type: ignore[no-any-return]
        kept = kept_rows(inputs)
        if not kept.any():
            return no_gradient(dict(model.named_parameters()))
        loss: torch.Tensor = super()._compute_loss(model, lean(inputs, kept))
        return loss * scale_back(self.args.loss_type, inputs, kept)


class StepRecorder(TrainerCallback):  # type: ignore[misc]
    """Writes one row per optimizer step, and marks each checkpoint once it is saved."""

    def __init__(
        self,
        logger: ResponseLogger,
        writers: RunWriters | None,
        *,
        ranks: Ranks,
        validator: Validator | None,
        on_step: Callable[[Step], None],
        on_checkpoint: Callable[[RunWriters, int], None],
    ) -> None:
        self.logger = logger
        self.writers = writers  # None in all processes but the first
        self.ranks = ranks
        self.validator = validator  # None: the plan asks for none
        self.on_step = on_step
        self.on_checkpoint = on_checkpoint
        self._seen: list[Rollout] = []
        self._began = time.monotonic()

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Start the clock of a step."""
        self._began = time.monotonic()

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any], **_: Any) -> None:
        """Write the row of the step that the trainer just logged."""
        if self.writers is None or "loss" not in logs:  # the closing summary has none
            return
        fresh = self.logger.last_batch if self.logger.last_batch is not self._seen else []
        self._seen = self.logger.last_batch
        step = Step(step=int(state.global_step), **_trainer_figures(logs), **step_figures(fresh))
        self.writers.steps.append([step])
        logs.update(tracked(step))  # for the trackers, whose callbacks come after this one
        utc = datetime.now(UTC).isoformat(timespec="milliseconds")
        seconds = round(time.monotonic() - self._began, 4)
        self.writers.timings.append([Timing(step=step.step, seconds=seconds, utc=utc)])
        self.on_step(step)

    def on_save(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        """Validate, and let the checkpoint on disk be vouched for."""
        self.ranks.wait()  # each process has saved the state of its own generators
        step = int(state.global_step)
        if self.validator is not None:
            self.validator(model, step)
        if self.writers is not None:
            self.on_checkpoint(self.writers, step)


def _trainer_figures(logs: dict[str, Any]) -> dict[str, Any]:
    """Return what only the trainer knows of a step, None where it logs nothing or not a number."""

    def number(*names: str) -> float | None:
        for name in names:
            value = logs.get(name)
            if isinstance(value, int | float) and value == value and abs(value) != float("inf"):
                return float(value)
        return None

    tokens = number("num_tokens")
    return {
        "loss": number("loss"),
        "grad_norm": number("grad_norm"),
        "learning_rate": number("learning_rate"),
        "entropy": number("entropy"),
        "kl": number("kl"),
        "clip_low_fraction": number("clip_ratio/low_mean"),
        "clip_high_fraction": number("clip_ratio/high_mean"),
        "tokens": None if tokens is None else int(tokens),
    }
