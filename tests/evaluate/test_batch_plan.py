"""Which answers are generated together, and under which seed: fixed by prompts and plan alone."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahalab.evaluate.protocol import batch_seed, generation_fields, prompts_digest
from ahalab.records.prompt import Prompt
from ahalab.tasks.generation import batches
from lab import PLAN, SAMPLED, environment, plan_of


def prompt(number: int, tokens: int) -> Prompt:
    return Prompt(
        prompt_id=f"{number:05d}", question="?", gold="1", source="here", split="eval",
        prompt_ids=tuple(range(tokens)), prompt_tokens=tokens,
    )  # fmt: skip


prompt_sets = st.lists(st.integers(1, 9), min_size=1, max_size=30).map(
    lambda lengths: [prompt(n, tokens) for n, tokens in enumerate(lengths)]
)
sizes = st.integers(1, 12)


@given(prompt_sets, st.integers(1, 4), sizes)
def test_every_prompt_and_sample_is_planned_once(
    prompts: list[Prompt], samples: int, size: int
) -> None:
    planned = [(p.prompt_id, s) for batch in batches(prompts, samples, size) for p, s in batch]
    expected = {(p.prompt_id, s) for p in prompts for s in range(samples)}
    assert len(planned) == len(expected)
    assert set(planned) == expected


@given(prompt_sets, st.integers(1, 4), sizes)
def test_batches_are_full_but_for_the_last_and_sorted_by_length(
    prompts: list[Prompt], samples: int, size: int
) -> None:
    plan = batches(prompts, samples, size)
    assert all(len(batch) == size for batch in plan[:-1])
    assert 1 <= len(plan[-1]) <= size
    lengths = [p.prompt_tokens for batch in plan for p, _ in batch]
    assert lengths == sorted(lengths)


@given(prompt_sets, st.integers(1, 4), sizes)
def test_the_plan_is_the_same_every_time(prompts: list[Prompt], samples: int, size: int) -> None:
    assert batches(prompts, samples, size) == batches(list(prompts), samples, size)


def test_prompts_of_one_length_keep_their_order_and_samples_stay_together() -> None:
    prompts = [prompt(0, 5), prompt(1, 3), prompt(2, 5), prompt(3, 3)]
    plan = [[(p.prompt_id[-1], s) for p, s in batch] for batch in batches(prompts, 2, 3)]
    assert plan == [
        [("1", 0), ("1", 1), ("3", 0)], [("3", 1), ("0", 0), ("0", 1)], [("2", 0), ("2", 1)],
    ]  # fmt: skip


def test_seeds_differ_between_batches_and_between_plans_and_fit_torch() -> None:
    seeds = {batch_seed(seed, number) for seed in range(20) for number in range(200)}
    assert len(seeds) == 20 * 200
    assert all(0 <= seed < 2**32 for seed in seeds)
    assert batch_seed(1, 23) != batch_seed(12, 3)


def test_a_batchs_seed_is_worked_out_from_sha256() -> None:
    shown = subprocess.run(["sha256sum"], input=b"0|0", capture_output=True, check=True).stdout
    assert batch_seed(0, 0) == int(shown[:8], 16)


@given(prompt_sets)
def test_the_prompt_digest_depends_on_order_and_ids(prompts: list[Prompt]) -> None:
    assert prompts_digest(prompts) == prompts_digest(list(prompts))
    if len(prompts) > 1:
        assert prompts_digest(prompts[::-1]) != prompts_digest(prompts)
    assert prompts_digest(prompts[:-1]) != prompts_digest(prompts)


@pytest.mark.parametrize(("text", "sampled"), [(PLAN, False), (SAMPLED, True)])
def test_no_generation_field_is_left_to_the_model(text: str, sampled: bool) -> None:
    fields = generation_fields(plan_of(text), frozenset({7, 1}), 0)
    assert fields["do_sample"] is sampled
    assert fields["temperature"] == (0.8 if sampled else 1.0)
    neutral = {"top_k": 0, "repetition_penalty": 1.0, "num_beams": 1, "no_repeat_ngram_size": 0}
    assert {key: fields[key] for key in neutral} == neutral
    assert fields["eos_token_id"] == [1, 7]


def test_the_batch_plan_needs_no_torch() -> None:
    program = (
        "import sys, ahalab.evaluate.protocol, ahalab.evaluate.pair, ahalab.evaluate.resume;"
        "sys.exit(any(m in sys.modules for m in ('torch', 'transformers', 'peft', 'trl')))"
    )
    assert subprocess.run([sys.executable, "-c", program], env=environment()).returncode == 0
