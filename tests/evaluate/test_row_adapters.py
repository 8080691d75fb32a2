"""Adapters on the rows of one batch: the numbers of PEFT's own way, and nothing left behind."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from ahalab.store.models import organism_folder, quiet_libraries

torch = pytest.importorskip("torch", reason="pip install 'ahalab[train]'")
pytestmark = [pytest.mark.train, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

IDS = [[5, 6, 7, 8]] * 6
NAMES = ["one", "one", None, None, "two", "two"]


def with_adapters(*configs: dict[str, Any]) -> Any:
    """Return the organism under adapters named one, two, ..., whose B is not zero."""
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    torch.manual_seed(3)
    made = [LoraConfig(init_lora_weights=False, **config) for config in configs]
    with quiet_libraries():
        base = AutoModelForCausalLM.from_pretrained(organism_folder()).eval()
        model = get_peft_model(base, made[0], adapter_name="one")
        for name, config in zip(("two", "three"), made[1:], strict=False):
            model.add_adapter(name, config)
    return model.eval()


def logits(model: Any, **more: Any) -> Any:
    with torch.inference_mode():
        return model(input_ids=torch.tensor(IDS), **more).logits


def test_every_row_gets_its_own_adapter_to_the_bit_as_from_peft() -> None:
    from ahalab.evaluate.backends.row_adapters import adapters_by_row, has_plain_lora

    model = with_adapters(
        {"r": 4, "target_modules": "all-linear"},
        {"r": 2, "lora_alpha": 64, "target_modules": ["q_proj", "down_proj"], "lora_bias": True},
    )
    expected = logits(model, adapter_names=[name or "__base__" for name in NAMES])
    rows = [0, 2, 4]
    assert not any(expected[a].equal(expected[b]) for a in rows for b in rows if a < b)
    assert has_plain_lora(model)
    with adapters_by_row(model) as adapters:
        adapters.place(NAMES)
        assert logits(model).equal(expected)
        adapters.place(NAMES[::2] * 2)  # in another order, one row at a time
        assert torch.allclose(logits(model), expected[::2].repeat(2, 1, 1), atol=1e-4)
        adapters.place([None] * len(NAMES))
        base = logits(model)
    with model.disable_adapter():
        assert base.equal(logits(model))


def test_afterwards_the_model_is_as_before_also_after_an_error() -> None:
    from ahalab.evaluate.backends.row_adapters import adapters_by_row

    model = with_adapters({"r": 4, "target_modules": "all-linear"})
    before = logits(model)
    with suppress(RuntimeError), adapters_by_row(model) as adapters:
        adapters.place([None] * len(IDS))
        assert not logits(model).equal(before)
        raise RuntimeError
    assert logits(model).equal(before)
    assert not any(module._forward_hooks for module in model.modules())


@pytest.mark.parametrize(
    "config",
    [
        {"target_modules": ["q_proj"], "modules_to_save": ["lm_head"]},
        {"target_modules": ["q_proj", "embed_tokens"]},
    ],
    ids=["a module of its own", "an embedding"],
)
def test_other_adapters_are_left_to_peft(config: dict[str, Any]) -> None:
    """Rows of such adapters in one batch are those of a batch each."""
    from transformers import GenerationConfig

    from ahalab.evaluate.backends.decoding import Row, decode
    from ahalab.evaluate.backends.row_adapters import has_plain_lora

    model = with_adapters({"r": 4, **config})
    assert not has_plain_lora(model)
    generation = GenerationConfig(
        max_new_tokens=6, do_sample=False, eos_token_id=[1], pad_token_id=0
    )
    prompt = tuple(IDS[0])
    mixed = decode(model, [Row(prompt, 0, None), Row(prompt, 1, "one")], generation, 0)
    with model.disable_adapter():
        base = decode(model, [Row(prompt, 0, None)], generation, 0)
    assert mixed == [*base, *decode(model, [Row(prompt, 0, None)], generation, 0)]
    assert mixed[0] != mixed[1]
