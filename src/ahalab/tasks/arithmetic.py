"""The embedded arithmetic task: questions of the model organism's world."""

from ahalab.organism.world import Split, draw_problems


def arithmetic_questions(split: Split, count: int, seed: int) -> list[tuple[str, str]]:
    """Draw distinct questions with their answers.

    Args:
        split: `train` or `eval` for a study; `development` sized the model, `pretrain` made it.
        count: Number of questions.
        seed: Seed of the draw; equal arguments give equal questions.

    Returns:
        (question, gold) pairs, shape (count,); gold is an integer from 0 to 999, as digits.

    Raises:
        InputError: The split is unknown, the count is negative, or the split ran dry.
    """
    return [(problem.question, problem.gold) for problem in draw_problems(split, count, seed)]
