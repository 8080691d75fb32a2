"""The base's weights in memory: what an adapter leaves behind in them is noticed and named."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from ahalab.errors import InputError
from ahalab.evaluate.backends import Side
from ahalab.evaluate.pair import Evaluation
from ahalab.store.models import load_model, organism_folder
from lab import PLAN, Trained, plan_of

torch = pytest.importorskip("torch", reason="pip install 'ahalab[train]'")
pytestmark = [pytest.mark.train, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


@pytest.fixture
def model() -> Any:
    return load_model(plan_of(PLAN).model, organism_folder())


def held(model: Any) -> dict[str, str]:
    from ahalab.evaluate.backends.memory import held_weights

    return held_weights(model)


def require(before: dict[str, str], after: dict[str, str]) -> None:
    from ahalab.evaluate.backends.memory import require_unchanged

    require_unchanged(before, after, "model")


def test_the_smallest_change_of_one_weight_is_named(model: Any) -> None:
    before = held(model)
    require(before, held(model))
    name, weights = sorted(model.state_dict().items())[3]
    with torch.no_grad():
        weights.view(-1)[5] = torch.nextafter(weights.view(-1)[5], torch.tensor(9.0))
    with pytest.raises(InputError, match=f"{name} differs"):
        require(before, held(model))


def test_tied_weights_are_summed_once_and_a_cut_tie_is_a_difference() -> None:
    class Tied(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = torch.nn.Linear(3, 2, bias=False).to(torch.bfloat16)
            self.head = torch.nn.Linear(3, 2, bias=False)
            self.head.weight = self.embed.weight
            self.register_buffer("scalar", torch.tensor(2.0))

    model = Tied()
    before = held(model)
    assert before["head.weight"] == "tied to embed.weight"
    model.head.weight = torch.nn.Parameter(model.embed.weight.detach().clone())
    with pytest.raises(InputError, match=r"head\.weight differs\."):
        require(before, held(model))


def test_an_evaluation_whose_base_was_changed_in_memory_ends_in_an_error_that_names_it(
    study: Trained,
) -> None:
    stage = Evaluation(study.plan, study.paths)
    stage.check_base()
    adapter = Path(shutil.copytree(study.run("historical").adapter, study.paths.root / "spare"))
    # An adapter of this kind takes its start from the base, and PEFT changes the base for it
    # whenever it is loaded; `require_sound_adapter` would refuse it before.
    config = json.loads((adapter / "adapter_config.json").read_bytes())
    (adapter / "adapter_config.json").write_text(
        json.dumps({**config, "init_lora_weights": "olora"})
    )
    stage.backend.serve([Side("spare", adapter)])
    with pytest.raises(InputError, match=r"changes after adapters were removed: .*weight differs"):
        stage.check_base()


def test_a_base_whose_file_changed_meanwhile_ends_in_an_error_that_names_the_tensor(
    study: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from safetensors.torch import load_file, save_file

    folder = Path(shutil.copytree(organism_folder(), tmp_path / "model"))
    monkeypatch.setattr("ahalab.evaluate.pair.resolve_model", lambda spec: folder)
    stage = Evaluation(study.plan, study.paths)
    tensors = load_file(folder / "model.safetensors")
    name = sorted(tensors)[2]
    tensors[name] = tensors[name] + 1
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    told = f"expected the base that this evaluation began with, found another: {name} differs"
    with pytest.raises(InputError, match=told):
        stage.check_base()
    with pytest.raises(InputError, match=f"tensors.json records, found another: {name} differs"):
        Evaluation(study.plan, study.paths)
