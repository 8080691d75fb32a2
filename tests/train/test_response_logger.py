"""The logger under a trainer that is not there: what it writes, and what it refuses."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest

from ahalab.errors import RewardError
from ahalab.records.rollout import Rollout
from ahalab.scoring import arms
from ahalab.scoring.answers import Asked
from ahalab.scoring.arms import ArmDefinition, resolve_arm
from ahalab.scoring.components import ComponentValue, Response
from ahalab.store.reading import read_rows
from ahalab.store.rows import RowFile, RowWriter
from ahalab.train.response_logger import ResponseLogger, RewardTerms

END, OTHER_END = 1, 7
GOLD = "4"
RIGHT, WRONG, LOOSE = "2 + 2 = 4\n#### 4", "2 + 2 = 5\n#### 5", "The answer is 4."


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[RowWriter[Rollout]]:
    file = RowFile(tmp_path / "s/rollouts.jsonl", "rollout/1", "plan", "run", tmp_path / "broken")
    with RowWriter[Rollout](file) as open_writer:
        yield open_writer


Make = Callable[..., ResponseLogger]


@pytest.fixture
def make(writer: RowWriter[Rollout]) -> Make:
    def logger(
        arm: ArmDefinition | None = None, group_size: int = 2, on_error: str = "stop"
    ) -> ResponseLogger:
        terms = RewardTerms(
            arm or resolve_arm("correctness"),
            on_error=on_error,  # type: ignore[arg-type]
            seed=3,
            asked=Asked(answer_format="hashes", task="gsm8k"),
            group_size=group_size,
        )
        return ResponseLogger(terms, frozenset({END, OTHER_END}), writer)

    return logger


def score(
    logger: ResponseLogger, completions: list[Any], step: int = 0, **more: Any
) -> list[float]:
    """Call the logger as TRL does: the completions of a prompt in a row, and much else by name."""
    count, size = len(completions), logger.terms.group_size
    arguments: dict[str, Any] = {
        "prompts": [None] * count,
        "completions": completions,
        "completion_ids": [[5, 6, END]] * count,
        "prompt_id": [f"p{i // size}" for i in range(count)],
        "gold": [GOLD] * count,
        "question": ["What is 2 + 2?"] * count,
        "trainer_state": SimpleNamespace(global_step=step),
        "log_extra": None,
        "log_metric": None,
    }
    return logger(**(arguments | more))


def written(writer: RowWriter[Rollout]) -> list[Rollout]:
    return [row for _, row in read_rows(writer.path, Rollout)]


def paying(monkeypatch: pytest.MonkeyPatch, *values: ComponentValue) -> ArmDefinition:
    """Return an arm whose one component gives these values, row by row."""

    def component(responses: list[Response]) -> list[ComponentValue]:
        return list(values)

    components = MappingProxyType({**arms.COMPONENTS, "odd": component})
    monkeypatch.setattr(arms, "COMPONENTS", components)
    return ArmDefinition("odd_arm", MappingProxyType({"odd": 1.0}))


def test_one_batch_becomes_one_row_per_completion_in_order(
    make: Make, writer: RowWriter[Rollout]
) -> None:
    logger = make()
    assert score(logger, [RIGHT, WRONG, LOOSE, RIGHT], step=5) == [1.0, 0.0, 0.0, 1.0]
    logger.commit([0.7, -0.7, -0.5, 0.5], [1.0, 0.0, 0.0, 1.0])
    rows = written(writer)
    keys = [(r.step, r.group, r.prompt_id, r.sample) for r in rows]
    assert keys == [(5, 0, "p0", 0), (5, 0, "p0", 1), (5, 1, "p1", 0), (5, 1, "p1", 1)]
    assert [r.advantage for r in rows] == [0.7, -0.7, -0.5, 0.5]
    assert [r.reward for r in rows] == [1.0, 0.0, 0.0, 1.0]
    assert [r.completion for r in rows] == [RIGHT, WRONG, LOOSE, RIGHT]
    assert [(r.strict, r.lenient) for r in rows] == [
        ("correct", "correct"), ("wrong", "wrong"), ("unparsed", "correct"), ("correct", "correct"),
    ]  # fmt: skip
    assert logger.last_batch == rows


def test_nothing_is_written_before_the_trainer_has_advantages(
    make: Make, writer: RowWriter[Rollout]
) -> None:
    score(make(), [RIGHT, WRONG])
    assert written(writer) == []


def test_both_parsers_and_every_component_stand_in_the_row(
    make: Make, writer: RowWriter[Rollout]
) -> None:
    logger = make(resolve_arm("additive_format"))
    rewards = score(logger, [RIGHT, LOOSE])
    assert rewards == [1.2, 0.0]
    logger.commit([0.7, -0.7], rewards)
    row = written(writer)[0]
    assert list(row.components) == ["correct_strict", "format"]
    assert [part.value for part in row.components.values()] == [1.0, 1.0]
    assert row.historical == "correct"
    assert row.extracted == "4"


@pytest.mark.parametrize(
    ("ids", "finish"),
    [
        ([5, END], "eos"),
        ([5, OTHER_END], "eos"),
        ([END], "eos"),
        ([5, 6], "length"),
        ([END, 6], "length"),  # an end token in the middle ends nothing here
        ([], "length"),
    ],
)
def test_the_last_token_tells_how_a_completion_ended(
    make: Make, writer: RowWriter[Rollout], ids: list[int], finish: str
) -> None:
    logger = make()
    logger.commit([0.0, 0.0], score(logger, [WRONG, WRONG], completion_ids=[ids, [END]]))
    row = written(writer)[0]
    assert (row.finish, row.completion_ids) == (finish, tuple(ids))


def test_a_completion_cut_at_the_limit_is_truncated_and_not_merely_unparsed(
    make: Make, writer: RowWriter[Rollout]
) -> None:
    logger = make()
    logger.commit([0.0, 0.0], score(logger, ["2 + 2 is", WRONG], completion_ids=[[5], [END]]))
    assert written(writer)[0].strict == "truncated"


def test_conversational_completions_are_read_as_their_text(
    make: Make, writer: RowWriter[Rollout]
) -> None:
    logger = make()
    chats = [[{"role": "assistant", "content": text}] for text in (RIGHT, WRONG)]
    rewards = score(logger, chats)
    assert rewards == [1.0, 0.0]
    logger.commit([0.7, -0.7], rewards)
    assert [r.completion for r in written(writer)] == [RIGHT, WRONG]


def test_line_separators_and_lone_surrogates_do_not_tear_a_row(
    make: Make, writer: RowWriter[Rollout]
) -> None:
    logger = make()
    odd = "a\u2028b\u0085c\x00\n#### 4"
    logger.commit([0.0, 0.0], score(logger, [odd, WRONG]))
    assert written(writer)[0].completion == odd


def test_a_reward_that_the_trainer_changed_stops_the_run_and_the_row_is_named(
    make: Make, writer: RowWriter[Rollout]
) -> None:
    logger = make()
    score(logger, [RIGHT, WRONG, RIGHT, WRONG], step=9)
    with pytest.raises(
        RewardError, match=r"step 9, prompt p1, sample 1: .* reward 0\.0, found 0\.5"
    ) as caught:
        logger.commit([0.0] * 4, [1.0, 0.0, 1.0, 0.5])
    assert "\n" not in str(caught.value)
    assert written(writer) == []


@pytest.mark.parametrize("held", [math.nan, math.inf, -math.inf])
def test_a_reward_that_the_trainer_lost_on_the_way_stops_the_run(
    make: Make, writer: RowWriter[Rollout], held: float
) -> None:
    logger = make()
    score(logger, [RIGHT, WRONG])
    with pytest.raises(RewardError, match="sample 1"):
        logger.commit([0.0, 0.0], [1.0, held])
    assert written(writer) == []


def test_float32_rounding_of_a_reward_is_no_change(make: Make, writer: RowWriter[Rollout]) -> None:
    logger = make(resolve_arm("additive_format"))
    score(logger, [RIGHT, WRONG])  # 1.2 and 0.2
    logger.commit([0.0, 0.0], [1.2000000476837158, 0.20000000298023224])
    assert [r.reward for r in written(writer)] == [1.2, 0.2]


@pytest.mark.parametrize(
    ("advantages", "rewards"), [([0.1], [1.0, 0.0]), ([0.1, 0.2], [1.0]), ([0.1] * 3, [1.0, 0.0])]
)
def test_a_trainer_that_hands_over_another_number_of_values_writes_nothing(
    make: Make, writer: RowWriter[Rollout], advantages: list[float], rewards: list[float]
) -> None:
    logger = make()
    score(logger, [RIGHT, WRONG])
    with pytest.raises(RewardError, match="2"):
        logger.commit(advantages, rewards)
    assert written(writer) == []


def test_advantages_without_a_call_of_the_reward_stop_the_run(make: Make) -> None:
    logger = make()
    with pytest.raises(RewardError, match="without calling the reward"):
        logger.commit([0.0, 0.0], [1.0, 0.0])


def test_a_batch_is_committed_once(make: Make, writer: RowWriter[Rollout]) -> None:
    logger = make()
    score(logger, [RIGHT, WRONG])
    logger.commit([0.7, -0.7], [1.0, 0.0])
    with pytest.raises(RewardError):
        logger.commit([0.7, -0.7], [1.0, 0.0])
    assert len(written(writer)) == 2


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (ComponentValue(None, "failed: KeyError: 'x'"), r"odd failed: KeyError: 'x'"),
        (ComponentValue(math.nan, "ok"), r"odd failed: expected a finite number, found nan"),
        (ComponentValue(math.inf, "ok"), r"odd failed: expected a finite number, found inf"),
        (ComponentValue(-1e31, "ok"), r"odd failed: expected a finite number, found -1e\+31"),
    ],
)
def test_a_component_without_a_finite_value_stops_the_run_and_the_row_is_named(
    make: Make,
    writer: RowWriter[Rollout],
    monkeypatch: pytest.MonkeyPatch,
    value: ComponentValue,
    shown: str,
) -> None:
    logger = make(paying(monkeypatch, ComponentValue(1.0, "ok"), value))
    with pytest.raises(
        RewardError, match=rf"arm odd_arm, step 4, prompt p0, sample 1: .*{shown}"
    ) as caught:
        score(logger, [RIGHT, "line\nline"], step=4)
    assert "\n" not in str(caught.value)
    assert written(writer) == []
    with pytest.raises(RewardError):  # nor can the batch be committed afterwards
        logger.commit([0.0, 0.0], [1.0, 0.0])


@pytest.mark.parametrize("status", ["error: timeout", "error: bounds", "no reward"])
def test_a_row_on_which_nothing_can_be_said_has_no_reward_and_no_part_in_its_group(
    make: Make, writer: RowWriter[Rollout], monkeypatch: pytest.MonkeyPatch, status: str
) -> None:
    nothing = ComponentValue(None, status)
    paid = [ComponentValue(1.0, "ok"), nothing, ComponentValue(0.0, "ok"), *[nothing] * 3]
    logger = make(paying(monkeypatch, *paid), group_size=3)
    handed = score(logger, [RIGHT, WRONG, LOOSE] * 2)
    assert handed == [1.0, 0.5, 0.0, 0.0, 0.0, 0.0]  # the mean of its group, 0 where there is none
    logger.commit([1.0, 0.0, -1.0, 0.0, 0.0, 0.0], handed)
    rows = written(writer)
    assert [r.reward for r in rows] == [1.0, None, 0.0, None, None, None]
    assert [r.components["odd"].status for r in rows] == ["ok", status, "ok", *[status] * 3]


def test_a_failure_that_the_arm_does_not_stop_at_stands_in_the_row(
    make: Make, writer: RowWriter[Rollout], monkeypatch: pytest.MonkeyPatch
) -> None:
    arm = paying(monkeypatch, ComponentValue(math.nan, "ok"), ComponentValue(1.0, "ok"))
    logger = make(arm, on_error="none")
    assert score(logger, [RIGHT, WRONG]) == [1.0, 1.0]
    logger.commit([0.0, 0.0], [1.0, 1.0])
    row = written(writer)[0]
    assert (row.reward, row.components["odd"].value) == (None, None)
    assert row.components["odd"].status == "failed: expected a finite number, found nan"


def test_a_component_of_ours_that_raises_names_the_row_too(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def component(responses: list[Response]) -> list[ComponentValue]:
        return [ComponentValue(1 / (r.completion == RIGHT), "ok") for r in responses]

    monkeypatch.setattr(arms, "COMPONENTS", MappingProxyType({**arms.COMPONENTS, "odd": component}))
    logger = make(ArmDefinition("odd_arm", MappingProxyType({"odd": 1.0})))
    with pytest.raises(RewardError, match=r"sample 1: .*odd failed: ZeroDivisionError"):
        score(logger, [RIGHT, WRONG])


def test_a_reward_of_minus_zero_or_below_is_a_reward(
    make: Make, writer: RowWriter[Rollout], monkeypatch: pytest.MonkeyPatch
) -> None:
    logger = make(paying(monkeypatch, ComponentValue(-0.5, "ok"), ComponentValue(-0.0, "ok")))
    rewards = score(logger, [RIGHT, WRONG])
    logger.commit([-0.7, 0.7], rewards)
    assert [r.reward for r in written(writer)] == [-0.5, 0.0]


def test_the_random_arm_pays_the_same_again_under_its_seed_and_otherwise_under_another(
    make: Make,
) -> None:
    logger = make(resolve_arm("random"), group_size=8)
    first = score(logger, [RIGHT] * 8, step=2)
    assert score(logger, [WRONG] * 8, step=2) == first
    assert len(set(first)) > 1
    assert score(logger, [RIGHT] * 8, step=3) != first
    logger.terms = replace(logger.terms, seed=4)
    assert score(logger, [RIGHT] * 8, step=2) != first


def test_the_name_that_trl_reports_is_the_arms(make: Make) -> None:
    assert make(resolve_arm("random")).__name__ == "random"


def test_rows_hold_the_golds_verdict_of_their_own_prompt(
    make: Make, writer: RowWriter[Rollout]
) -> None:
    logger = make()
    rewards = score(logger, [RIGHT, RIGHT, RIGHT, RIGHT], gold=["4", "4", "5", "5"])
    assert rewards == [1.0, 1.0, 0.0, 0.0]
    logger.commit([0.0] * 4, rewards)
    assert [r.strict for r in written(writer)] == ["correct", "correct", "wrong", "wrong"]
