# Axis suffixes: S training seeds, N questions, K answers.
# ruff: noqa: N802
"""The answers as statistics want them: correctness by question and sample, in one order."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ahalab.plan.cells import BASE, FLOOR, Cell, training_cells
from ahalab.records.plan import Plan
from ahalab.records.prompt import Prompt
from ahalab.records.terms import Metric
from ahalab.tasks.text import normalised
from ahalab.verify.answers import AnswerSet
from ahalab.verify.arm_oracle import ArmEstimate
from ahalab.verify.oracle import FloatArray


@dataclass(frozen=True)
class Outcomes:
    """Whole answer sets only: what is missing can't be compared."""

    plan: Plan
    prompts: list[Prompt]
    base: AnswerSet
    sets: dict[Cell, AnswerSet]
    _correct: dict[tuple[int, Metric], FloatArray] = field(default_factory=dict)  # as worked out
    # By metric, arm, and the arm it is compared with (None: the base); see arm_verdicts.py.
    estimates: dict[tuple[Metric, str, str | None], ArmEstimate] = field(default_factory=dict)

    @cached_property
    def clusters(self) -> list[str]:
        """One label per question: a question that occurs twice is one cluster."""
        return [normalised(prompt.question) for prompt in self.prompts]

    @property
    def cells(self) -> list[Cell]:
        """Training cells with whole answers, in the plan's order."""
        return [cell for cell in training_cells(self.plan) if cell in self.sets]

    @property
    def arms(self) -> list[str]:
        """The arms that have such a cell, in the plan's order."""
        present = {cell.arm for cell in self.cells}
        return [arm.name for arm in self.plan.arms if arm.name in present]

    def identical(self, answers: AnswerSet) -> int:
        """Return how many answers of a set are the base's to the letter."""
        base = self.base.replies
        return sum(base[k].completion == r.completion for k, r in answers.replies.items())

    @property
    def floor(self) -> AnswerSet | None:
        """The base under the second batch plan."""
        return self.sets.get(FLOOR)

    def correct_NK(self, answers: AnswerSet, metric: Metric) -> FloatArray:
        """Return correctness, 0 or 1, shape (N, K)."""
        key = id(answers), metric  # sets live as long as this does
        if key not in self._correct:
            replies, samples = answers.replies, range(self.plan.evaluation.samples)
            self._correct[key] = np.array(
                [
                    [float(replies[p.prompt_id, j].outcome(metric) == "correct") for j in samples]
                    for p in self.prompts
                ]
            )
        return self._correct[key]

    def gains_SN(self, arm: str, metric: Metric) -> list[list[int]]:
        """Return how many answers more than the base's are right, by seed and question, (S, N)."""
        base = self.correct_NK(self.base, metric).sum(axis=1)
        own = [self.sets[cell] for cell in self.cells if cell.arm == arm]
        rows = [self.correct_NK(answers, metric).sum(axis=1) - base for answers in own]
        return [row.astype(int).tolist() for row in rows]

    def differences_N(self, answers: AnswerSet, metric: Metric) -> FloatArray:
        """Return a set's share of right answers minus the base's by question, shape (N,)."""
        base, other = (self.correct_NK(s, metric).mean(axis=1) for s in (self.base, answers))
        return np.asarray(other - base, dtype=np.float64)

    def differences_SN(self, arm: str, metric: Metric) -> FloatArray:
        """Return adapter minus base by seed and question, shape (S, N)."""
        base = self.correct_NK(self.base, metric).mean(axis=1)
        own = [cell for cell in self.cells if cell.arm == arm]
        return np.array([self.correct_NK(self.sets[c], metric).mean(axis=1) - base for c in own])


def line_up(plan: Plan, prompts: list[Prompt], found: dict[Cell, AnswerSet]) -> Outcomes | None:
    """Return the whole answer sets; None when there is nothing to compare."""
    whole = {cell: answers for cell, answers in found.items() if answers.whole and answers.replies}
    base = whole.get(BASE)
    if base is None or not prompts or not any(cell.arm for cell in whole):
        return None
    return Outcomes(plan, prompts, base, whole)
