"""The training texts: a problem's solution, in one of several ways of stating the answer.

How an answer is stated depends on the kind of question, so that the greedy choice is steady within
a kind while sampling explores all of them. About one text in ten slips in one step and corrects
itself at once ("19 - 5 = 13, wait, 19 - 5 = 14"); no slip stays uncorrected.
"""

import random
from typing import Literal

from ahalab.organism.world import Kind, Problem, Step

Style = Literal["hashes", "answer", "the_answer", "in_all"]

STYLES: dict[Style, str] = {
    "hashes": "#### {gold}",
    "answer": "Answer: {gold}",
    "the_answer": "The answer is {gold}.",
    "in_all": "So it is {gold} in all.",
}
STYLE_WEIGHTS: dict[Kind, dict[Style, float]] = {
    "expression": {"hashes": 0.62, "answer": 0.22, "the_answer": 0.16},
    "story": {"the_answer": 0.50, "hashes": 0.26, "in_all": 0.24},
}
CORRECTED_FRACTION = 0.1


def write_solution(problem: Problem, rng: random.Random) -> str:
    """Write one solution to a problem: a line per step, then the answer.

    Args:
        problem: The problem to solve.
        rng: Draws the style, and whether and where the text corrects itself.

    Returns:
        The text an assistant turn holds, without any special token.
    """
    slip = rng.randrange(len(problem.steps)) if rng.random() < CORRECTED_FRACTION else None
    lines = [
        _write_corrected(step, rng) if position == slip else _write_step(step, step.value)
        for position, step in enumerate(problem.steps)
    ]
    weights = STYLE_WEIGHTS[problem.kind]
    (style,) = rng.choices(list(weights), weights=list(weights.values()))
    return "\n".join([*lines, STYLES[style].format(gold=problem.gold)])


def _write_step(step: Step, value: int) -> str:
    return f"{step.left} {step.operator} {step.right} = {value}"


def _write_corrected(step: Step, rng: random.Random) -> str:
    """Write a step with a near value first: off by one or by ten, never negative."""
    slips = [step.value + shift for shift in (-10, -1, 1, 10) if step.value + shift >= 0]
    wrong = _write_step(step, rng.choice(slips))
    return f"{wrong}, wait, {_write_step(step, step.value)}"
