"""Writes one row per completion, with every reward component, as the trainer used it.

The logger is the reward function that TRL calls. It scores the batch through the arm, remembers
it, and writes the rows once the trainer has turned the rewards into advantages: after
generation, before
the optimizer step, whatever TRL's own logging does (TRL_FACTS 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ahalab.errors import RewardError
from ahalab.records.rollout import ComponentRow, Rollout
from ahalab.records.terms import Finish
from ahalab.scoring.answers import Asked
from ahalab.scoring.arms import ArmDefinition, Reward, failed, score_batch
from ahalab.scoring.components import (
    Origin,
    Response,
    is_formatted,
    make_response,
    repeated_fraction,
)
from ahalab.scoring.reflection import reflection_markers
from ahalab.scoring.worker import row_decider
from ahalab.statistics.training import SAME_REWARD, handed_rewards
from ahalab.store.rows import RowWriter
from ahalab.train.ranks import ALONE, Ranks

FLOAT32_TOLERANCE = 1e-5  # the trainer holds rewards as float32


@dataclass(frozen=True, slots=True)
class Pending:
    """A scored generation batch that waits for its advantages."""

    step: int
    groups: list[int]
    responses: list[Response]
    rewards: list[Reward]
    handed: list[float]  # what the trainer was given, also for rows without a reward


@dataclass(frozen=True, slots=True)
class RewardTerms:
    """On what terms the completions of a run are rewarded."""

    arm: ArmDefinition
    on_error: Literal["stop", "none"]  # where a reward's own code fails
    seed: int
    asked: Asked
    group_size: int


class ResponseLogger:
    """TRL's reward function for one arm, and the writer of its rollouts."""

    def __init__(
        self,
        terms: RewardTerms,
        end_ids: frozenset[int],
        writer: RowWriter[Rollout] | None,
        ranks: Ranks = ALONE,
    ) -> None:
        self.__name__ = terms.arm.name  # the name under which TRL reports it
        self.terms = terms
        self.end_ids = end_ids
        self.writer = writer  # None in all processes but the first
        self.ranks = ranks
        self.last_batch: list[Rollout] = []  # rows of the latest generation batch
        self._pending: Pending | None = None

    def __call__(
        self,
        *,
        completions: Sequence[Any],
        completion_ids: Sequence[Sequence[int]],
        prompt_id: Sequence[str],
        gold: Sequence[str],
        question: Sequence[str],
        trainer_state: Any,
        **_: object,
    ) -> list[float]:
        """Score one generation batch, shape (B,): the G completions of a prompt in a row.

        A row on which nothing can be said has no reward; the trainer is handed its group's mean.

        Raises:
            RewardError: A reward's own code failed, and the arm's policy is to stop; the row is
                named.
        """
        terms, size = self.terms, self.terms.group_size
        step = int(trainer_state.global_step)
        responses, groups = [], []
        first = self.ranks.index * len(completions) // size  # group of this process
        for i, (completion, ids) in enumerate(zip(completions, completion_ids, strict=True)):
            groups.append(first + i // size)
            responses.append(
                make_response(
                    completion=_text(completion),
                    gold=gold[i],
                    finish=self._finish(ids),
                    origin=Origin(
                        prompt_id=prompt_id[i],
                        step=step,
                        sample=i % size,
                        seed=terms.seed,
                        completion_ids=tuple(int(token) for token in ids),
                    ),
                    asked=replace(terms.asked, prompt=question[i]),
                    latex_equal=row_decider(terms.asked.task),
                )
            )
        rewards = score_batch(terms.arm, responses)
        if terms.on_error == "stop":
            for response, reward in zip(responses, rewards, strict=True):
                _stop_at_failure(terms.arm, response, reward)
        handed: list[float] = []
        for start in range(0, len(rewards), size):
            group = rewards[start : start + size]
            handed += handed_rewards([reward.reward for reward in group])
        self._pending = Pending(step, groups, responses, rewards, handed)
        return handed

    def _finish(self, ids: Sequence[int]) -> Finish:
        return "eos" if len(ids) > 0 and ids[-1] in self.end_ids else "length"

    def without_advantage(self, zero_dead_groups: bool) -> list[int]:
        """Return the rows of the batch that was just scored whose advantage has to be exactly 0.

        These are the rows without a reward and, where asked, the groups of equal rewards: a float
        mean over a small deviation leaves them an advantage of up to 1e-3 (TRL_FACTS 19).
        """
        if self._pending is None:
            return []
        found = []
        rewards = [reward.reward for reward in self._pending.rewards]
        for start in range(0, len(rewards), self.terms.group_size):
            group = rewards[start : start + self.terms.group_size]
            known = [value for value in group if value is not None]
            dead = not known or max(known) - min(known) <= SAME_REWARD
            found += [
                start + i
                for i, value in enumerate(group)
                if value is None or (dead and zero_dead_groups)
            ]
        return found

    def commit(self, advantages: Sequence[float], used_rewards: Sequence[float]) -> None:
        """Write the batch that was just scored, with the rewards and advantages the trainer holds.

        The first process writes the rows of all.

        Args:
            advantages: As the trainer will apply them, shape (B,), in generation order.
            used_rewards: The trainer's own rewards, shape (B,), float32.

        Raises:
            RewardError: The trainer holds another reward than the arm gave, or another number of
                rows.
        """
        pending = self._pending
        if pending is None:
            raise RewardError(
                "response logger: the trainer computed advantages without calling the reward."
            )
        self._pending = None
        if not len(advantages) == len(used_rewards) == len(pending.responses):
            raise RewardError(
                f"step {pending.step}: expected a reward and an advantage for each of the "
                f"{len(pending.responses)} completions, found {len(used_rewards)} and "
                f"{len(advantages)}."
            )
        rows = []
        for i, (response, value) in enumerate(zip(pending.responses, pending.handed, strict=True)):
            # Written so that a NaN, which compares with nothing, is refused.
            if not abs(value - used_rewards[i]) <= FLOAT32_TOLERANCE * max(1.0, abs(value)):
                raise RewardError(
                    f"{_place(response.origin)}: expected the trainer to use reward {value}, "
                    f"found {used_rewards[i]}."
                )
            rows.append(self._rollout(pending, i, float(advantages[i])))
        self.last_batch = self.ranks.gather(rows)
        if self.writer is not None:
            self.writer.append(self.last_batch)

    def _rollout(self, pending: Pending, i: int, advantage: float) -> Rollout:
        response = pending.responses[i]
        return Rollout(
            step=pending.step,
            rank=self.ranks.index,
            group=pending.groups[i],
            prompt_id=response.origin.prompt_id,
            sample=response.origin.sample,
            completion=response.completion,
            completion_ids=response.origin.completion_ids,
            finish=response.finish,
            components={
                name: ComponentRow(value=part.value, status=part.status)
                for name, part in pending.rewards[i].components.items()
            },
            reward=pending.rewards[i].reward,
            advantage=advantage,
            historical=response.historical,
            strict=response.score.strict.outcome,
            lenient=response.score.lenient.outcome,
            status=response.score.lenient.status,
            extracted=response.score.lenient.extracted,
            formatted=is_formatted(response),
            repetition=repeated_fraction(response),
            reflection=reflection_markers(response.completion),
        )


def _stop_at_failure(arm: ArmDefinition, response: Response, reward: Reward) -> None:
    faults = [f"{name} {part.status}" for name, part in reward.components.items() if failed(part)]
    if faults:
        raise RewardError(
            f"arm {arm.name}, {_place(response.origin)}: expected a finite reward, found "
            f"{'; '.join(faults)}. Completion: {response.completion[:120]!r}. Mend the reward and "
            "begin a new study, or set `on_error: none` for the arm to leave such rows without a "
            "reward."
        )


def _place(origin: Origin) -> str:
    return f"step {origin.step}, prompt {origin.prompt_id}, sample {origin.sample}"


def _text(completion: Any) -> str:
    """Return the text of a completion: TRL hands a list of messages for conversational prompts."""
    if isinstance(completion, str):
        return completion
    return "".join(str(message["content"]) for message in completion)
