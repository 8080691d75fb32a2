"""The batch size that the plan leaves open: by memory once, then as the first answers had it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from ahalab.errors import InputError
from ahalab.evaluate.batch_size import batch_size_of, choose_batch_size
from ahalab.plan.cells import BASE, FLOOR, Cell, rounds
from ahalab.plan.evaluation import floor_size
from ahalab.records.answer import Protocol
from ahalab.records.base import encode_pretty
from ahalab.records.prompt import Prompt
from ahalab.store.layout import StudyPaths
from lab import PLAN, batch_of, plan_of

OPEN = plan_of(PLAN.replace("batch_size: 4, floor_batch_size: 3, ", ""))
# SmolLM2-135M's own numbers: 30 layers, 3 key-value heads of 64.
CONFIG = {
    "hidden_size": 576, "num_hidden_layers": 30, "num_attention_heads": 9,
    "num_key_value_heads": 3, "intermediate_size": 1536, "vocab_size": 49152,
}  # fmt: skip


def prompts_of(tokens: int) -> list[Prompt]:
    return [prompt for prompt, _ in batch_of([tuple(range(tokens))]).asked]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    return tmp_path


@pytest.mark.parametrize(
    ("free", "processes", "expected"),
    [(100 << 30, 1, 64), (1 << 30, 1, 4), (1 << 30, 2, 2), (10 << 20, 1, 1)],
)
def test_it_is_a_power_of_two_that_fits_and_processes_share_the_memory(
    model: Path, free: int, processes: int, expected: int
) -> None:
    """A row of 960 + 40 tokens: 2 x 46.1 MB of cache, 21.5 MB in passing, 0.6 MB of logits."""
    plan, prompts = OPEN, prompts_of(960)
    assert choose_batch_size(plan, model, prompts, processes, free) == expected


def test_half_the_bytes_a_number_let_more_rows_in(model: Path) -> None:
    half = replace(OPEN, model=replace(OPEN.model, dtype="bfloat16"))
    size = choose_batch_size(OPEN, model, prompts_of(960), 1, 1 << 30)
    assert choose_batch_size(half, model, prompts_of(960), 1, 1 << 30) > size


@pytest.mark.parametrize(("sides", "expected"), [(1, 256), (3, 85)])
def test_an_endpoint_packs_rows_by_itself_so_that_memory_here_does_not_count(
    model: Path, sides: int, expected: int
) -> None:
    endpoint = 'endpoint: {url: "http://h/v1", base: b, adapter: "{arm}-{seed}"}'
    text = PLAN.replace("batch_size: 4, floor_batch_size: 3, replay: true", endpoint)
    plan = plan_of(
        text.replace("endpoint:", f"backend: openai, cells_per_batch: {sides}, endpoint:")
    )
    assert choose_batch_size(plan, model, prompts_of(960), 1, free=1) == expected


def protocol(size: int) -> Protocol:
    return Protocol(
        plan_digest="p", answer_format="hashes", task="gsm8k", prompts_digest="d",
        template_digest="t", tokenizer_digest="k", base_digest="b", adapter_digest=None,
        generation={}, dtype="float32", device="cpu, 1 threads", backend="transformers",
        decoder="rows", versions={}, batch_size=size, cells_per_batch=1, companions=(),
        limit=None, seed=0, samples=1, scorer_version="2",
    )  # fmt: skip


@pytest.mark.parametrize(
    "name", ["base/answers", "arms/random/seed-1/answers", "templates/plan/answers"]
)
def test_the_first_answers_fix_it_for_the_study(model: Path, name: str) -> None:
    paths = StudyPaths(model / "results" / "s")
    prompts = prompts_of(20)
    assert batch_size_of(OPEN, paths, model, prompts, (2, 1)) == 2
    path = paths.root / f"{name}.protocol.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(encode_pretty(protocol(16)))
    assert batch_size_of(OPEN, paths, model, prompts, (None, 1)) == 16
    assert batch_size_of(OPEN, paths, model, prompts, (16, 1)) == 16
    with pytest.raises(InputError, match=r"--batch-size: expected 16, .*, found 2"):
        batch_size_of(OPEN, paths, model, prompts, (2, 1))


def test_the_plans_own_size_is_never_overruled(model: Path) -> None:
    paths = StudyPaths(model / "results" / "s")
    plan = plan_of(PLAN)
    assert batch_size_of(plan, paths, model, prompts_of(9), (None, 1)) == 4
    with pytest.raises(InputError, match="expected 4"):
        batch_size_of(plan, paths, model, prompts_of(9), (8, 1))


def test_the_floors_size_is_another_one_always() -> None:
    assert [floor_size(n) for n in (1, 2, 3, 4, 64)] == [2, 1, 2, 3, 48]


ARMS = [Cell(f"arms/{arm}/seed-{seed}", arm, seed) for arm in ("historical", "random")
        for seed in (1, 2)]  # fmt: skip


@pytest.mark.parametrize(
    ("together", "expected"),
    [
        (1, [(BASE,), (FLOOR,), *((arm,) for arm in ARMS)]),
        (2, [(BASE, ARMS[0]), (FLOOR,), (ARMS[1], ARMS[2]), (ARMS[3],)]),
        (9, [(BASE, *ARMS), (FLOOR,)]),
    ],
)
def test_the_plan_says_which_sides_share_their_batches(
    together: int, expected: list[tuple[Cell, ...]]
) -> None:
    text = PLAN.replace("seeds: [1]", "seeds: [1, 2]")
    plan = plan_of(text.replace("replay: true", f"cells_per_batch: {together}"))
    assert rounds(plan, [BASE, FLOOR, *ARMS]) == expected
    for cell in (BASE, FLOOR, *ARMS):
        assert rounds(plan, [cell]) == [found for found in expected if cell in found]
