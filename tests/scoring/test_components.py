from __future__ import annotations

import hashlib
import math

import pytest

from ahalab.scoring.answers import Asked
from ahalab.scoring.components import (
    COMPONENTS,
    ComponentValue,
    Origin,
    Response,
    make_response,
)

HONEST = "Tom has 14 + 8 = 22 apples.\n#### 22"


def _pay(component: str, response: Response) -> ComponentValue:
    [value] = COMPONENTS[component]([response])
    return value


def _of(completion: str, gold: str = "22", **more: object) -> Response:
    return make_response(completion=completion, gold=gold, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("component", "completion", "value", "status"),
    [
        ("correct_strict", HONEST, 1.0, "ok"),
        ("correct_strict", "The answer is 22.", 0.0, "unparsed"),
        ("correct_strict", "#### 21", 0.0, "wrong"),
        ("correct_lenient", "The answer is 22.", 1.0, "ok"),
        ("historical_correct", "#### 22\n#### 23", 1.0, "ok"),
        ("historical_correct", "#### 22.0", 0.0, "wrong"),
        ("format", HONEST, 1.0, "ok"),
        ("format", "#### 5", 1.0, "ok"),
        ("format", "22", 0.0, "no statement"),
        ("format", "#### 22\n#### 22", 0.0, "several statements"),
        ("format", "#### 22\nand more", 0.0, "text after the statement"),
        ("format", "#### twenty", 0.0, "no number"),
        ("format", "#### ", 0.0, "empty"),
        ("format_gated", HONEST, 1.0, "ok"),
        ("format_gated", "#### 5", 0.0, "wrong"),
        ("format_gated", "The answer is 22.", 0.0, "no statement"),
        ("constant", "", 1.0, "ok"),
        ("length", "", 0.0, "empty"),
        ("length", "one two", 1.0, "ok"),
        ("length", "word " * 225, 0.5, "ok"),
        ("length", "word " * 1_000, 0.0, "ok"),
        # 0.75 + 0.25 cos(pi n / 300) when right, and its negative when not
        ("length_cosine", "word " * 70 + "\n#### 22", 0.926776695, "ok"),  # 75: cos(pi/4)
        ("length_cosine", "word " * 145 + "\n#### 22", 0.75, "ok"),  # 150: cos(pi/2)
        ("length_cosine", "word " * 5_000 + "\n#### 22", 0.5, "ok"),  # held at its end
        ("length_cosine", "", -1.0, "unparsed"),
        ("length_cosine", "word " * 70 + "\n#### 21", -0.926776695, "wrong"),
        ("length_cosine", "word " * 150, -0.75, "unparsed"),
        ("length_cosine", "word " * 5_000, -0.5, "unparsed"),
        ("repetition", "a b c d e", 0.0, "ok"),
        ("repetition", "a b c d a b c d", -0.2, "ok"),
        ("reflection", HONEST, 0.0, "ok"),
        ("reflection", "wait", 0.5, "ok"),
        ("reflection", "wait wait wait", 1.0, "ok"),
        ("partial_credit", HONEST, 1.0, "ok"),
        ("partial_credit", "#### 11", 0.5, "wrong"),
        ("partial_credit", "#### 4400", 0.0, "wrong"),
        ("partial_credit", "#### 18 or 22", 0.0, "unparsed"),
        ("self_correction", "14 + 8 = 21. wait, 14 + 8 = 22.\n#### 22", 1.0, "ok"),
        ("self_correction", HONEST, 0.0, "ok"),
        ("self_correction", "#### 21", 0.0, "wrong"),
    ],
)
def test_a_component_pays_what_it_says(
    component: str, completion: str, value: float, status: str
) -> None:
    paid = _pay(component, _of(completion))
    assert paid.status == status
    assert paid.value == pytest.approx(value)


@pytest.mark.parametrize(
    ("completion", "value", "status"),
    [
        ("14 + 8 = 22. 22 * 3 = 66.\n#### 66", 1.0, "ok"),
        ("14 + 8 = 23. 22 * 3 = 66.\n#### 66", 0.0, "no steps"),  # 22 comes from nowhere
        ("14 + 8 = 22. 22 * 3 = 67. 67 - 1 = 66.\n#### 66", 0.0, "no steps"),  # so does 1
        ("14 + 8 = 22. 22 * 3 = 67.\n#### 67", 0.25, "wrong"),  # half of 1 of 2
        ("14 + 8 = 23. 23 * 3 = 70.\n#### 70", 0.0, "wrong"),
        ("14 * 3 = 42.\n#### 42", 0.5, "wrong"),  # true, and not the way
        ("#### 66", 0.0, "no steps"),
        ("#### 65", 0.0, "no steps"),
        ("14 + 8 = 22. 22 * 3 = 66.", 1.0, "ok"),  # lenient: the last sentence says 66
        ("14 + 8 = 22.\n#### 66 or 67", 0.0, "unparsed"),
    ],
)
def test_steps_pay_the_share_that_holds_and_half_of_it_for_a_wrong_answer(
    completion: str, value: float, status: str
) -> None:
    asked = Asked(prompt="Tom has 14 apples, buys 8 and sells each for $3. What does he earn?")
    paid = _pay("correct_steps", _of(completion, "66", asked=asked))
    assert paid == ComponentValue(value, status)


def test_steps_lead_to_a_countdown_expression_by_its_value() -> None:
    gold = '{"numbers": [4, 6, 2], "target": 20}'
    asked = Asked("answer_tag", "countdown", "Make 20 of 4, 6 and 2.")
    text = "4 + 6 = 10, 10 * 2 = 20. <answer>(4 + 6) * 2</answer>"
    assert _pay("correct_steps", _of(text, gold, asked=asked)) == ComponentValue(1.0, "ok")


def test_without_the_question_nothing_can_be_said_of_steps() -> None:
    assert _pay("correct_steps", _of(HONEST)) == ComponentValue(None, "error: no question")
    assert _pay("correct_steps", _of("")) == ComponentValue(0.0, "unparsed")


@pytest.mark.parametrize(
    ("gold", "completion", "value"),
    [
        ("4", r"\boxed{\frac{3}{4}}", 0.1875),  # 13/4 off, of 4
        (r"\frac{3}{4}", r"\boxed{\frac{1}{2}}", 0.75),  # a gold below 1: the plain distance
        (r"\frac{3}{2}", r"\boxed{x = 1.2}", 0.8),  # 0.3 off, of 1.5
        ("(1, 2)", r"\boxed{(1, 3)}", 0.0),
        (r"2\sqrt{3}", r"\boxed{2\sqrt{2}}", 0.0),
    ],
)
def test_partial_credit_reads_numbers_in_latex_as_numbers(
    gold: str, completion: str, value: float
) -> None:
    paid = _pay("partial_credit", _of(completion, gold, asked=Asked("boxed", "math")))
    assert paid == ComponentValue(value, "wrong")


def test_partial_credit_pays_no_expression_for_naming_the_target() -> None:
    gold = '{"numbers": [4, 6, 2], "target": 20}'
    response = _of("<answer>19</answer>", gold, asked=Asked("answer_tag", "countdown"))
    assert _pay("partial_credit", response) == ComponentValue(0.0, "wrong")


@pytest.mark.parametrize(
    ("answer_format", "completion", "status"),
    [
        ("boxed", "so $\\boxed{22}$.", "ok"),
        ("boxed", "so \\boxed{}", "empty"),
        ("boxed", "so \\boxed{22", "no statement"),
        ("answer_tag", "<think>a</think>\n<answer>22</answer>", "ok"),
        ("answer_tag", "working <answer>22</answer>", "ok"),
        ("answer_tag", "<think>a</think> so <answer>22</answer>", "text between the blocks"),
        ("answer_tag", "<think></think><answer>22</answer>", "empty"),
        ("answer_tag", "<answer>22", "no statement"),
        (r"pattern:RESULT=(\d+)", "so RESULT=22", "ok"),
        (r"pattern:RESULT=(\d+)", "RESULT=21 RESULT=22", "several statements"),
    ],
)
def test_every_asked_format_can_be_met(answer_format: str, completion: str, status: str) -> None:
    assert _pay("format", _of(completion, asked=Asked(answer_format))).status == status


def test_a_truncated_response_earns_nothing_and_says_so() -> None:
    cut = _of("#### 22", finish="length")
    for component in (
        "correct_strict",
        "correct_lenient",
        "format",
        "length",
        "partial_credit",
        "correct_steps",
    ):
        assert _pay(component, cut) == ComponentValue(0.0, "truncated")


def test_a_cut_response_is_charged_the_most_by_the_cosine_whatever_it_says() -> None:
    for text in ("#### 22\nand so on", "#### 22", "word " * 5_000, ""):
        cut = _of(text, finish="length")
        assert _pay("length_cosine", cut) == ComponentValue(-1.0, "truncated")


def test_an_error_is_none_with_its_status_and_never_a_silent_zero() -> None:
    bad_gold = _of(HONEST, gold="nan")
    for component in ("correct_strict", "correct_lenient", "format_gated", "partial_credit",
                      "self_correction", "length_cosine", "correct_steps"):  # fmt: skip
        assert _pay(component, bad_gold) == ComponentValue(None, "error: gold")


def test_the_random_component_is_a_hash_of_seed_step_prompt_and_sample() -> None:
    response = _of(HONEST, origin=Origin("p", step=5, sample=7, seed=3))
    expected = float(hashlib.sha256(b"3|5|p|7").digest()[0] & 1)
    assert _pay("random", response) == ComponentValue(expected, "ok")
    coins = [_pay("random", _of("", origin=Origin(step=step))).value for step in range(400)]
    assert 150 < sum(coin == 1.0 for coin in coins) < 250


def test_a_row_earns_the_same_wherever_it_stands_in_the_batch() -> None:
    rows = [_of(HONEST), _of("#### 21"), _of("wait, 22"), _of("", finish="length")]
    for component in COMPONENTS.values():
        assert component(rows[::-1]) == component(rows)[::-1]
        assert component([]) == []


def test_every_value_is_finite_or_none_on_hostile_completions() -> None:
    hostile = [
        "",
        "\0",
        "9" * 10_000,
        "#### " + "9" * 10_000,
        "wait " * 10_000,
        "\ud800",
        "#### 1e400",
    ]
    for component in COMPONENTS.values():
        for value in component([_of(text) for text in hostile]):
            assert value.value is None or math.isfinite(value.value)
