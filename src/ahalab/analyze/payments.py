"""Pays the saved rollouts of one run under every arm, and checks what was recorded of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ahalab.analyze.saved_rollouts import SavedRun
from ahalab.records.counterfactual import CounterfactualRow
from ahalab.records.rollout import Rollout
from ahalab.scoring.arms import ArmDefinition, score_batch
from ahalab.scoring.components import (
    Component,
    ComponentValue,
    Origin,
    Response,
    make_response,
)
from ahalab.scoring.worker import row_decider
from ahalab.statistics.counterfactual import Batch, Taught, loss_weights, taught
from ahalab.statistics.training import advantage_tolerance, handed_rewards
from ahalab.tasks.questions import asked_of

SAME_SUM = 1e-9  # recorded and computed rewards closer than this are equal


@dataclass(slots=True)
class Checks:
    """What is found out about the recorded rows themselves, over the runs of one arm."""

    outcomes_changed: int = 0  # by the scorers at hand
    rewards_changed: int | None = 0  # None: the arm's own code was not run
    advantages_off: int = 0  # further from those of the rewards than rounding explains


class Payments:
    """One run under every arm, the recorded one first."""

    def __init__(
        self,
        run: SavedRun,
        arms: Sequence[ArmDefinition],
        checks: Checks,
        on_row: Callable[[CounterfactualRow], None] | None,
    ) -> None:
        self.run = run
        self.arms = arms
        self.checks = checks
        self.on_row = on_row
        grpo = run.study.plan.grpo
        self.scale = str(grpo["scale_rewards"])
        self.loss_type = str(grpo["loss_type"])
        self.masked = bool(grpo["mask_truncated_completions"])
        self.asked = asked_of(run.study.plan.task, run.study.plan.answer_format)

    def batch(self, rows: Sequence[Rollout]) -> Batch:
        """Pay one generation batch, shape (B,).

        The first arm is paid as it was recorded, the others by the scorers at hand.

        Raises:
            ValueError: The scale of rewards, the loss or the answer format is not known here.
        """
        responses = [self._response(row) for row in rows]
        size = self.run.group_size
        paid: list[list[float | None]] = [[row.reward for row in rows]]
        for arm in self.arms[1:]:
            paid.append([r.reward for r in score_batch(_with_recorded(arm, rows), responses)])
        given = [taught(rewards, size, self.scale) for rewards in paid]
        self._check(rows, responses, given[0])
        if self.on_row is not None:
            self._tell_rows(rows, responses, paid, given)
        cut = [row.finish == "length" for row in rows] if self.masked else None
        weights = loss_weights([len(row.completion_ids) for row in rows], cut, self.loss_type)
        scores = [response.score for response in responses]
        right = [[score.strict.outcome == "correct" for score in scores]]
        right.append([score.lenient.outcome == "correct" for score in scores])
        return Batch(
            given, np.array(right), np.stack([np.ones(len(rows)), weights]), len(rows) // size
        )

    def _response(self, row: Rollout) -> Response:
        prompt = self.run.study.prompts[row.prompt_id]
        return make_response(
            completion=row.completion,
            gold=prompt.gold,
            finish=row.finish,
            origin=Origin(
                row.prompt_id, row.step, row.sample, self.run.record.seed, row.completion_ids
            ),
            asked=replace(self.asked, prompt=prompt.question),
            latex_equal=row_decider(self.asked.task),
        )

    def _check(self, rows: Sequence[Rollout], responses: Sequence[Response], given: Taught) -> None:
        checks, size = self.checks, self.run.group_size
        for row, response in zip(rows, responses, strict=True):
            score = response.score
            outcomes = (response.historical, score.strict.outcome, score.lenient.outcome)
            checks.outcomes_changed += outcomes != (row.historical, row.strict, row.lenient)
        for start in range(0, len(rows), size):
            group = rows[start : start + size]
            tolerance = advantage_tolerance(handed_rewards([row.reward for row in group]))
            expected = given.advantages[start : start + size]
            for row, value in zip(group, expected, strict=True):
                checks.advantages_off += not abs(row.advantage - value) <= tolerance
        if self.arms[0].not_loaded:
            checks.rewards_changed = None
        elif checks.rewards_changed is not None:
            again = score_batch(self.arms[0], responses)
            pairs = ((row.reward, r.reward) for row, r in zip(rows, again, strict=True))
            checks.rewards_changed += sum(not _same(*pair) for pair in pairs)

    def _tell_rows(
        self,
        rows: Sequence[Rollout],
        responses: Sequence[Response],
        paid: Sequence[Sequence[float | None]],
        given: Sequence[Taught],
    ) -> None:
        names = [arm.name for arm in self.arms]
        for at, (row, response) in enumerate(zip(rows, responses, strict=True)):
            told = CounterfactualRow(
                study=self.run.study.plan.name,
                run=self.run.paths.name,
                step=row.step,
                group=row.group,
                prompt_id=row.prompt_id,
                sample=row.sample,
                strict=response.score.strict.outcome,
                lenient=response.score.lenient.outcome,
                rewards={n: rewards[at] for n, rewards in zip(names, paid, strict=True)},
                advantages={
                    n: float(arm.advantages[at]) for n, arm in zip(names, given, strict=True)
                },
            )
            if self.on_row is not None:
                self.on_row(told)


def _with_recorded(arm: ArmDefinition, rows: Sequence[Rollout]) -> ArmDefinition:
    """Return an arm whose own rewards that were not loaded give what was recorded of them."""
    if not arm.not_loaded:
        return arm
    recorded: Mapping[str, Component] = {name: _recorded(name, rows) for name in arm.not_loaded}
    return replace(arm, own={**arm.own, **recorded})


def _recorded(name: str, rows: Sequence[Rollout]) -> Component:
    parts = [row.components[name] for row in rows]
    values = [ComponentValue(part.value, part.status) for part in parts]
    return lambda responses: values


def _same(recorded: float | None, computed: float | None) -> bool:
    if recorded is None or computed is None:
        return recorded is computed
    return abs(recorded - computed) <= SAME_SUM
