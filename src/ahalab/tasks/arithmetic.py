"""The embedded arithmetic task: questions of the model organism's world."""

from typing import Literal

from ahalab.organism.world import Split, draw_problems


def arithmetic_questions(
    split: Split | Literal["validation"], count: int, seed: int
) -> list[tuple[str, str]]:
    """Draw distinct questions with their answers.

    Args:
        split: `train`, `eval` or `validation` for a study; `development` sized the model,
            `pretrain` made it.
        count: Number of questions.
        seed: Seed of the draw; equal arguments give equal questions.

    Returns:
        (question, gold) pairs, shape (count,); gold is an integer from 0 to 999, as digits.

    Raises:
        InputError: The split is unknown, the count is negative, or the split ran dry.
    """
    # The world's splits are fixed with the recorded organism. Its development questions taught
    # nobody anything, and no study trains or evaluates on them.
    world: Split = "development" if split == "validation" else split
    return [(problem.question, problem.gold) for problem in draw_problems(world, count, seed)]
