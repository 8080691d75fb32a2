"""The decoder: what the library's own loop writes, in fewer forward passes over fewer rows."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

from ahalab.evaluate.backends import Side
from ahalab.store.models import organism_folder
from ahalab.tasks.prepare import read_prompts
from lab import PLAN, SAMPLED, Answerer, Trained, batch_of, plan_of

torch = pytest.importorskip("torch", reason="pip install 'ahalab[train]'")
pytestmark = [pytest.mark.train, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


@pytest.fixture(scope="module")
def greedy() -> Answerer:
    return Answerer(plan_of(PLAN), organism_folder())


@pytest.fixture(scope="module")
def prompts(trained: Trained) -> list[tuple[int, ...]]:
    return [p.prompt_ids for p in read_prompts(trained.paths, "eval")]


@pytest.fixture
def shapes(greedy: Answerer) -> Iterator[list[tuple[int, int]]]:
    """Return the (rows, tokens) of every forward pass of the base."""
    found: list[tuple[int, int]] = []

    def note(module: Any, arguments: Any, named: dict[str, Any]) -> None:
        found.append(tuple(named["input_ids"].shape))

    greedy.use_base()
    handle = greedy.backend.base.register_forward_pre_hook(note, with_kwargs=True)
    yield found
    handle.remove()


def by_the_library(answerer: Answerer, prompts: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    from ahalab.tasks.generation import completion_of
    from ahalab.tasks.library_loop import generate_whole

    backend = answerer.backend
    with torch.inference_mode():
        written = generate_whole(backend.model, prompts, backend.generation)
    return [completion_of(row, backend.end_ids, backend.tokenizer).ids for row in written]


def test_greedy_answers_are_those_of_the_librarys_own_loop(
    greedy: Answerer, prompts: list[tuple[int, ...]], trained: Trained
) -> None:
    greedy.use_base()
    base = [c.ids for c in greedy.generate(prompts, 0)]
    assert base == by_the_library(greedy, prompts)
    assert len({len(ids) for ids in base}) > 2  # rows ended at different times
    greedy.use_adapter(trained.run("historical").adapter)
    assert [c.ids for c in greedy.generate(prompts, 0)] == by_the_library(greedy, prompts)


def test_finished_rows_leave_the_batch(
    greedy: Answerer, prompts: list[tuple[int, ...]], shapes: list[tuple[int, int]]
) -> None:
    lengths = [len(c.ids) for c in greedy.generate(prompts, 0)]
    rows = [rows for rows, tokens in shapes[1:]]
    assert rows == sorted(rows, reverse=True)
    assert len(rows) == max(lengths) - 1
    # The library runs every row to the end of the longest.
    assert sum(rows) < 0.95 * len(prompts) * len(rows)
    assert sum(rows) >= sum(length - 1 for length in lengths)


@pytest.mark.parametrize("room", [1, 3, 64])
def test_a_cache_that_outgrows_its_room_changes_no_token(
    greedy: Answerer,
    prompts: list[tuple[int, ...]],
    monkeypatch: pytest.MonkeyPatch,
    room: int,
) -> None:
    from ahalab.evaluate.backends import decoding

    monkeypatch.setattr(decoding, "ROOM", room)
    greedy.use_base()
    assert [c.ids for c in greedy.generate(prompts, 0)] == by_the_library(greedy, prompts)


def test_a_new_token_is_written_in_place_and_rows_that_left_take_nothing_along() -> None:
    from ahalab.evaluate.backends.decoding import RoomyLayer

    layer = RoomyLayer()
    first = torch.arange(24.0).reshape(2, 1, 3, 4)  # (B, H, T, D)
    layer.update(first, -first)
    place = layer.keys.data_ptr()
    token = torch.full((2, 1, 1, 4), 7.0)
    keys, values = layer.update(token, token)
    assert keys.data_ptr() == place
    assert keys.equal(torch.cat([first, token], dim=-2))
    assert values.equal(torch.cat([-first, token], dim=-2))
    layer.batch_select_indices(torch.tensor([1]))
    keys, _ = layer.update(token[:1], token[:1])
    assert keys.equal(torch.cat([first[1:], token[:1], token[:1]], dim=-2))
    assert layer.get_seq_length() == 5


def test_a_prompt_that_several_samples_share_is_read_once(
    greedy: Answerer, prompts: list[tuple[int, ...]], shapes: list[tuple[int, int]]
) -> None:
    twice = [ids for ids in prompts[:3] for _ in range(4)]
    together = [c.ids for c in greedy.generate(twice, 0)]
    assert shapes[0] == (3, max(map(len, prompts[:3])))
    assert shapes[1][0] == 12
    assert together == [ids for ids in by_the_library(greedy, prompts[:3]) for _ in range(4)]


def test_sides_in_one_batch_answer_as_they_do_apart(
    greedy: Answerer, prompts: list[tuple[int, ...]], trained: Trained, tmp_path: Path
) -> None:
    """In fp32 the last bits of logits differ with the batch's shape, and no token does."""
    folders = [None, *(trained.run(arm).adapter for arm in ("historical", "random"))]
    strong = Path(shutil.copytree(folders[1] or tmp_path, tmp_path / "strong"))
    _make_strong(strong)
    folders[1] = strong
    apart = []
    for folder in folders:
        greedy.backend.serve([Side("alone", folder)])
        apart += greedy.backend.generate(batch_of(prompts))
    greedy.backend.serve([Side(str(n), folder) for n, folder in enumerate(folders)])
    assert greedy.backend.generate(batch_of(prompts)) == apart
    assert apart[0] != apart[1]
    greedy.use_base()
    assert greedy.generate(prompts, 0) == apart[0]


def _make_strong(adapter: Path) -> None:
    """Make an adapter of six steps change answers."""
    from safetensors.torch import load_file, save_file

    path = adapter / "adapter_model.safetensors"
    tensors = load_file(path)
    save_file({n: t * 60 if "lora_B" in n else t for n, t in tensors.items()}, path)


@pytest.mark.parametrize("top_p", [1.0, 0.7])
def test_samples_are_drawn_from_the_models_distribution(
    prompts: list[tuple[int, ...]], top_p: float
) -> None:
    """The first token of 3,000 samples, against softmax and nucleus worked out with numpy."""
    hot = SAMPLED.replace("temperature: 0.8", f"temperature: 4, top_p: {top_p}")
    sampler, count = Answerer(plan_of(hot), organism_folder()), 3000
    with torch.inference_mode():
        logits = sampler.backend.base(torch.tensor([prompts[0]])).logits[0, -1].double().numpy()
    chances = np.exp((logits - logits.max()) / 4)
    chances /= chances.sum()
    order = np.argsort(-chances)
    nucleus = order[: int(np.searchsorted(np.cumsum(chances[order]), top_p)) + 1]
    kept = np.zeros_like(chances)
    kept[nucleus] = chances[nucleus] / chances[nucleus].sum()
    sampler.backend.generation.max_new_tokens = 1
    drawn = Counter(c.ids[0] for c in sampler.generate([prompts[0]] * count, 7))
    assert set(drawn) <= set(nucleus.tolist())
    likely = order[:6].tolist()
    seen = [drawn[token] for token in likely]
    expected = [kept[token] * count for token in likely]
    assert min(expected) > 5
    rest = (count - sum(seen), count - sum(expected))
    assert chisquare([*seen, rest[0]], [*expected, rest[1]]).pvalue > 1e-4


def test_a_row_that_ends_shifts_nobodys_random_numbers(
    prompts: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    from ahalab.evaluate.backends import decoding

    sampler = Answerer(plan_of(SAMPLED), organism_folder())
    released = [c.text for c in sampler.generate(prompts, 9)]
    assert len({len(text) for text in released}) > 2
    monkeypatch.setattr(decoding, "RELEASE_AT", 2)  # never
    assert [c.text for c in sampler.generate(prompts, 9)] == released


def test_two_sides_follow_the_same_random_numbers(prompts: list[tuple[int, ...]]) -> None:
    sampler = Answerer(plan_of(SAMPLED), organism_folder())
    alone = sampler.generate(prompts, 9)
    sampler.backend.serve([Side("one"), Side("two")])
    assert sampler.backend.generate(batch_of(prompts, 9)) == [alone, alone]


def test_a_model_whose_state_is_more_than_a_cache_is_decoded_by_the_library(
    tmp_path: Path,
) -> None:
    from transformers import MambaConfig, MambaForCausalLM

    torch.manual_seed(0)
    folder = tmp_path / "mamba"
    shutil.copytree(organism_folder(), folder)
    for name in ("model.safetensors", "config.json", "generation_config.json"):
        (folder / name).unlink()
    config = MambaConfig(
        vocab_size=4096, hidden_size=16, num_hidden_layers=1, state_size=4, eos_token_id=1
    )
    MambaForCausalLM(config).save_pretrained(folder)
    answerer = Answerer(plan_of(PLAN), folder)
    assert answerer.backend.facts.decoder == "generate"
    answers = answerer.generate([(5, 6, 7), (8, 9)], 0)
    with torch.inference_mode():
        tokens = [5, 6, 7]
        for _ in range(5):
            tokens.append(int(answerer.backend.base(torch.tensor([tokens])).logits[0, -1].argmax()))
    assert answers[0].ids[:5] == tuple(tokens[3:])
