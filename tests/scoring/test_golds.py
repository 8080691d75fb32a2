"""A gold that is accepted is right when it is stated word for word."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ahalab.scoring.answers import Asked, check_gold, score_answer

ROOT = Path(__file__).resolve().parents[2]
MATH500 = Path(os.environ.get("AHALAB_SHARED", ROOT.parent / "shared")) / "data" / "math500"
WRITTEN = {"boxed": "\\boxed{%s}", "answer_tag": "<answer>%s</answer>", "hashes": "#### %s"}
OWN = [
    r"x \in [-2,7]", r"[-2,7)", r"(-\infty, 3) \cup (5, \infty)", r"x \le 3", "x = 5", "5 = x",
    "5!", r"\pm 2", "1331 and 1728", r"\text{(B)}", r"\text{4:30 p.m.}", "3:2", r"52_8",
    r"\frac{\sqrt{3}}{2}", "a=1, b=2", r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}",
    r"2\frac{1}{2}", r"10{,}000", r"50\%", r"90^\circ", r"\$18", r"\{1, 2\}", r"\emptyset",
    "(1, 2), (3, 4)", "2 or 3", r"\text{no solution}", "9^{9^{9}}", r"12 \text{ cm}^2",
    "3x + 4y + 14 = 0", "-0.5", "1/3", "0.333333", r"p - q", "(x,y) = (1,2)", r"\approx 3.14",
    "{1,2}", r"-\infty",
]  # fmt: skip


def assert_right_word_for_word(gold: str, task: str) -> None:
    for answer_format, written in WRITTEN.items():
        response = "So\n" + written % gold
        score = score_answer(response, gold, asked=Asked(answer_format, task))
        outcomes = (score.strict.outcome, score.lenient.outcome)
        assert outcomes == ("correct", "correct"), (response, score)


@pytest.mark.parametrize("gold", OWN)
def test_a_gold_of_mathematics_equals_itself_without_the_decider(gold: str) -> None:
    assert check_gold(gold, "math") is None
    assert_right_word_for_word(gold, "math")


def test_every_gold_of_math500_equals_itself_without_the_decider() -> None:
    path = MATH500 / "test.jsonl"
    if not path.exists():
        pytest.skip(f"{path} is not here; set AHALAB_SHARED to the folder that holds data/")
    golds = [json.loads(line)["answer"] for line in path.read_bytes().split(b"\n") if line]
    assert len(golds) == 500
    for gold in golds:
        assert check_gold(gold, "math") is None
        assert_right_word_for_word(gold, "math")


pieces = st.sampled_from(
    [
        "1",
        "2",
        "x",
        "-",
        "+",
        "=",
        ",",
        " ",
        "/",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        r"\frac",
        r"\pi ",
        "^",
        ".",
        "5",
    ]
)


@settings(deadline=None, max_examples=500)
@given(st.lists(pieces, min_size=1, max_size=9).map("".join), st.sampled_from(["math", "gsm8k"]))
def test_any_gold_that_is_accepted_equals_itself(gold: str, task: str) -> None:
    if check_gold(gold, task) is None:
        assert_right_word_for_word(gold, task)


@pytest.mark.parametrize(
    "gold", ["", " ", "?", "-", "...", "nan", "NaN", "inf", "}{", "{", r"\frac{1}{2"]
)
def test_a_gold_that_says_nothing_or_cannot_stand_in_a_box_is_refused(gold: str) -> None:
    assert check_gold(gold, "math") is not None
