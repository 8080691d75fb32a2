"""The plan's `task` block: which keys go with which task, and what stays out of old digests."""

from __future__ import annotations

import pytest

from ahalab.errors import PlanError
from ahalab.plan.load import dump_plan, parse_plan
from ahalab.records.base import digest, encode
from ahalab.records.plan import Plan

LATER = ("dataset", "subset", "revision", "splits", "config", "max_overlap_fraction")


def with_task(text: str, **keys: str) -> Plan:
    head, _, rest = text.partition("task:\n")
    indented = rest.splitlines()
    after = next(n for n, line in enumerate(indented) if not line.startswith(" "))
    block = [f"  {key}: {value}" for key, value in keys.items()]
    lines = ["task:", "  train_prompts: 16", "  eval_prompts: 16", *block, *indented[after:]]
    return parse_plan(head + "\n".join(lines), "study.yaml")


def test_a_plan_of_the_first_tasks_says_nothing_of_later_keys(text: str, plan: Plan) -> None:
    for made in (plan, with_task(text, name="gsm8k"), with_task(text, name="jsonl", path="x")):
        assert not any(f'"{key}"'.encode() in encode(made.task) for key in LATER)


@pytest.mark.parametrize(
    "keys",
    [
        {"name": "csv", "path": "x"},
        {"name": "gsm8k", "revision": "main", "subset": "socratic"},
        {"name": "hub", "dataset": "a/b", "splits": "{eval: held}", "max_overlap_fraction": "0"},
        {"name": "hub", "path": "x", "subset": "y"},
        {"name": "reasoning_gym", "dataset": "countdown", "config": "{b: [1, 2], a: {d: 1, c: 2}}"},
    ],
)
def test_a_resolved_plan_reads_back_to_the_same_digest(text: str, keys: dict[str, str]) -> None:
    made = with_task(text, **keys)
    assert digest(parse_plan(dump_plan(made), "study.yaml")) == digest(made)


def test_splits_and_scoring_are_written_out(text: str) -> None:
    hub = with_task(text, name="hub", dataset="a/b", splits="{eval: held}").task
    assert (hub.splits, hub.scoring) == ({"train": "train", "eval": "held"}, "math")
    assert with_task(text, name="reasoning_gym", dataset="countdown").task.scoring == "countdown"
    assert with_task(text, name="reasoning_gym", dataset="gcd").task.scoring == "math"


def test_the_order_of_settings_is_no_part_of_a_plan(text: str) -> None:
    one, other = (
        with_task(text, name="reasoning_gym", dataset="gcd", config=config)
        for config in ("{min_value: 1, max_value: 9}", "{max_value: 9, min_value: 1}")
    )
    assert digest(one) == digest(other)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (
            {"name": "jsonl", "dataset": "a/b"},
            "task.dataset: a key of the tasks hub, reasoning_gym",
        ),
        ({"name": "csv", "splits": "{eval: x}"}, "task.splits: a key of the tasks hub, found with"),
        ({"name": "gsm8k", "config": "{a: 1}"}, "task.config: a key of the tasks reasoning_gym"),
        ({"name": "arithmetic", "path": "x"}, "task.path: a key of the tasks gsm8k, jsonl, csv"),
        ({"name": "hub"}, "task.dataset: expected a dataset (owner/name, or a local copy in"),
        ({"name": "reasoning_gym"}, "task.dataset: expected a dataset (chain_sum, say), found"),
        ({"name": "hub", "dataset": "a/b", "path": "x"}, "task.dataset: of the hub's datasets, "),
        ({"name": "gsm8k", "path": "x", "revision": "y"}, "task.revision: of the hub's datasets,"),
        ({"name": "gsm8k", "revision": "''"}, "task.revision: expected text, found an empty one."),
        ({"name": "hub", "dataset": "a/b", "splits": "{test: x}"}, "'test'"),
        ({"name": "excel"}, "'excel'"),
        ({"name": "gsm8k", "max_overlap_fraction": "1"}, "expected a fraction from 0 to below 1"),
        ({"name": "gsm8k", "max_overlap_fraction": "-.1"}, "expected a fraction from 0 to below"),
        ({"name": "reasoning_gym", "dataset": "gcd", "config": "{a: .nan}"}, "a finite number"),
    ],
)
def test_a_key_that_nothing_would_read_is_refused(
    text: str, keys: dict[str, str], said: str
) -> None:
    with pytest.raises(PlanError) as caught:
        with_task(text, **keys)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("study.yaml:")
