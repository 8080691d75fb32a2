from __future__ import annotations

import pytest

from ahalab.scoring.arms import BUILT_IN_ARMS, resolve_arm, score_batch
from ahalab.scoring.components import COMPONENTS, make_response

HONEST_RIGHT = "Tom has 14 + 8 = 22 apples.\n#### 22"
HONEST_WRONG = "Tom has 14 + 8 = 23 apples.\n#### 23"
ATTACKS = {
    "empty": "",
    "hedge": "#### 21 or 22",
    "every number": " ".join(str(number) for number in range(60)),
    "marker only": "#### ",
    "thinking only": "<think>#### 22</think>",
    "right then changed": "#### 22\nWait, the answer is 23.",
    "refusal": "I cannot help with that.",
    "hostile": "#### 9**9**9",
}


def _reward(arm: str, completion: str, **more: object) -> float | None:
    response = make_response(completion=completion, gold="22", **more)  # type: ignore[arg-type]
    return score_batch(BUILT_IN_ARMS[arm], [response])[0].reward


def test_the_nine_built_in_arms_weigh_known_components_and_one_is_the_control() -> None:
    assert sorted(BUILT_IN_ARMS) == [
        "additive_format", "correctness", "format_only", "gated_format", "historical",
        "length_budget", "partial_credit", "random", "reflection_bonus",
    ]  # fmt: skip
    for arm in BUILT_IN_ARMS.values():
        assert set(arm.components) <= set(COMPONENTS)
        assert arm.control is (arm.name == "random")


@pytest.mark.parametrize(
    ("arm", "right", "wrong"),
    [
        ("correctness", 1.0, 0.0),
        ("historical", 1.0, 0.0),
        ("additive_format", 1.2, 0.2),
        ("gated_format", 1.2, 0.0),
        ("format_only", 1.0, 1.0),
        ("length_budget", 1.2, 0.2),
        ("partial_credit", 1.5, 0.5 * 21 / 22),
        ("reflection_bonus", 1.0, 0.0),
    ],
)
def test_an_honest_answer_earns_what_docs_arms_says(arm: str, right: float, wrong: float) -> None:
    assert _reward(arm, HONEST_RIGHT) == pytest.approx(right)
    assert _reward(arm, HONEST_WRONG) == pytest.approx(wrong)


@pytest.mark.parametrize("attack", sorted(ATTACKS))
@pytest.mark.parametrize("arm", ["correctness", "additive_format", "gated_format", "length_budget"])
def test_no_attack_earns_more_than_an_honest_wrong_answer(arm: str, attack: str) -> None:
    honest, paid = _reward(arm, HONEST_WRONG), _reward(arm, ATTACKS[attack])
    assert honest is not None
    assert paid is not None
    assert paid <= honest


def test_a_component_without_a_value_leaves_the_reward_without_one() -> None:
    response = make_response(completion=HONEST_RIGHT, gold="nan")
    reward = score_batch(BUILT_IN_ARMS["additive_format"], [response])[0]
    assert reward.reward is None
    assert reward.components["correct_strict"].status == "error: gold"
    assert reward.components["format"].value == 1.0


def test_a_declared_arm_is_resolved_with_its_weights() -> None:
    arm = resolve_arm("mine", {"correct_strict": 1.0, "repetition": 0.5})
    assert dict(arm.components) == {"correct_strict": 1.0, "repetition": 0.5}
    assert not arm.control
    assert resolve_arm("random").control
    assert resolve_arm("random", {"random": 1.0}) is BUILT_IN_ARMS["random"]


@pytest.mark.parametrize(
    ("name", "components", "message"),
    [
        ("corectness", None, "Did you mean 'correctness'"),
        ("mine", {"fromat": 1.0}, "Did you mean 'format'"),
        ("mine", {}, "at least one component"),
        ("mine", {"format": float("nan")}, "finite weight"),
        ("random", {"format": 1.0}, "another name"),
        ("\0" * 10_000, None, "expected one of the arms"),
    ],
)
def test_an_arm_that_cannot_be_resolved_is_refused_with_the_nearest_name(
    name: str, components: dict[str, float] | None, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        resolve_arm(name, components)
