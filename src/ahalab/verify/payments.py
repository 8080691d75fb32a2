"""What an arm would pay for the answers of the evaluation, scored again."""

from __future__ import annotations

from collections.abc import Sequence

from ahalab.plan.cells import Cell
from ahalab.records.plan import Plan
from ahalab.records.prompt import Prompt
from ahalab.records.terms import Finish
from ahalab.scoring.arms import score_batch
from ahalab.scoring.components import Origin
from ahalab.statistics.training import mean
from ahalab.verify.grading import Grader, Put
from ahalab.verify.own import definition_of

Answered = tuple[tuple[str, int], tuple[str, Finish]]  # prompt id and sample; text and finish


def paid(
    grader: Grader,
    plan: Plan,
    prompts: Sequence[Prompt],
    answers: Sequence[Answered],
    cells: Sequence[Cell],
) -> dict[Cell, float | None]:
    """Return the mean reward that each cell's arm would pay for the same answers.

    Args:
        grader: Scores them.
        plan: Whose arms.
        prompts: That were asked.
        answers: An answer set.
        cells: Arms and seeds; a random component depends on the seed.

    Returns:
        By cell; None for an arm of a user's own reward, whose code is not run here.
    """
    asked = {prompt.prompt_id: prompt for prompt in prompts}
    means: dict[Cell, float | None] = {}
    for cell in cells:
        name, seed = cell.run
        arm = definition_of(plan, name)
        if arm.not_loaded:
            means[cell] = None
            continue
        responses = [
            grader.response(
                Put(text, asked[prompt].gold, asked[prompt].question, finish),
                Origin(prompt, sample=sample, seed=seed),
            )
            for (prompt, sample), (text, finish) in answers
        ]
        rewards = score_batch(arm, responses)
        means[cell] = mean(r.reward for r in rewards if r.reward is not None)
    return means
