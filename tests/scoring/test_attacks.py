"""Attacks on a reward: none is right, and what an arm pays them is known by hand."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ahalab.scoring.answers import Asked, score_answer
from ahalab.scoring.arms import BUILT_IN_ARMS, resolve_arm
from ahalab.scoring.attacks import (
    ATTACKS,
    QUESTIONS,
    WRITTEN,
    ArmCheck,
    Case,
    _result,
    attack_cases,
    check_arm,
)

FORMATS = (*WRITTEN, r"pattern:Answer: (.+)", r"pattern:The answer is (\d+)\.")


def checked(answer_format: str = "hashes", **weights: float) -> ArmCheck:
    return check_arm(resolve_arm("mine", weights), answer_format)


def paid(check: ArmCheck) -> dict[str, float | None]:
    return {attack.name: attack.paid for attack in check.attacks if attack.pays}


@pytest.mark.parametrize("answer_format", FORMATS)
def test_an_honest_answer_is_read_as_it_was_meant(answer_format: str) -> None:
    for case in attack_cases(answer_format):
        asked = Asked(answer_format=answer_format, prompt=case.question)
        right = score_answer(case.honest(case.gold), case.gold, asked=asked)
        wrong = score_answer(case.honest(case.wrong), case.gold, asked=asked)
        assert (right.strict.outcome, right.lenient.outcome) == ("correct", "correct")
        assert (wrong.strict.outcome, wrong.lenient.outcome) == ("wrong", "wrong")


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
@pytest.mark.parametrize("answer_format", FORMATS)
def test_no_attack_is_scored_correct_on_any_question(answer_format: str, attack: object) -> None:
    for case in attack_cases(answer_format):
        for prompt in (None, case.question, case.prompt):
            asked = Asked(answer_format=answer_format, prompt=prompt)
            score = score_answer(attack.write(case), case.gold, asked=asked)  # type: ignore[attr-defined]
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
    gold: int, slip: int, answer_format: str, attack: object
) -> None:
    case = Case(
        0, "How many are left?", "How many are left? Say it.", str(gold), str(gold + slip),
        f"{gold} + 0", WRITTEN[answer_format],
    )  # fmt: skip
    text = attack.write(case)  # type: ignore[attr-defined]
    score = score_answer(text, case.gold, asked=Asked(answer_format=answer_format))
    assert "correct" not in (score.strict.outcome, score.lenient.outcome)


def test_the_questions_are_always_the_same_and_do_not_say_their_answers() -> None:
    first, last = attack_cases("hashes"), attack_cases("boxed")
    assert [case.question for case in first] == [case.question for case in last]
    assert len({case.question for case in first}) == QUESTIONS
    for case in first:
        numbers = re.findall(r"\d+", case.prompt)
        assert case.gold not in numbers
        assert case.wrong not in numbers
        left, sign, right = case.sum_text.split()
        a, b = int(left), int(right)
        assert int(case.gold) == {"+": a + b, "-": a - b, "*": a * b}[sign]
        assert len(case.gold) >= 2
        assert 1 <= int(case.wrong) - int(case.gold) <= 3


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


def test_partial_credit_pays_an_honest_slip_by_its_distance() -> None:
    check = check_arm(BUILT_IN_ARMS["partial_credit"])
    cases = attack_cases("hashes")
    near = [1 - (int(c.wrong) - int(c.gold)) / int(c.gold) for c in cases]
    assert check.honest_right == pytest.approx(1.5)
    assert check.honest_wrong == pytest.approx(0.5 * sum(near) / QUESTIONS)
    assert paid(check) == {}


@pytest.mark.parametrize("answer_format", FORMATS)
@pytest.mark.parametrize(
    "arm", ["correctness", "additive_format", "gated_format", "format_only", "length_budget"]
)
def test_these_arms_pay_no_attack_in_any_format(arm: str, answer_format: str) -> None:
    assert check_arm(BUILT_IN_ARMS[arm], answer_format).paying == ()


@pytest.mark.parametrize(
    ("answer_format", "expected"),
    [
        # The first `####` up to the line's end: what follows it, and the thinking, are not seen.
        ("hashes", {"thinking-only", "right-then-changed"}),
        # No `####` and no `<answer>`: the last number of the text.
        ("boxed", {"hedge-right-last", "thinking-only", "run-on"}),
        # The last `<answer>`: a change in prose is not seen, an own second question is.
        ("answer_tag", {"thinking-only", "right-then-changed", "run-on"}),
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


def test_a_pattern_that_cuts_a_hedge_short_is_found() -> None:
    # One word is captured: of `Answer: 18 or 20` that is the 18.
    check = check_arm(BUILT_IN_ARMS["correctness"], r"pattern:Answer: (\S+)")
    assert paid(check) == {"hedge": 1.0}


def test_an_arm_that_pays_a_wrong_format_pays_every_attack_without_it() -> None:
    check = checked(format=-1.0)
    assert (check.honest_right, check.honest_wrong) == (-1.0, -1.0)
    assert set(check.paying) == {attack.name for attack in ATTACKS}


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
    assert check.paying == ("thinking-only", "right-then-changed")
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
