"""Users' own rewards as components: TRL's signature, a status for every row, no failure hidden."""

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from ahalab.scoring.answers import Asked
from ahalab.scoring.arms import resolve_arm, score_batch
from ahalab.scoring.components import Origin, Response, make_response
from ahalab.scoring.own import GOLD_COLUMNS, OFFERED, OWN_NAME, QUESTION_COLUMNS, OwnReward

NAME = "my_rewards:brief"


def talk(question: str) -> list[dict[str, str]]:
    return [{"role": "system", "content": "Be brief."}, {"role": "user", "content": question}]


def responses(*completions: str, step: int = 0) -> list[Response]:
    return [
        make_response(
            completion=completion, gold=str(n), asked=Asked(prompt=f"Question {n}?"),
            origin=Origin(f"p{n}", step, n, completion_ids=(n, 7)),
        )
        for n, completion in enumerate(completions)
    ]  # fmt: skip


def own(function: Callable[..., Any], accepts: frozenset[str] | None = None) -> OwnReward:
    return OwnReward(NAME, function, accepts, talk, max_steps=9)


def paid(function: Callable[..., Any], rows: list[Response]) -> list[tuple[float | None, str]]:
    arm = resolve_arm("brief", {NAME: 2.0}, {NAME: own(function)})
    rewards = score_batch(arm, rows)
    for reward in rewards:
        value = reward.components[NAME].value
        assert reward.reward == (None if value is None else 2 * value)
    return [(r.components[NAME].value, r.components[NAME].status) for r in rewards]


def test_a_reward_is_handed_what_trl_hands_it() -> None:
    seen: dict[str, Any] = {}

    def reward(completions: list[Any], **others: Any) -> list[float]:
        seen.update(others, completions=completions)
        return [0.0] * len(completions)

    own(reward)(responses("a", "bb", step=4))
    assert set(seen) == set(OFFERED)
    assert seen["completions"] == [
        [{"role": "assistant", "content": "a"}], [{"role": "assistant", "content": "bb"}],
    ]  # fmt: skip
    assert seen["prompts"] == [talk("Question 0?"), talk("Question 1?")]
    assert seen["completion_ids"] == [[0, 7], [1, 7]]
    assert seen["prompt_id"] == ["p0", "p1"]
    assert all(seen[name] == ["0", "1"] for name in GOLD_COLUMNS)
    assert all(seen[name] == ["Question 0?", "Question 1?"] for name in QUESTION_COLUMNS)
    assert (seen["trainer_state"].global_step, seen["trainer_state"].max_steps) == (4, 9)
    seen["log_extra"]("column", [1, 2])
    seen["log_metric"]("name", 1.0)


def test_a_reward_without_keywords_gets_the_arguments_that_it_names() -> None:
    def reward(completions: list[Any], answer: list[str]) -> list[float]:
        return [float(a) for a in answer]

    component = own(reward, frozenset({"completions", "answer"}))
    assert [v.value for v in component(responses("a", "b", "c"))] == [0.0, 1.0, 2.0]


def test_what_a_reward_does_to_its_lists_reaches_nobody_else() -> None:
    def reward(answer: list[str], gold: list[str], **_: Any) -> list[float]:
        answer.reverse()
        return [float(g) for g in gold]

    rows = responses("a", "b")
    assert [v.value for v in own(reward)(rows)] == [0.0, 1.0]
    assert [row.gold for row in rows] == ["0", "1"]


@pytest.mark.parametrize("kind", [list, tuple, iter])
def test_numbers_of_any_kind_are_taken(kind: Callable[[list[Any]], Any]) -> None:
    values = [1, True, SimpleNamespace(__float__=None)]
    values[2] = type("Scalar", (), {"__float__": lambda self: 0.5})()
    found = paid(lambda **_: kind(values), responses("a", "b", "c"))
    assert found == [(1.0, "ok"), (1.0, "ok"), (0.5, "ok")]


def test_none_is_no_reward_and_never_a_zero() -> None:
    assert paid(lambda **_: [None, 0.0], responses("a", "b")) == [(None, "no reward"), (0.0, "ok")]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e31, 10**400, "1.0", b"1", []])
def test_what_is_no_finite_number_fails_on_its_row_alone(value: Any) -> None:
    def reward(completions: list[Any], **_: Any) -> list[Any]:
        return [value if c[0]["content"] == "b" else 0.5 for c in completions]

    first, second, third = paid(reward, responses("a", "b", "c"))
    assert first == third == (0.5, "ok")
    assert second[0] is None
    assert second[1].startswith("failed: ")


def test_a_reward_that_raises_names_the_row_at_fault() -> None:
    def reward(completions: list[Any], **_: Any) -> list[float]:
        return [1 / len(c[0]["content"]) for c in completions]

    found = paid(reward, responses("a", "", "cc"))
    assert found == [
        (1.0, "ok"),
        (None, "failed: ZeroDivisionError: division by zero"),
        (0.5, "ok"),
    ]


@pytest.mark.parametrize(
    ("function", "status"),
    [
        (lambda completions, **_: [1.0] * min(len(completions), 1), "on the batch: ValueError"),
        (lambda **_: [], "failed: ValueError: expected 1 values, one per completion, found 0"),
        (lambda **_: None, "failed: TypeError"),
        (lambda **_: exit(3), "failed: SystemExit: 3"),
    ],
)
def test_a_reward_that_fails_on_the_whole_batch_pays_nobody(
    function: Callable[..., Any], status: str
) -> None:
    found = paid(function, responses("a", "b"))
    assert [value for value, _ in found] == [None, None]
    assert all(status in told for _, told in found)


def test_a_status_is_one_printable_line_that_repeats() -> None:
    def reward(**_: Any) -> list[float]:
        raise ValueError(f"line\nline \x1b[31m {object()!r} " + "x" * 999)

    ((_, status),) = paid(reward, responses("a"))
    assert status.isprintable()
    assert len(status) < 250
    assert "0x..." in status


def test_an_interrupt_is_not_a_failure_of_the_reward() -> None:
    def reward(**_: Any) -> list[float]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        paid(reward, responses("a"))


def test_an_arm_whose_code_was_not_loaded_can_not_score() -> None:
    arm = resolve_arm("brief", {NAME: 1.0, "correct_strict": 1.0})
    assert arm.not_loaded == (NAME,)
    with pytest.raises(ValueError, match="my_rewards:brief was not loaded"):
        score_batch(arm, responses("a"))


@pytest.mark.parametrize("name", ["a:b", "a.b.c:d_1", "_a:b"])
def test_names_of_own_rewards(name: str) -> None:
    assert OWN_NAME.fullmatch(name)
    assert resolve_arm("mine", {name: 1.0}).components == {name: 1.0}


@pytest.mark.parametrize(
    "name", ["a", "a:", ":b", "a:b:c", "a.:b", ".a:b", "a b:c", "a/b:c", "../a:b", "1a:b", "a:b\n"]
)
def test_what_is_no_name_of_an_own_reward(name: str) -> None:
    with pytest.raises(ValueError, match=r"package\.module:function"):
        resolve_arm("mine", {name: 1.0})


@pytest.mark.parametrize("weight", [math.nan, math.inf, 1e7])
def test_a_weight_is_finite_and_of_a_sane_size(weight: float) -> None:
    with pytest.raises(ValueError, match="expected a finite weight"):
        resolve_arm("mine", {"correct_strict": weight})
