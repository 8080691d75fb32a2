from __future__ import annotations

import time

import pytest

from ahalab.scoring.answers import Asked, score_answer
from ahalab.scoring.components import COMPONENTS, make_response

SECONDS = (
    8.0  # for some hundred kilobytes each, on a shared machine; a quadratic scan takes minutes
)

HOSTILE = {
    "a million digits": "#### " + "9" * 1_000_000,
    "a tower": "The answer is 9**9**9 and 9^{9^{9}}.",
    "nested boxes": "\\boxed{" * 100_000 + "}" * 100_000,
    "nested parentheses": "<answer>" + "(" * 100_000 + "1" + ")" * 100_000 + "</answer>",
    "open tags": "<answer>" * 100_000,
    "a megabyte in tags": "<answer>" + "a" * 1_000_000 + "</answer>",
    "many statements": "#### 1\n" * 50_000,
    "labels without a value": "Answer: " * 50_000,
    "phrases without an end": "the answer to " * 30_000,
    "a list": "1," * 400_000,
    "spaced numbers": "1 " * 400_000,
    "fractions": "1/" * 400_000,
    "an endless hedge": "The answer is " + "1 or 2 or " * 40_000,
    "turns": "wait " * 60_000,
    "empty lines": "\n" * 1_000_000,
    "open braces": "{" * 1_000_000,
    "LaTeX fractions": "#### " + "\\frac" * 150_000,
    "dollars": "$" * 1_000_000,
    "NUL": "\0" * 1_000_000,
    "bidi": "\u202e" * 500_000 + "5",
    "lone surrogates": "\ud800" * 500_000,
    "digits of other scripts": "\u0661" * 500_000,
    "spaces after a label": "answer:" + " " * 1_000_000,
    "number words": "one hundred " * 60_000,
    "questions": "Question: 1\n" * 60_000,
    "turns with a value": "wait 1 " * 200_000,
    "opened mathematics": "\\(" * 400_000,
    "opened displays": "\\[x" * 300_000,
    "sentences without a value": "Rs. " * 300_000,
    "pairs of braces": "\\boxed{" + "{}" * 500_000,
    "marks between digits": "\u202e5" * 500_000,
    "long boxes": ("\\boxed{" + "a, " * 1_600 + "}") * 400,  # each just within what is read of one
    "long boxes of text": ("\\boxed{" + "\\text{a}" * 600 + "}") * 400,
    "long lines of hashes": ("#### " + "x = " * 1_200 + "\n") * 400,
    "long sentences": ("so " * 1_600 + ". ") * 400,
    "code": "__import__('os').getpid() " * 20_000,
}
GOLDS = {"gsm8k": "7", "math": "7", "countdown": '{"numbers": [7], "target": 7}'}


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_a_hostile_response_costs_bounded_time_and_is_never_right(name: str) -> None:
    for task, gold in GOLDS.items():
        started = time.perf_counter()
        score = score_answer(HOSTILE[name], gold, asked=Asked("boxed", task))
        assert time.perf_counter() - started < SECONDS
        assert score.lenient.outcome in ("wrong", "unparsed", "error")
        assert len(score.lenient.extracted or "") <= 1_000


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_every_component_survives_a_hostile_response(name: str) -> None:
    started = time.perf_counter()
    response = make_response(completion=HOSTILE[name], gold="7")
    for component in COMPONENTS.values():
        component([response])
    assert time.perf_counter() - started < SECONDS


@pytest.mark.parametrize(
    "pattern", [r"pattern:a*a*(b)", r"pattern:.*=.*(\d)", r"pattern:(\d+)\s*$"]
)
def test_a_slow_pattern_meets_only_the_end_of_a_response(pattern: str) -> None:
    started = time.perf_counter()
    score_answer("a=" * 500_000 + "a" * 1_000, "7", asked=Asked(pattern))
    assert time.perf_counter() - started < SECONDS


def test_a_number_too_long_to_read_is_wrong_and_does_not_spoil_a_good_answer_after_it() -> None:
    assert score_answer("#### " + "7" * 5_000, "7").strict.outcome == "wrong"
    long_working = "Consider " + "1" * 6_000 + " first. The answer is 7."
    assert score_answer(long_working, "7").lenient.outcome == "correct"


def test_nothing_a_model_wrote_is_executed() -> None:
    for task, gold in GOLDS.items():
        text = "<answer>__import__('os').abort() or 7</answer>"
        assert (
            score_answer(text, gold, asked=Asked("answer_tag", task)).lenient.outcome != "correct"
        )
