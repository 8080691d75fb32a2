"""Attacks on a reward: none is right, and what an arm pays them is known by hand."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ahalab.scoring.answers import Asked, score_answer
from ahalab.scoring.arms import BUILT_IN_ARMS, resolve_arm
from ahalab.scoring.attack_cases import (
    QUESTIONS,
    WRITTEN,
    Answer,
    Case,
    attack_cases,
    number_problem,
)
from ahalab.scoring.attacks import ATTACKS, ArmCheck, Attack, _result, check_arm
from ahalab.scoring.countdown import read_countdown_gold, solves

ANY_ANSWER = r"pattern:Answer: (.+)"
FORMATS = (*WRITTEN, ANY_ANSWER, r"pattern:The answer is (\d+)\.")
ASKED = [("gsm8k", form) for form in FORMATS]
ASKED += [(task, form) for task in ("math", "countdown") for form in (*WRITTEN, ANY_ANSWER)]


def checked(answer_format: str = "hashes", task: str = "gsm8k", **weights: float) -> ArmCheck:
    return check_arm(resolve_arm("mine", weights), answer_format, task)


def paid(check: ArmCheck) -> dict[str, float | None]:
    return {attack.name: attack.paid for attack in check.attacks if attack.pays}


@pytest.mark.parametrize(("task", "answer_format"), ASKED)
def test_an_honest_answer_is_read_as_it_was_meant(task: str, answer_format: str) -> None:
    for case in attack_cases(answer_format, task):
        asked = Asked(answer_format, task, case.question)
        right = score_answer(case.honest(case.problem.right), case.gold, asked=asked)
        wrong = score_answer(case.honest(case.problem.wrong), case.gold, asked=asked)
        assert (right.strict.outcome, right.lenient.outcome) == ("correct", "correct")
        assert (wrong.strict.outcome, wrong.lenient.outcome) == ("wrong", "wrong")


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
@pytest.mark.parametrize(("task", "answer_format"), ASKED)
def test_no_attack_is_scored_correct_on_any_question(
    task: str, answer_format: str, attack: Attack
) -> None:
    for case in attack_cases(answer_format, task):
        for prompt in (None, case.question, case.prompt):
            asked = Asked(answer_format, task, prompt)
            score = score_answer(attack.write(case), case.gold, attack.finish, asked)
            assert score.strict.outcome != "correct"
            assert score.lenient.outcome != "correct"


@settings(max_examples=60, deadline=None)
@given(
    gold=st.integers(10, 2_000),
    slip=st.integers(-9, 60).filter(bool),
    answer_format=st.sampled_from(sorted(WRITTEN)),
    attack=st.sampled_from(ATTACKS),
)
def test_no_attack_is_scored_correct_whatever_the_gold(
    gold: int, slip: int, answer_format: str, attack: Attack
) -> None:
    other = Answer(str(gold + 70), f"We get {gold} + 70 = {gold + 70}.")
    problem = number_problem("How many are left?", gold, gold + slip, f"{gold} + 0", other)
    case = Case(0, problem, "How many are left? Say it.", WRITTEN[answer_format])
    asked = Asked(answer_format=answer_format)
    score = score_answer(attack.write(case), case.gold, attack.finish, asked)
    assert "correct" not in (score.strict.outcome, score.lenient.outcome)


def test_the_questions_are_always_the_same_and_do_not_say_their_answers() -> None:
    first, last = attack_cases("hashes"), attack_cases("boxed")
    assert [case.question for case in first] == [case.question for case in last]
    assert len({case.question for case in first}) == QUESTIONS
    for case in first:
        gold, wrong = case.gold, case.problem.wrong.text
        numbers = re.findall(r"\d+", case.prompt)
        assert gold not in numbers
        assert wrong not in numbers
        assert _worked_out(case.problem.right) == int(gold)
        assert _worked_out(case.problem.other) == int(case.problem.other.text) != int(gold)
        assert len(gold) >= 2
        assert 1 <= int(wrong) - int(gold) <= 3
        assert int(case.problem.near) - int(gold) == 1
        assert gold in case.problem.guesses


def _worked_out(answer: Answer) -> int:
    _, _, left, sign, right, _, stated = answer.work.rstrip(".").split()
    assert stated == answer.text
    a, b = int(left), int(right)
    return {"+": a + b, "-": a - b, "*": a * b}[sign]


def test_the_golds_of_mathematics_are_fractions_roots_intervals_and_numbers() -> None:
    golds = [case.gold for case in attack_cases("boxed", "math")]
    # 1/3 + 1/4, the root of 32, 4 < 2x and x + 1 <= 12, 25 - 3; then the next of each kind
    assert golds[:8] == [
        r"\frac{7}{12}", r"4\sqrt{2}", "(2, 11]", "22", r"\frac{9}{20}", r"5\sqrt{3}", "(3, 13]",
        "31",
    ]  # fmt: skip
    assert len(set(golds)) == QUESTIONS


def test_countdown_questions_can_be_solved_and_their_wrong_answers_do_not() -> None:
    for case in attack_cases("answer_tag", "countdown"):
        gold = read_countdown_gold(case.gold)
        assert gold is not None
        assert str(gold.target) in case.question
        problem = case.problem
        assert solves(problem.right.text, gold)
        for wrong in (problem.wrong.text, problem.other.text, problem.near):
            assert not solves(wrong, gold)


def test_an_unknown_task_is_refused() -> None:
    with pytest.raises(ValueError, match="expected one of gsm8k, math, countdown, found 'maths'"):
        check_arm(BUILT_IN_ARMS["correctness"], task="maths")


def test_attacks_have_names_of_their_own() -> None:
    names = [attack.name for attack in ATTACKS]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z-]+", name) for name in names)


@pytest.mark.parametrize(
    ("arm", "right", "wrong"),
    [
        ("correctness", 1.0, 0.0),
        ("historical", 1.0, 0.0),
        ("additive_format", 1.2, 0.2),
        ("gated_format", 1.2, 0.0),
        ("format_only", 1.0, 1.0),
        ("length_budget", 1.2, 0.2),
        ("reflection_bonus", 1.0, 0.0),
    ],
)
@pytest.mark.parametrize("answer_format", WRITTEN)
def test_honest_answers_earn_what_the_formula_says(
    arm: str, right: float, wrong: float, answer_format: str
) -> None:
    check = check_arm(BUILT_IN_ARMS[arm], answer_format)
    assert check.honest_right == pytest.approx(right)
    assert check.honest_wrong == pytest.approx(wrong)


def test_partial_credit_pays_an_honest_slip_by_its_distance_and_a_guess_next_to_the_gold_more() -> (
    None
):
    check = check_arm(BUILT_IN_ARMS["partial_credit"])
    cases = attack_cases("hashes")
    slips = [1 - (int(c.problem.wrong.text) - int(c.gold)) / int(c.gold) for c in cases]
    nearest = [1 - 1 / int(c.gold) for c in cases]
    assert check.honest_right == pytest.approx(1.5)
    assert check.honest_wrong == pytest.approx(0.5 * sum(slips) / QUESTIONS)
    assert paid(check) == {"near-gold": pytest.approx(0.5 * sum(nearest) / QUESTIONS)}


@pytest.mark.parametrize(("task", "answer_format"), ASKED)
@pytest.mark.parametrize(
    "arm", ["correctness", "additive_format", "gated_format", "format_only", "length_budget"]
)
def test_these_arms_pay_no_attack_in_any_format_and_task(
    arm: str, task: str, answer_format: str
) -> None:
    check = check_arm(BUILT_IN_ARMS[arm], answer_format, task)
    # `hashes` asks for a bare number: the format does not pay LaTeX, and pays a rounded root.
    allowed = {"near-gold"} if (task, answer_format) == ("math", "hashes") else set()
    assert set(check.paying) <= allowed


@pytest.mark.parametrize(
    ("answer_format", "expected"),
    [
        # The first `####` up to the line's end: what follows it, and the thinking, are not seen.
        # A cut answer is one as good as any, in all of them.
        ("hashes", {"thinking-only", "right-then-changed", "right-but-cut"}),
        # No `####` and no `<answer>`: the last number of the text.
        ("boxed", {"hedge-right-last", "thinking-only", "right-but-cut", "run-on"}),
        # The last `<answer>`: a change in prose is not seen, an own second question is.
        ("answer_tag", {"thinking-only", "right-then-changed", "right-but-cut", "run-on"}),
    ],
)
def test_the_training_parser_pays_what_its_rules_say(
    answer_format: str, expected: set[str]
) -> None:
    check = check_arm(BUILT_IN_ARMS["historical"], answer_format)
    assert paid(check) == dict.fromkeys(expected, 1.0)


def test_a_bonus_for_reflection_pays_its_words_alone() -> None:
    check = check_arm(BUILT_IN_ARMS["reflection_bonus"])
    # one "Wait" is half of the limit of two; the musing has more than two markers
    assert paid(check) == {
        "right-then-changed": pytest.approx(0.1), "empty-reflection": pytest.approx(0.2),
    }  # fmt: skip


def test_the_cosine_pays_a_wrong_answer_for_its_length() -> None:
    check = checked(correct_strict=1.0, length_cosine=0.2)
    # An honest wrong answer of some 15 words and signs loses nearly all of 0.2, a very long half.
    assert check.honest_wrong == pytest.approx(-0.2, abs=0.001)
    assert paid(check)["very-long"] == pytest.approx(-0.1)
    assert {"trivial-steps", "random-text", "every-number", "repeated-tags"} <= set(check.paying)
    assert not {"empty", "tags-only", "right-but-cut", "near-gold"} & set(check.paying)


@pytest.mark.parametrize("answer_format", WRITTEN)
def test_steps_pay_a_true_calculation_that_was_not_asked_for_and_no_trivial_ones(
    answer_format: str,
) -> None:
    check = checked(answer_format, correct_strict=1.0, correct_steps=0.5)
    assert (check.honest_right, check.honest_wrong) == (1.5, 0.0)
    assert paid(check) == {"wrong-operation": pytest.approx(0.25)}  # half of all steps
    for task in ("math", "countdown"):
        paying = set(checked(answer_format, task, correct_strict=1.0, correct_steps=0.5).paying)
        assert paying == {"wrong-operation"}


def test_a_charge_for_length_pays_silence_and_rambling() -> None:
    # Short texts cost 1, an empty one and one beyond the budget nothing.
    check = checked(correct_strict=1.0, length=-1.0)
    assert (check.honest_right, check.honest_wrong) == (0.0, -1.0)
    assert {"empty", "very-long"} <= set(paid(check))
    assert not {"refusal", "flattery", "right-then-changed"} & set(paid(check))
    assert paid(check)["empty"] == 0.0


def test_a_reward_for_repetition_pays_what_repeats() -> None:
    # Words and signs are counted: parentheses and asterisks repeat too.
    check = checked(correct_strict=1.0, repetition=-1.0)
    assert (check.honest_right, check.honest_wrong) == (1.0, 0.0)
    assert {"repeated-tags", "very-long", "deep-parentheses", "huge-power"} <= set(check.paying)
    assert not {"empty", "hedge", "refusal", "flattery", "every-number"} & set(check.paying)


def test_a_pattern_that_cuts_a_hedge_short_pays_none() -> None:
    # One word is captured: of `Answer: 18 or 20` that is the 18, and a hedge goes on from it.
    check = check_arm(BUILT_IN_ARMS["correctness"], r"pattern:Answer: (\S+)")
    assert paid(check) == {}


def test_an_arm_that_pays_a_wrong_format_pays_every_attack_without_it() -> None:
    check = checked(format=-1.0)
    assert (check.honest_right, check.honest_wrong) == (-1.0, -1.0)
    stated = {"near-gold", "trivial-steps", "wrong-operation"}  # in the asked format
    assert set(check.paying) == {attack.name for attack in ATTACKS} - stated


def test_marks_without_an_answer_earn_no_format() -> None:
    for answer_format in WRITTEN:
        check = check_arm(BUILT_IN_ARMS["format_only"], answer_format)
        found = {attack.name: attack.paid for attack in check.attacks}
        assert found["tags-only"] == found["repeated-tags"] == 0.0
        assert not check.right_pays


def test_the_same_for_everything_pays_no_attack_and_nothing_for_being_right() -> None:
    check = checked(constant=1.0)
    assert check.paying == ()
    assert not check.right_pays
    assert checked(correct_strict=1.0).right_pays


def test_a_coin_is_paid_alike_on_the_same_draws() -> None:
    check = check_arm(BUILT_IN_ARMS["random"])
    assert 0.4 < check.honest_wrong < 0.6  # 384 coins: 0.5, four standard errors of 0.0255 around
    assert check.honest_right == check.honest_wrong
    assert check.paying == ()
    for attack in check.attacks:
        assert (attack.low, attack.high, attack.excess) == (0.0, 1.0, 0.0)


def test_a_coin_hides_no_attack() -> None:
    check = checked(historical_correct=1.0, random=5.0)
    assert check.paying == ("thinking-only", "right-then-changed", "right-but-cut")
    excess = {attack.name: attack.excess for attack in check.attacks}
    assert excess["thinking-only"] == pytest.approx(1.0)


def test_without_draws_one_paid_question_of_many_is_enough() -> None:
    result = _result("x", [1.0] + [0.0] * 23, [0.0] * 24, draws=1)
    assert result.pays
    assert (result.paid, result.low, result.high) == (pytest.approx(1 / 24), 0.0, 1.0)


def test_noise_of_the_draws_within_three_standard_errors_is_no_payment() -> None:
    # Differences 1 -1 1 -1 and 1 0 0 0: mean 1/8. Their variances are 4/3 and 1/4, so the
    # error of the mean is sqrt(4 * 4/3 + 4 * 1/4) / 8 = 0.3146.
    noisy = [1.0, -1.0, 1.0, -1.0, 1.0, 0.0, 0.0, 0.0]
    result = _result("x", noisy, [0.0] * 8, draws=4)
    assert result.excess == 0.125
    assert not result.pays
    assert _result("x", [r + 0.81 for r in noisy], [0.0] * 8, draws=4).excess == pytest.approx(
        0.935
    )
    assert not _result("x", [r + 0.81 for r in noisy], [0.0] * 8, draws=4).pays  # 3 x 0.3146
    assert _result("x", [r + 0.83 for r in noisy], [0.0] * 8, draws=4).pays


def test_a_response_without_a_reward_is_counted_and_is_not_a_zero() -> None:
    result = _result("x", [None, 1.0, None, 1.0], [1.0, 1.0, 1.0, 1.0], draws=1)
    assert (result.paid, result.excess, result.pays, result.unrewarded) == (1.0, 0.0, False, 2)
    none = _result("x", [None, None], [0.0, 0.0], draws=1)
    assert (none.paid, none.low, none.excess, none.pays, none.unrewarded) == (
        None, None, None, False, 2,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("answer_format", "told"),
    [
        ("xml", "expected hashes, boxed, answer_tag or pattern:REGEX, found 'xml'"),
        ("pattern:(", "answer format: expected a pattern"),
        (r"pattern:zzz(\d+)", "expected a pattern that reads one of the usual ways"),
    ],
)
def test_an_answer_format_in_which_nothing_can_be_written_is_refused(
    answer_format: str, told: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        check_arm(BUILT_IN_ARMS["correctness"], answer_format)
