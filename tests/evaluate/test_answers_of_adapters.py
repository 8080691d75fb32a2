"""The backend: the adapter really applied, the base left as it was, nothing of the model's own."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ahalab.errors import InputError
from ahalab.records.plan import Plan
from ahalab.store.models import organism_folder
from ahalab.tasks.prepare import read_prompts
from lab import PLAN, SAMPLED, Answerer, Trained, plan_of

pytest.importorskip("torch", reason="pip install 'ahalab[train]'")
pytestmark = [pytest.mark.train, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
WEIGHTS, CONFIG = "adapter_model.safetensors", "adapter_config.json"


def make_generator(plan: Plan, folder: Path) -> Answerer:
    return Answerer(plan, folder)


@pytest.fixture(scope="module")
def generator() -> Answerer:
    return make_generator(plan_of(PLAN), organism_folder())


@pytest.fixture(scope="module")
def prompts(trained: Trained) -> list[tuple[int, ...]]:
    return [p.prompt_ids for p in read_prompts(trained.paths, "eval")]


def logits(generator: Answerer, prompts: list[tuple[int, ...]]) -> Any:
    import torch

    with torch.inference_mode():
        return generator.backend.model(torch.tensor([prompts[0]])).logits


@pytest.fixture
def adapter(trained: Trained, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained.run("historical").adapter, tmp_path / "adapter"))


def edit_config(adapter: Path, **changed: object) -> None:
    config = json.loads((adapter / CONFIG).read_bytes())
    (adapter / CONFIG).write_text(json.dumps({**config, **changed}))


def edit_tensors(adapter: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    from safetensors.torch import load_file, save_file

    tensors = load_file(adapter / WEIGHTS)
    edit(tensors)
    save_file(tensors, adapter / WEIGHTS)


def test_an_adapter_changes_the_logits_and_unloading_it_leaves_no_trace(
    generator: Answerer, prompts: list[tuple[int, ...]], trained: Trained, adapter: Path
) -> None:
    generator.use_base()
    before = {name: t.clone() for name, t in generator.backend.base.state_dict().items()}
    base_logits, base_answers = logits(generator, prompts), generator.generate(prompts, 3)
    generator.use_adapter(adapter)
    applied = logits(generator, prompts)
    assert (applied - base_logits).abs().max() > 1e-3
    generator.use_adapter(trained.run("random").adapter)
    assert (logits(generator, prompts) - applied).abs().max() > 1e-4
    generator.use_base()
    after = generator.backend.base.state_dict()
    assert after.keys() == before.keys()
    assert all(t.equal(before[name]) for name, t in after.items())
    assert logits(generator, prompts).equal(base_logits)
    assert generator.generate(prompts, 3) == base_answers


def test_an_adapter_of_zeros_answers_as_the_base(
    generator: Answerer, prompts: list[tuple[int, ...]], adapter: Path
) -> None:
    generator.use_base()
    base = generator.generate(prompts, 0)

    def silence(tensors: dict[str, Any]) -> None:
        for name in tensors:
            if "lora_B" in name:
                tensors[name] = tensors[name] * 0

    edit_tensors(adapter, silence)
    generator.use_adapter(adapter)
    assert generator.generate(prompts, 0) == base


def test_the_adapters_alpha_matters(
    generator: Answerer, prompts: list[tuple[int, ...]], adapter: Path
) -> None:
    generator.use_adapter(adapter)
    as_trained = logits(generator, prompts)
    edit_config(adapter, lora_alpha=0)
    generator.use_adapter(adapter)
    muted = logits(generator, prompts)
    generator.use_base()
    assert muted.equal(logits(generator, prompts))
    assert not muted.equal(as_trained)


def missing_tensor(adapter: Path) -> None:
    edit_tensors(adapter, lambda tensors: tensors.pop(sorted(tensors)[0]))


def surplus_tensor(adapter: Path) -> None:
    def add(tensors: dict[str, Any]) -> None:
        name = sorted(tensors)[0]
        tensors[name.replace("layers.0", "layers.9")] = tensors[name].clone()

    edit_tensors(adapter, add)


def another_base(adapter: Path) -> None:
    edit_config(adapter, base_model_name_or_path="someone/else")


def no_base(adapter: Path) -> None:
    edit_config(adapter, base_model_name_or_path=None)


def another_rank(adapter: Path) -> None:
    edit_config(adapter, r=8)


def code_of_others(adapter: Path) -> None:
    edit_config(adapter, auto_mapping={"base_model_class": "X", "parent_library": "os"})


def torn_weights(adapter: Path) -> None:
    (adapter / WEIGHTS).write_bytes((adapter / WEIGHTS).read_bytes()[:-7])


FAULTS = (
    missing_tensor, surplus_tensor, another_base, no_base, another_rank, code_of_others,
    torn_weights,
)  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_an_adapter_that_would_be_applied_in_part_is_refused_in_one_line(
    adapter: Path, fault: Callable[[Path], None]
) -> None:
    generator = make_generator(plan_of(PLAN), organism_folder())
    fault(adapter)
    with pytest.raises(InputError, match="adapter") as caught:
        generator.use_adapter(adapter)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", [PLAN, SAMPLED])
def test_the_models_own_generation_config_reaches_no_answer(
    prompts: list[tuple[int, ...]], tmp_path: Path, text: str
) -> None:
    from transformers import AutoModelForCausalLM

    model = Path(shutil.copytree(organism_folder(), tmp_path / "model"))
    own = json.loads((model / "generation_config.json").read_bytes())
    own |= {
        "repetition_penalty": 1.5, "no_repeat_ngram_size": 2, "do_sample": True, "top_k": 1,
        "temperature": 0.1, "min_new_tokens": 30,
    }  # fmt: skip
    (model / "generation_config.json").write_text(json.dumps(own))
    plan = plan_of(text)
    expected = make_generator(plan, organism_folder()).generate(prompts, 11)
    assert make_generator(plan, model).generate(prompts, 11) == expected
    # The trap itself (TRL_FACTS 6): left to itself the model answers otherwise.
    import torch

    alone = AutoModelForCausalLM.from_pretrained(model)
    output = alone.generate(torch.tensor([prompts[0]]), max_new_tokens=40, do_sample=False)
    assert tuple(output[0, len(prompts[0]) :].tolist())[:10] != expected[0].ids[:10]


def test_an_answer_does_not_depend_on_its_neighbours_padding(
    generator: Answerer, prompts: list[tuple[int, ...]]
) -> None:
    generator.use_base()
    together = generator.generate(prompts, 0)
    assert [generator.generate([p], 0)[0].text for p in prompts[:4]] == [
        c.text for c in together[:4]
    ]


def test_sampling_depends_on_the_batchs_seed_alone(prompts: list[tuple[int, ...]]) -> None:
    import torch

    sampler = make_generator(plan_of(SAMPLED), organism_folder())
    first = sampler.generate(prompts, 4)
    torch.manual_seed(999)
    assert sampler.generate(prompts, 4) == first
    assert sampler.generate(prompts, 5) != first


def test_a_completion_ends_with_its_end_token_or_at_the_limit(
    generator: Answerer, prompts: list[tuple[int, ...]]
) -> None:
    for answer in generator.generate(prompts, 0):
        ended = answer.ids[-1] in generator.backend.end_ids
        assert answer.finish == ("eos" if ended else "length")
        assert ended or len(answer.ids) == 40
        assert not any(token in generator.backend.end_ids for token in answer.ids[:-1])
