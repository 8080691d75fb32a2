"""The sentences a person quotes, read as by one who never saw the code."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ahalab.analyze.sentences import (
    AdapterFinding,
    Finding,
    adapter_sentence,
    arm_sentence,
    interval,
    points,
    probability,
)

FINDING = Finding(
    arm="correctness",
    metric="strict",
    seeds=3,
    control_seeds=None,
    accuracy=0.439,
    reference="the base",
    reference_accuracy=0.312,
    difference_points=12.7,
    interval_points=(9.0, 16.4),
    p_holm=0.0004,
    confidence=0.95,
    margin_points=2.0,
    detectable_points=5.23,
    verdict="improved",
)
ADAPTER = AdapterFinding(
    name="random, seed 0",
    metric="lenient",
    difference_points=-1.5,
    told="told",
    margin_points=2.0,
    detectable_points=3.3,
    verdict="improved",
)
CONTROL = replace(
    FINDING, reference="the control arm random", control_seeds=3, reference_accuracy=0.3
)


@pytest.mark.parametrize(
    ("p", "shown"),
    [(None, "p undefined"), (0.0, "p < .001"), (0.00099, "p < .001"), (0.001, "p = .001"),
     (0.041, "p = .041"), (0.5, "p = .500"), (0.9994, "p = .999"), (0.9996, "p = 1.00"),
     (1.0, "p = 1.00")],
)  # fmt: skip
def test_p_values_are_printed_without_a_leading_zero(p: float | None, shown: str) -> None:
    assert probability(p) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(3.21, "+3.2"), (-0.4, "−0.4"), (0.0, "0.0"), (-0.0, "0.0"), (-0.04, "0.0"), (0.04, "0.0"),
     (-12.35, "−12.3"), (100.0, "+100.0")],
)  # fmt: skip
def test_differences_have_a_sign_a_true_minus_and_no_signed_zero(value: float, shown: str) -> None:
    assert points(value) == shown


def test_an_interval_says_its_level_and_what_it_covers() -> None:
    told = interval((-1.0, 2.0), 0.95, "questions")
    assert told == "95 % interval −1.0 to +2.0 over questions"
    assert interval((-1.0, 2.0), 0.975, "questions").startswith("97.5 % interval")
    assert interval((-1.0, 2.0), 0.99, "questions").startswith("99 % interval")


@pytest.mark.parametrize(
    ("changes", "notes", "expected"),
    [
        (
            {},
            (),
            "correctness: over 3 seeds this reward improved strict accuracy relative to the base: "
            "43.9 % against 31.2 %, +12.7 points (95 % interval +9.0 to +16.4 over questions and "
            "seeds; p < .001 after Holm's correction).",
        ),
        (
            {"verdict": "worse", "accuracy": 0.2, "difference_points": -11.2,
             "interval_points": (-15.0, -7.4)},
            (),
            "correctness: over 3 seeds this reward lowered strict accuracy relative to the base: "
            "20.0 % against 31.2 %, −11.2 points (95 % interval −15.0 to −7.4 over questions and "
            "seeds; p < .001 after Holm's correction).",
        ),
        (
            {"verdict": "equivalent", "accuracy": 0.315, "difference_points": 0.3,
             "interval_points": (-1.2, 1.8), "p_holm": 1.0},
            (),
            "correctness: over 3 seeds strict accuracy under this reward and under the base was "
            "the same to within 2 points: 31.5 % against 31.2 %, +0.3 points (95 % interval −1.2 "
            "to +1.8 over questions and seeds; p = 1.00 after Holm's correction).",
        ),
        (
            {"verdict": "no evidence", "accuracy": 0.335, "difference_points": 2.3,
             "interval_points": (-1.4, 6.0), "p_holm": 0.412},
            (),
            "correctness: no evidence over 3 seeds that this reward changed strict accuracy "
            "relative to the base: 33.5 % against 31.2 %, +2.3 points (95 % interval −1.4 to +6.0 "
            "over questions and seeds; p = .412 after Holm's correction). The smallest true change "
            "that such a comparison finds with 80 % power is about 5.2 points (before the "
            "correction): a smaller one could have gone unseen.",
        ),
        (
            {"seeds": 1, "interval_points": None, "p_holm": None, "verdict": "no evidence"},
            ("one seed",),
            "correctness: no evidence on this reward (one seed). This adapter: strict accuracy "
            "43.9 % against 31.2 % for the base, +12.7 points; however large the change, one seed "
            "cannot tell what the reward does from what the seed does.",
        ),
        (
            {"interval_points": None, "p_holm": None, "verdict": "no evidence",
             "accuracy": 0.312, "difference_points": 0.0},
            (),
            "correctness: no evidence on this reward: strict accuracy 31.2 % against 31.2 % for "
            "the base, 0.0 points; there is no error to judge it by (nothing varies between seeds "
            "and questions, or there is one question), and no telling what could have gone "
            "unseen.",
        ),
    ],
)  # fmt: skip
def test_every_verdict_has_a_sentence_that_stands_alone(
    changes: dict[str, object], notes: tuple[str, ...], expected: str
) -> None:
    assert arm_sentence(replace(FINDING, **changes), notes) == expected  # type: ignore[arg-type]


def test_above_the_control_is_not_said_as_if_it_were_above_the_base() -> None:
    # 43.9 % may be below the base's accuracy: the reference stands before the figures.
    told = arm_sentence(CONTROL, ())
    assert told.startswith(
        "correctness: over 3 seeds this reward improved strict accuracy relative to the control "
        "arm random: 43.9 % against 30.0 %"
    )
    assert "base" not in told


def test_a_control_with_other_seeds_says_how_many() -> None:
    told = arm_sentence(replace(CONTROL, control_seeds=2), ())
    assert "over 3 seeds (the control over 2) this reward improved" in told


@pytest.mark.parametrize(
    ("note", "ending"),
    [
        ("format gain", "This is a format gain: the lenient reading, which takes the right value "
         "in any format, shows no evidence of a gain."),
        ("format gain, ability lost", "This is a format gain with a loss of ability: by the "
         "lenient reading, which takes the right value in any format, accuracy fell."),
        ("format loss", "This is a format loss: the lenient reading, which takes the right value "
         "in any format, shows no evidence of a loss."),
        ("format loss, ability gained", "This is a format loss with a gain in ability: by the "
         "lenient reading, which takes the right value in any format, accuracy rose."),
        ("lenient alone", "This holds by the lenient reading alone, which takes the right value "
         "in any format: the strict one, which asks for the format too, does not show it."),
        ("lenient alone, strict opposite", "This holds by the lenient reading alone, which takes "
         "the right value in any format: by the strict one, which asks for the format too, "
         "accuracy went the other way."),
        ("smaller than the margin", "The change is smaller than the plan's margin: the whole "
         "interval lies within 2 points."),
        ("borderline", "Borderline: the uncorrected p-value and the interval disagree about a "
         "change, which counts as no evidence."),
        ("not after Holm", "Without the correction for several comparisons this would count as a "
         "change."),
    ],
)  # fmt: skip
def test_every_note_adds_its_sentence(note: str, ending: str) -> None:
    plain = arm_sentence(FINDING, ())
    assert arm_sentence(FINDING, (note,)) == f"{plain} {ending}"


def test_a_note_without_a_sentence_adds_nothing() -> None:
    assert arm_sentence(FINDING, ("one seed",)) == arm_sentence(FINDING, ())


@pytest.mark.parametrize(
    ("verdict", "words"),
    [("improved", "is better than the base"), ("worse", "is worse than the base"),
     ("equivalent", "is as good as the base to within 2 points"),
     ("no evidence", "shows no evidence of a change from the base")],
)  # fmt: skip
def test_one_adapter_is_never_called_the_reward(verdict: str, words: str) -> None:
    told = adapter_sentence(replace(ADAPTER, verdict=verdict), ())  # type: ignore[arg-type]
    head = f"This adapter (random, seed 0) {words} in lenient accuracy: −1.5 points, told."
    assert told.startswith(head)
    assert "reward" not in told
    assert ("80 % power is about 3.3 points:" in told) == (verdict == "no evidence")


def test_an_adapter_that_learned_nothing_has_nothing_that_could_have_gone_unseen() -> None:
    nothing = replace(ADAPTER, verdict="no evidence", detectable_points=None)
    told = adapter_sentence(nothing, ("same answers",))
    assert told.endswith(
        "It learned nothing that shows: every answer is the base's, to the letter."
    )
    assert "unseen" not in told


def test_one_seed_of_the_control_is_named_as_the_reason() -> None:
    told = arm_sentence(
        replace(CONTROL, control_seeds=1, interval_points=None, verdict="no evidence"), ()
    )
    assert told == (
        "correctness: no evidence on this reward (the control arm has one seed). Over 3 seeds: "
        "strict accuracy 43.9 % against 30.0 % for the control arm random, +12.7 points; however "
        "large the change, one seed of the control cannot tell what its reward does from what its "
        "seed does."
    )
