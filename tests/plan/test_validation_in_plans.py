"""The plan's `validation` block: explicit when asked for, and not a byte of it otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from ahalab.errors import PlanError
from ahalab.plan.describe import describe
from ahalab.plan.load import differing_keys, dump_plan, parse_plan
from ahalab.plan.schedule import (
    checkpoint_count,
    checkpoint_steps,
    is_checkpoint,
    prompts_asked,
)
from ahalab.records.base import digest, encode
from ahalab.records.plan import Plan, ValidationSpec


def with_validation(text: str, block: str) -> Plan:
    return parse_plan(f"{text}validation: {block}\n", "study.yaml")


def test_a_plan_that_asks_for_none_says_nothing_of_it(plan: Plan) -> None:
    assert not plan.validation
    assert b"validation" not in encode(plan)
    assert "validation" not in dump_plan(plan)
    assert "validation" not in describe(plan, Path("results"))
    assert prompts_asked(plan) == {"train": 16, "eval": 16}


def test_its_defaults_are_written_out(text: str) -> None:
    plan = with_validation(text, "{prompts: 5}")
    assert plan.validation == ValidationSpec(prompts=5, max_new_tokens=16, batch_size=64)
    assert prompts_asked(plan) == {"train": 16, "eval": 16, "validation": 5}
    again = parse_plan(dump_plan(plan), "study.yaml")
    assert digest(again) == digest(plan)
    own = with_validation(text, "{prompts: 5, max_new_tokens: 9, batch_size: 2}")
    assert own.validation == ValidationSpec(prompts=5, max_new_tokens=9, batch_size=2)
    assert "5 prompts, greedy, at 2 checkpoints of each run" in describe(own, Path("results"))


def test_a_plan_that_asks_for_it_is_another_plan_and_the_key_is_named(
    text: str, plan: Plan
) -> None:
    asking = with_validation(text, "{prompts: 5}")
    assert digest(asking) != digest(plan)
    assert "validation.prompts: 5 here, absent there" in differing_keys(asking, plan)


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ("{prompts: 0}", "validation.prompts: expected a number from 1 to 10,000,000, found 0."),
        (
            "{prompts: 5, max_new_tokens: 0}",
            "validation.max_new_tokens: expected a number from 1 to 10,000,000, found 0.",
        ),
        (
            "{prompts: 5, batch_size: -1}",
            "validation.batch_size: expected a number from 1 to 10,000,000, found -1.",
        ),
        ("{prompt: 5}", "unknown key `prompt` in validation. Did you mean `prompts`?"),
        ("{batch_size: 5}", "validation: the key `prompts` is missing. Add it."),
    ],
)
def test_a_fault_is_named_with_its_key_and_line(text: str, block: str, said: str) -> None:
    with pytest.raises(PlanError) as caught:
        with_validation(text, block)
    line = len(text.splitlines()) + 1
    assert str(caught.value).startswith(f"study.yaml:{line}:")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("max_steps", "save_steps", "expected"),
    [(6, 2, (2, 4, 6)), (7, 2, (2, 4, 6, 7)), (4, 4, (4,)), (4, 9, (4,)), (1, 1, (1,))],
)
def test_checkpoints_fall_on_every_save_step_and_on_the_end(
    text: str, max_steps: int, save_steps: int, expected: tuple[int, ...]
) -> None:
    plan = parse_plan(
        text.replace("max_steps: 20", f"max_steps: {max_steps}\n  save_steps: {save_steps}"), "plan"
    )
    assert tuple(checkpoint_steps(plan)) == expected
    assert checkpoint_count(plan) == len(expected)
    assert [s for s in range(-2, 30) if is_checkpoint(plan, s)] == [s for s in expected if s < 30]
