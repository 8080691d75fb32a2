"""Answers beside what they are without reflecting: counts by hand, verdicts, what is never said."""

from __future__ import annotations

from typing import Any, cast

import pytest
from msgspec.structs import replace

from ahalab.analyze.answers import Answers
from ahalab.analyze.causes import Checked, Setting, arm_effects, side_effects
from ahalab.records.answer import Answer
from ahalab.records.prompt import Prompt
from ahalab.records.reflection import Continuation, Ending, ReflectionEffect, Turn
from ahalab.records.terms import Outcome
from lab import PLAN, plan_of

QUESTIONS = 12
Case = tuple[bool, bool, bool]  # right as written, continued freely, without
CAUSED: Case = (True, True, False)
DECORATED: Case = (True, True, True)
HARMED: Case = (False, False, True)
NEVER: Case = (False, False, False)
BY_THE_CUT: Case = (True, False, False)


def prompt(at: int) -> Prompt:
    return Prompt(
        prompt_id=f"{at:05d}", question=f"{at} + 1 = ?", gold="1", source="here", split="eval",
        prompt_ids=(1,), prompt_tokens=1,
    )  # fmt: skip


def outcome(right: bool) -> Outcome:
    return "correct" if right else "wrong"


def ending(right: bool, ids: tuple[int, ...]) -> Ending:
    return Ending(
        completion="So.", completion_ids=ids, finish="eos", extracted=None, rule="none",
        status="ok", strict=outcome(right), lenient=outcome(right),
    )  # fmt: skip


def side(
    cases: list[Case], name: str = "base/answers", samples: int = 1, still: int = 0, plain: int = 0
) -> Checked:
    """Return a side: answers with a marker by case, the last `still` of them still reflecting."""
    rows: dict[tuple[str, int], Answer] = {}
    cut = []
    for n, (written, free, without) in enumerate(cases):
        key = (f"{n // samples:05d}", n % samples)
        rows[key] = Answer(
            protocol="p", side="base", prompt_id=key[0], sample=key[1], completion="Wait.",
            completion_ids=(5, 6), finish="eos", extracted=None, rule="none", status="ok",
            strict=outcome(written), lenient=outcome(written),
        )  # fmt: skip
        turn = Turn(at=0, marker="wait", wrote=(5,), forbidden=(5,))
        cut.append(
            Continuation(
                protocol="r",
                side="base",
                prompt_id=key[0],
                sample=key[1],
                turns=(turn,),
                kept=ending(free, (5, 6) if free == written else (5, 7)),
                without=ending(without, (8,)),
                reflects=n >= len(cases) - still,
            )
        )
    for n in range(len(cases), len(cases) + plain):
        base = next(iter(rows.values()), None)
        assert base is not None
        key = (f"{n:05d}", 0)
        rows[key] = replace(base, prompt_id=key[0], completion="So.")
    return Checked(Answers(name, cast(Any, None), rows), tuple(cut))


SETTING = Setting(plan_of(PLAN), [prompt(at) for at in range(QUESTIONS)])


def effect(*sides: Checked, of: int = 0) -> ReflectionEffect:
    return side_effects(SETTING, list(sides))[of].effects[0]


def test_answers_that_are_right_only_with_reflection_were_caused_by_it() -> None:
    found = effect(side([CAUSED] * 8 + [DECORATED] * 2 + [NEVER] * 2))
    assert (found.pairs, found.questions, found.gained, found.lost) == (12, 12, 8, 0)
    assert (found.correct_with, found.correct_without) == (10, 2)
    assert found.difference_points == pytest.approx(100 * 8 / 12)
    assert found.p_value == pytest.approx(0.5**8)  # mid-p of 8 to 0
    assert found.verdict == "caused right answers"
    assert found.sentence.startswith("Reflection caused right answers in the base (strict): of 12")
    assert "8 gained by reflecting, 0 lost" in found.sentence


def test_answers_that_are_right_only_without_it_are_its_fault() -> None:
    found = effect(side([HARMED] * 8 + [NEVER] * 4))
    assert (found.gained, found.lost, found.verdict) == (0, 8, "caused wrong answers")
    assert "Reflection caused wrong answers in the base" in found.sentence


def test_reflection_that_changes_nothing_is_no_evidence_and_says_what_went_unseen() -> None:
    found = effect(side([DECORATED] * 12))
    assert (found.verdict, found.difference_points) == ("no evidence", 0.0)
    assert found.interval_points is not None
    assert found.interval_points[0] < 0 < found.interval_points[1]
    assert "Too few answers changed to tell what could have gone unseen." in found.sentence


def test_a_change_that_free_continuations_share_may_be_the_cut_alone() -> None:
    found = effect(side([BY_THE_CUT] * 10 + [NEVER] * 2))
    assert (found.verdict, found.only_as_written) == ("no evidence", True)
    assert found.kept_difference_points == 0.0
    assert "it may be the cut alone" in found.sentence


def test_what_still_reflects_is_in_no_comparison_and_is_counted() -> None:
    (whole,) = side_effects(SETTING, [side([CAUSED] * 12, still=3)])
    assert (whole.marked, whole.still, whole.effects[0].pairs) == (12, 3, 9)
    assert "3 of 12 still reflect, and are left out." in whole.effects[0].sentence


def test_where_all_still_reflect_nothing_was_measured() -> None:
    found = effect(side([CAUSED] * 3, still=3))
    assert (found.verdict, found.interval_points, found.p_value) == ("not measured", None, None)
    assert "all 3 answers that reflect did so again" in found.sentence


def test_without_a_marker_there_is_no_answer_to_cut() -> None:
    answers = side([NEVER] * 2).answers
    found = effect(Checked(answers, ()))
    assert found.verdict == "no answer reflected"
    assert found.sentence.startswith("No answer of the base reflects")


def test_two_answers_to_a_question_are_one_unit() -> None:
    found = effect(side([CAUSED] * 12, samples=2))
    assert (found.pairs, found.questions) == (12, 6)
    assert found.p_value == pytest.approx(0.5**6)  # six pairs, not twelve


def test_holm_runs_over_the_sides() -> None:
    sides = [side([CAUSED] * 6 + [NEVER] * 6, name) for name in ("base/answers", "x", "y", "z")]
    found = effect(*sides)
    assert found.p_value == pytest.approx(0.5**6)
    assert found.p_holm == pytest.approx(4 * 0.5**6)
    assert found.verdict == "no evidence"


def test_an_adapter_is_told_by_its_arm_and_seed() -> None:
    found = effect(side([CAUSED] * 8, "arms/random/seed-2/answers"))
    assert "in this adapter (random, seed 2) (strict)" in found.sentence


def test_the_floor_tells_how_many_free_continuations_are_the_same() -> None:
    (one,) = side_effects(SETTING, [side([CAUSED] * 10 + [BY_THE_CUT] * 2)])
    assert (one.kept_same, one.kept_strict, one.kept_lenient) == (10, 2, 2)
    assert "10 of 12 answers came out the same to the token" in one.floor
    (all_same,) = side_effects(SETTING, [side([CAUSED] * 12)])
    assert "all 12 answers came out the same to the token" in all_same.floor


def test_one_seed_says_nothing_of_the_reward() -> None:
    sides = {("historical", 1): side([CAUSED] * 6 + [NEVER] * 6)}
    (strict, lenient) = arm_effects(SETTING, sides)
    assert (strict.metric, lenient.metric) == ("strict", "lenient")
    assert strict.difference_points == pytest.approx(50.0)
    assert (strict.interval_points, strict.verdict) == (None, "no evidence")
    assert "One seed cannot tell what the reward does" in strict.sentence


def test_over_seeds_what_reflecting_is_worth_counts_all_questions() -> None:
    plan = plan_of(PLAN.replace("seeds: [1]", "seeds: [1, 2, 3]"))
    setting = Setting(plan, [prompt(at) for at in range(QUESTIONS)])
    mixed = [CAUSED] * 9 + [NEVER] * 2
    sides = {("random", seed): side(mixed, plain=1) for seed in (1, 2, 3)}
    sides[("historical", 1)] = side(mixed)  # two of its seeds were not checked
    strict, _ = arm_effects(setting, sides)
    assert (strict.arm, strict.seeds) == ("random", 3)
    assert strict.difference_points == pytest.approx(100 * 9 / 12)
    assert strict.seed_differences_points == pytest.approx((75.0, 75.0, 75.0))
    assert strict.verdict == "caused right answers"
    assert "over 3 seeds reflection caused right answers: +75.0 points" in strict.sentence
