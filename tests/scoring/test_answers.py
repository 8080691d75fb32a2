from __future__ import annotations

import pytest

from ahalab.records.terms import Finish, Outcome
from ahalab.scoring.answers import SCORER_VERSION, Asked, check_gold, score_answer


def _lenient(response: str, gold: str, finish: Finish = "eos") -> Outcome:
    return score_answer(response, gold, finish).lenient.outcome


@pytest.mark.parametrize(
    ("response", "gold", "strict", "lenient", "rule"),
    [
        ("14 + 8 = 22. wait, 14 + 8 = 23.\n#### 23", "23", "correct", "correct", "hashes"),
        ("7 * 6 = 42. The answer is 42.", "42", "unparsed", "correct", "statement"),
        ("7 * 6 = 42. So it is 42 in all.", "42", "unparsed", "correct", "final_sentence"),
        ("7 * 6 = 42.\nAnswer: 42", "42", "unparsed", "correct", "statement"),
        ("14 + 8 = 22. wait, 14 + 8 = 23.", "23", "unparsed", "correct", "final_equation"),
        ("14 + 8 = 22. wait, 14 + 8 = 23.", "22", "unparsed", "wrong", "final_equation"),
        ("So \\boxed{42}.", "42", "unparsed", "correct", "boxed"),
        ("<answer>42</answer>", "42", "unparsed", "correct", "answer_tag"),
        ("I cannot help with that.", "42", "unparsed", "unparsed", "none"),
    ],
)
def test_strict_needs_the_asked_format_and_lenient_any_clear_statement(
    response: str, gold: str, strict: str, lenient: str, rule: str
) -> None:
    score = score_answer(response, gold)
    assert (score.strict.outcome, score.lenient.outcome) == (strict, lenient)
    assert score.lenient.rule == rule


@pytest.mark.parametrize(
    ("answer_format", "response"),
    [
        ("hashes", "so\n#### 42"),
        ("boxed", "so \\boxed{42}"),
        ("answer_tag", "so <answer>42</answer>"),
        (r"pattern:RESULT=(\d+)", "so RESULT=42"),
    ],
)
def test_every_asked_format_has_its_strict_reading(answer_format: str, response: str) -> None:
    strict = score_answer(response, "42", asked=Asked(answer_format)).strict
    assert (strict.outcome, strict.extracted) == ("correct", "42")


@pytest.mark.parametrize(
    ("response", "gold"),
    [
        ("First \\boxed{30}. Wait, I forgot one; it is \\boxed{36}.", "36"),
        ("#### 42\nWait, the answer is 43.", "43"),
        ("#### 42\nWait, actually it is 43.", "43"),
        ("The answer is 22. wait, 14 + 8 = 23. So it is 23 in all.", "23"),
        ("The answer is not 18 but 20.", "20"),
        ("It should be 18, not 20.", "18"),
        ("At first I said 50, but that is wrong; the only answer is 60.", "60"),
    ],
)
def test_the_last_explicit_statement_wins(response: str, gold: str) -> None:
    assert _lenient(response, gold) == "correct"


def test_a_strict_answer_that_is_taken_back_later_is_not_correct() -> None:
    score = score_answer("#### 42\nWait, the answer is 43.", "42")
    assert (score.strict.outcome, score.strict.status) == ("wrong", "superseded")


@pytest.mark.parametrize(
    "response",
    [
        "The answer is 18 or 20.", "#### 18 or 20", "#### 20\n#### 18", "It must be 5, 6 or 18.",
        "<answer>20</answer><answer>18</answer>", "18 19 20", "20, 19, 18", "1\n2\n3\n18",
        "The answer is between 18 and 20.", "The answer is 18 to 20.", "The answers are 18 and 20.",
        "Could be \\boxed{20}. Could be \\boxed{18}.", "#### 20 #### 18", "It is 18 (or 20).",
        "The answer is 18, though it might be 20.", "I cannot tell, x or 18.",
        "The answer is 20. Alternatively, the answer is 18.",
    ],
)  # fmt: skip
def test_a_hedge_commits_to_nothing(response: str) -> None:
    lenient = score_answer(response, "18").lenient
    assert (lenient.outcome, lenient.status) == ("unparsed", "unparsed: hedged")


@pytest.mark.parametrize(
    "response", ["#### 18", "The answer is 18 or 18.0", "It costs 18 euros (€18)."]
)
def test_saying_the_same_value_twice_is_no_hedge(response: str) -> None:
    assert _lenient(response, "18") == "correct"


@pytest.mark.parametrize(
    ("response", "outcome"),
    [
        ("#### 12", "truncated"),  # more digits may have followed
        ("#### 12\n", "correct"),
        ("The answer is 12.", "truncated"),
        ("The answer is 12. Then", "correct"),
        ("\\boxed{12}", "correct"),
        ("\\boxed{12", "truncated"),
        ("<answer>12</answer>", "correct"),
        ("<answer>12", "truncated"),
        ("So it is 12 in all. And then", "truncated"),
        ("The answer is 12. Wait, I", "truncated"),
        ("#### 13\nnext", "wrong"),
        ("", "truncated"),
    ],
)
def test_a_cut_response_counts_only_a_complete_statement(response: str, outcome: str) -> None:
    assert _lenient(response, "12", "length") == outcome


@pytest.mark.parametrize(
    ("response", "gold", "outcome"),
    [
        ("<think>#### 18</think>", "18", "unparsed"),
        ("<think>5</think> The answer is 18.", "18", "correct"),
        ("thinking</think>\n#### 18", "18", "correct"),
        ("<think>never closed #### 18", "18", "unparsed"),
        ("<think>never closed <answer>18</answer>", "18", "correct"),
        ("#### 42\n\nQuestion: How many?\nAnswer: 7\n#### 7", "42", "correct"),
        ("#### 42\n\nQuestion: How many?\nAnswer: 7\n#### 7", "7", "wrong"),
        ("#### 42<|im_end|>\n#### 7", "42", "correct"),
        ("Question: How many?\n#### 42", "42", "correct"),
        ("#### Step 1: add\n5 apples\n#### 42", "42", "correct"),
    ],
)
def test_thinking_and_a_new_question_do_not_answer(response: str, gold: str, outcome: str) -> None:
    assert _lenient(response, gold) == outcome


def test_an_echo_of_the_prompt_is_not_an_answer() -> None:
    prompt = "Reply as in <answer>18</answer>. How many days are in three weeks?"
    echo = score_answer(prompt, "18", asked=Asked("answer_tag", prompt=prompt))
    assert (echo.strict.outcome, echo.lenient.outcome) == ("unparsed", "unparsed")
    answered = score_answer(prompt + " <answer>21</answer>", "21", asked=Asked(prompt=prompt))
    assert answered.lenient.outcome == "correct"


@pytest.mark.parametrize(
    ("response", "gold", "outcome"),
    [
        ("#### 25%", "25", "correct"),
        ("#### 25%", "0.25", "correct"),
        ("#### 0.25", "25", "wrong"),
        ("#### 500%", "5", "wrong"),
        ("#### 1/3", "0.333333", "correct"),
        ("#### 0.33", "0.333333", "wrong"),
        ("#### 33.3", "33.33", "wrong"),
        ("#### 1000001", "1000000", "wrong"),
        ("#### 2 hours and 30 minutes", "2.5", "correct"),
        ("#### 3 dollars and 50 cents", "3.5", "correct"),
        ("#### 5 + 3", "8", "unparsed"),
        ("#### 5 + 3 = 8", "8", "correct"),
        ("#### 8 = 5 + 3", "8", "correct"),
        ("The answer is 42, since 6*8 = 48.", "42", "correct"),
    ],
)
def test_units_percent_rounding_and_equations_follow_the_stated_rules(
    response: str, gold: str, outcome: str
) -> None:
    assert _lenient(response, gold) == outcome


@pytest.mark.parametrize(
    ("response", "extracted"),
    [("so\n#### 1\u200b8 apples", "1\u200b8 apples"), ("\ufeff#### ２５．５", "２５．５"),
     ("He paid $18.", "$18"), ("\u200b\u200bThe answer is **−5**.", "−5")],
)  # fmt: skip
def test_the_span_points_at_the_extracted_text_in_the_original_response(
    response: str, extracted: str
) -> None:
    reading = score_answer(response, "18").lenient
    assert reading.span is not None
    assert reading.extracted == response[slice(*reading.span)] == extracted


@pytest.mark.parametrize(
    ("gold", "task", "fine"),
    [
        ("18", "gsm8k", True), ("1,234.5", "gsm8k", True), ("nan", "gsm8k", False),
        ("", "gsm8k", False), ("18 or 20", "gsm8k", False), ("9" * 5_000, "gsm8k", False),
        (r"\frac{1}{2}", "math", True), ("(1, 2)", "math", True), ("", "math", False),
        ("The second path is five times as long as the first.", "math", False),
        ('{"numbers": [1, 2], "target": 3}', "countdown", True),
        ('{"numbers": [], "target": 3}', "countdown", False),
        ('{"numbers": [1, true], "target": 3}', "countdown", False),
        ("[" * 100_000, "countdown", False), ("3", "countdown", False),
    ],
)  # fmt: skip
def test_a_gold_that_cannot_be_read_is_named_before_it_is_used(
    gold: str, task: str, fine: bool
) -> None:
    assert (check_gold(gold, task) is None) is fine
    if not fine:
        lenient = score_answer("#### 3", gold, asked=Asked(task=task)).lenient
        assert (lenient.outcome, lenient.status) == ("error", "error: gold")


@pytest.mark.parametrize(
    "asked",
    [
        Asked(task="chess"), Asked("hash"), Asked("pattern:no group"), Asked("pattern:(a"),
        Asked("pattern:(a)(b)"), Asked("pattern:((a+)+)"), Asked("pattern:(a*)*b"),
        Asked(r"pattern:(a)\1"), Asked("pattern:a*b*c*(d)"), Asked("pattern:(" + "a" * 400 + ")"),
    ],
)  # fmt: skip
def test_an_unknown_task_or_an_unsafe_format_is_refused(asked: Asked) -> None:
    with pytest.raises(ValueError, match="expected"):
        score_answer("#### 1", "1", asked=asked)


@pytest.mark.parametrize(
    ("response", "gold"),
    [
        ("He has 18 left.", "18"), ("She sold 72 clips over the 2 months.", "72"),
        ("In 3 days she walks 18 miles.", "18"), ("With 5 friends, each gets 18.", "18"),
        ("Thus 15 of the 40 walk.", "15"), ("Out of 40, 15 walk.", "15"),
        ("It falls by 5, so it is now -3 degrees.", "-3"), ("She earns 6 * 3 = $18 a day.", "18"),
        ("There are 10 things:\n1. cubes (4)\n2. balls (6)", "10"),
        ("Steps.\n1. He buys 5.\n2. He has 18.", "18"),
        ("He has 18.\n\n(Step 3 of 3 complete.)", "18"), ("He has 18. Is it 20?", "18"),
    ],
)  # fmt: skip
def test_the_final_sentence_is_read_where_nothing_is_stated_more_clearly(
    response: str, gold: str
) -> None:
    assert _lenient(response, gold) == "correct"


@pytest.mark.parametrize(
    ("pattern", "response", "outcome"),
    [
        (r"Answer: (\S+)", "Answer: 18", "correct"),
        (r"Answer: (\S+)", "Answer: 18 apples", "correct"),
        (r"Answer: (\S+)", "Answer: 18\nOne or two remain.", "correct"),
        (r"Answer: (\S+)", "Answer: 18 or 20", "unparsed"),
        (r"Answer: (\S+)", "Answer: 18 to 20", "unparsed"),
        (r"Answer: (\d+)", "Answer: 18-20", "unparsed"),
        (r"Answer: (\d+)", "Answer: 18.5", "unparsed"),
        (r"Answer: (\d+)", "Answer: 18,500", "unparsed"),
        (r"Answer: (\d+)", "Answer: 18.00", "correct"),
        (r"Answer: (\d+)", "Answer: 18 + 2 = 20", "unparsed"),
        (r"\*\*(\d+)\*\*", "It is **18** or **20**", "unparsed"),
        (r'"answer": (\d+)', '{"answer": 18, "steps": 3}', "correct"),
    ],
)
@pytest.mark.parametrize("task", ["gsm8k", "math"])
def test_a_pattern_does_not_cut_a_hedge_or_a_number_short(
    task: str, pattern: str, response: str, outcome: str
) -> None:
    asked = Asked(f"pattern:{pattern}", task)
    assert score_answer(response, "18", asked=asked).strict.outcome == outcome


@pytest.mark.parametrize(
    ("response", "gold"),
    [
        ("So the net profit from selling 20 candles is -$360.", "-360"),
        ("So she works for 250,000 years to save for 20 years, living with 40% of it.", "250000"),
        ("The cost of 3 pens and 4 books is $18.", "18"), ("5 pens and 3 books cost $18.", "18"),
        ("Subtracting 5 from 23 gives 18.", "18"), ("To reach 100, he must save 18 more.", "18"),
        ("He has 18. Check: 18 + 5 = 23.", "18"), ("He has 18, which is 3 more than Tom.", "18"),
    ],
)  # fmt: skip
def test_the_number_that_the_final_sentence_is_about_is_its_value(response: str, gold: str) -> None:
    assert _lenient(response, gold) == "correct"


@pytest.mark.parametrize(
    "response",
    [
        "It means that she needs more than 18 boxes.", "She has 18 \\times \\text{boxes}.",
        "Cost = 18 * price - 4", "2x = 18", "x + 5 = 18", "We need to find how many 18 trays hold.",
        "We have 18 trays. I cannot solve this.", "The answer is neither 18 nor 20.",
    ],
)  # fmt: skip
def test_a_bound_an_unknown_a_restatement_and_a_refusal_say_no_value(response: str) -> None:
    assert _lenient(response, "18") != "correct"


def test_the_scorer_carries_a_version() -> None:
    assert SCORER_VERSION == "2"
