"""One configuration on every supported TRL: handed over whole, or refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from ahalab.errors import MissingError, PlanError
from ahalab.train import trl_compat
from ahalab.train.trl_compat import check_trl, effective_config, effective_lora, grpo_config
from lab import PLAN, WINDOWED, plan_of

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # while the libraries are imported
    # Written out by every plan, since its default changed the meaning of a run.
    pytest.mark.filterwarnings("ignore:`gradient_checkpointing:FutureWarning"),
]


@pytest.fixture
def libraries() -> None:
    pytest.importorskip("trl", reason="pip install 'ahalab[train]'")


@pytest.mark.train
@pytest.mark.parametrize("text", [PLAN, WINDOWED])
def test_every_field_of_the_plan_is_the_one_that_trl_holds(
    libraries: None, tmp_path: Path, text: str
) -> None:
    plan = plan_of(text)
    held = effective_config(grpo_config(plan, 7, tmp_path / "secret-place"))
    for name, value in plan.grpo.items():
        assert held[name] == value, name
    assert (held["seed"], held["data_seed"]) == (7, 7)
    assert held["generation_batch_size"] == 16
    assert "secret-place" not in str(held)


@pytest.mark.train
def test_what_decides_about_records_is_not_the_plans_to_choose(
    libraries: None, tmp_path: Path
) -> None:
    plan = plan_of()
    plan = replace(plan, grpo={**plan.grpo, "logging_steps": 5, "log_completions": True})
    held = effective_config(grpo_config(plan, 1, tmp_path))
    assert (held["logging_steps"], held["log_completions"]) == (1, False)


@pytest.mark.train
def test_a_field_that_the_installed_trl_lacks_is_refused_not_dropped(
    libraries: None, tmp_path: Path
) -> None:
    plan = plan_of()
    plan = replace(plan, grpo={**plan.grpo, "max_prompt_length": 512})
    with pytest.raises(PlanError, match=r"grpo\.max_prompt_length: trl .* has no such field"):
        grpo_config(plan, 1, tmp_path)


@pytest.mark.train
def test_the_recorded_lora_has_sorted_modules_and_no_path(libraries: None) -> None:
    from peft import LoraConfig

    modules = ["v_proj", "q_proj", "o_proj"]
    held = effective_lora(LoraConfig(target_modules=modules, base_model_name_or_path="/here"))
    assert held["target_modules"] == sorted(modules)
    assert "/here" not in str(held)


@pytest.mark.parametrize(
    ("found", "reason"), [("0.22.0", "scales rewards"), ("0.19.0", "strips"), ("0.15.2", "0.24")]
)
def test_a_trl_known_to_train_something_else_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, found: str, reason: str
) -> None:
    monkeypatch.setattr(trl_compat, "version", lambda _: found)
    with pytest.raises(MissingError, match=rf"trl {found}: .*{reason}"):
        check_trl()


@pytest.mark.parametrize("found", ["0.24.0", "1.16.0", "1.17.0.dev0"])
def test_a_trl_that_is_new_enough_passes(monkeypatch: pytest.MonkeyPatch, found: str) -> None:
    monkeypatch.setattr(trl_compat, "version", lambda _: found)
    check_trl()
