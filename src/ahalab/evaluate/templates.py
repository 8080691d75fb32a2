"""The base alone under several prompt templates, greedily; all else is the evaluation's."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from ahalab.evaluate.backends import Side
from ahalab.evaluate.pair import Asked, Evaluation, OnBatch
from ahalab.evaluate.protocol import BatchPlan, make_protocol
from ahalab.evaluate.resume import AnswerSet, answers_finished, write_answers
from ahalab.plan.cells import BASE
from ahalab.plan.templates import greedy_plan
from ahalab.records.base import digest
from ahalab.records.plan import Plan
from ahalab.records.prompt import Prompt
from ahalab.records.templates import TemplateSet
from ahalab.store.layout import StudyPaths


class TemplateEvaluation:
    """The base loaded once, for every template of a set."""

    def __init__(self, plan: Plan, paths: StudyPaths, batch_size: int | None = None) -> None:
        self.plan = plan
        self.paths = paths
        self.stage = Evaluation(greedy_plan(plan), paths, Asked(batch_size=batch_size))

    def answer(
        self, asked: TemplateSet, prompts: Mapping[str, list[Prompt]], on_batch: OnBatch
    ) -> None:
        """Bring the answers under every template to completion.

        Args:
            asked: The set.
            prompts: By the template's name, from `prepare_templates`.
            on_batch: Called with the number of answers just committed.

        Raises:
            ProtocolError: Answers were begun under another protocol.
            LockedError: Another process writes them.
            InputError: The base's files changed meanwhile.
        """
        for template in asked.templates:
            answers = self._answer_set(asked, template.name, prompts[template.name])
            if not answers_finished(answers):
                self.stage.backend.serve([Side(BASE.name)])
                generate = self.stage.backend.generate
                write_answers([answers], prompts[template.name], generate, on_batch)
        self.stage.check_base()

    def _answer_set(self, asked: TemplateSet, name: str, prompts: list[Prompt]) -> AnswerSet:
        stage, backend = self.stage, self.stage.backend
        batch = BatchPlan(
            size=stage.batch_size,
            cells=1,
            seed=self.plan.evaluation.seed,
            limit=None if asked.questions == asked.available else asked.questions,
        )
        protocol = make_protocol(stage.plan, prompts, stage.weights, backend.facts, batch)
        own = replace(protocol, plan_digest=digest(self.plan))
        return AnswerSet(self.plan, self.paths, self.paths.template_answers(name), own, "base")
