"""pass@k without bias: the chance that k answers drawn from the n given hold a correct one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ahalab.statistics.inputs import count


def pass_at_k(correct: int, answers: int, k: int) -> float:
    """Estimate pass@k of one question: 1 - C(n-c, k) / C(n, k).

    Args:
        correct: c, correct answers.
        answers: n, answers given.
        k: Answers that one may try, 1 <= k <= n.

    Returns:
        Probability.

    Raises:
        ValueError: n < k (the estimate would be biased and look exact), or c > n.

    Source:
        Chen et al. 2021, arXiv:2107.03374, equation 1.
    """
    k = count("k", k, at_least=1)
    answers = count("answers", answers)
    correct = count("correct", correct)
    if answers < k:
        raise ValueError(f"answers: expected at least k={k} a question, found {answers}")
    if correct > answers:
        raise ValueError(f"correct: expected at most answers={answers}, found {correct}")
    if answers - correct < k:
        return 1.0
    # The product form stays exact where the binomials would overflow.
    return float(1.0 - np.prod(1.0 - k / np.arange(answers - correct + 1, answers + 1)))


def mean_pass_at_k(correct: Sequence[int], answers: Sequence[int], k: int) -> float:
    """Average pass@k over questions.

    Args:
        correct: Correct answers of each question, shape (N,).
        answers: Answers given to each question, shape (N,); each at least k.
        k: Answers that one may try.

    Returns:
        Probability.

    Raises:
        ValueError: No question, lengths differ, or any question with fewer than k answers.
    """
    if len(correct) != len(answers) or len(correct) == 0:
        raise ValueError(
            f"correct and answers: expected equal lengths above 0, found {len(correct)} "
            f"and {len(answers)}"
        )
    pairs = list(zip(correct, answers, strict=True))
    value = {pair: pass_at_k(*pair, k) for pair in set(pairs)}  # few differ among many questions
    return float(np.mean([value[pair] for pair in pairs]))
