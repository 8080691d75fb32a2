"""One configuration on every supported TRL: handed over whole, or refused."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ahalab.errors import MissingError, PlanError
from ahalab.train import trl_compat
from ahalab.train.trl_compat import (
    OVERRIDDEN,
    check_trainer,
    check_trl,
    effective_config,
    effective_lora,
    grpo_config,
    lora_config,
)
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


def test_a_trl_that_does_not_start_with_the_transformers_beside_it_is_refused_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = {"trl": "0.28.0", "transformers": "5.24.0"}
    monkeypatch.setattr(trl_compat, "version", found.__getitem__)
    with pytest.raises(MissingError, match=r"trl 0\.28\.0: .* transformers 5\.24\.0\. pip install"):
        check_trl()
    found["transformers"] = "4.57.6"
    check_trl()


# An older TRL, played by the fields and the version that it had.


@dataclass
class OlderConfig:
    """A stand-in for GRPOConfig: fields that TRL 0.24 had under another name, or no more."""

    loss_type: str = "bnpo"
    beta: float = 0.04
    warmup_steps: int = 0
    warmup_ratio: float = 0.0
    vllm_importance_sampling_cap: float = 2.0
    max_prompt_length: int | None = 512


class Older:
    """Puts `OlderConfig`, and versions, in the place of those installed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        import trl

        found = {"trl": "0.24.0", "transformers": "4.57.6"}
        monkeypatch.setattr(trl, "GRPOConfig", OlderConfig)
        monkeypatch.setattr(trl_compat, "version", found.__getitem__)
        # What ahalab sets itself is not what is shown here.
        kept = {f: getattr(OlderConfig, f) for f in OlderConfig.__dataclass_fields__}
        as_installed = trl_compat._as_installed
        monkeypatch.setattr(
            trl_compat,
            "_as_installed",
            lambda wanted, known: as_installed(
                {k: v for k, v in wanted.items() if k in self.asked or k in kept}, known
            ),
        )
        self.asked: dict[str, Any] = {}
        self.folder = tmp_path

    def held(self, text: str = PLAN, **asked: Any) -> dict[str, Any]:
        self.asked = asked
        plan = plan_of(text)
        plan = replace(plan, grpo={**plan.grpo, **asked})
        return effective_config(grpo_config(plan, 1, self.folder))


@pytest.fixture
def older(libraries: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Older:
    return Older(monkeypatch, tmp_path)


@pytest.mark.train
def test_a_field_that_had_another_name_is_handed_over_under_it_and_recorded_under_both(
    older: Older,
) -> None:
    held = older.held(vllm_importance_sampling_clip_max=1.5)
    assert held["vllm_importance_sampling_cap"] == 1.5
    assert held["vllm_importance_sampling_clip_max"] == 1.5


@pytest.mark.train
def test_a_share_of_warm_up_steps_is_a_share_in_transformers_4_too(older: Older) -> None:
    held = older.held(warmup_steps=0.25)
    assert held["warmup_ratio"] == 0.25
    assert held["warmup_steps"] == 0.25  # in the plan's words
    assert older.held(warmup_steps=3)["warmup_ratio"] == 0.0


@pytest.mark.train
def test_a_default_that_cut_prompts_is_switched_off(older: Older) -> None:
    assert older.held()["max_prompt_length"] is None


@pytest.mark.train
def test_what_a_trl_without_the_field_computes_anyway_may_be_asked_of_it(older: Older) -> None:
    assert older.held(beta=0.04, use_bias_correction_kl=False)["use_bias_correction_kl"] is False
    with pytest.raises(PlanError, match=r"grpo\.entropy_coef: trl 0\.24\.0 has no such field"):
        older.held(entropy_coef=0.1)


@pytest.mark.train
@pytest.mark.parametrize(
    ("text", "asked", "said"),
    [
        (PLAN, {"beta": 0.04}, "grpo.beta: refused with trl 0.24.0"),
        (PLAN, {"mask_truncated_completions": True}, "grpo.mask_truncated_completions: refused"),
        (PLAN, {"loss_type": "cispo"}, "grpo.loss_type: trl 0.24.0 has no cispo"),
        (
            PLAN.replace("size: 16", "size: 8\n  steps_per_generation: 2"),
            {},
            "grpo.steps_per_generation: refused with trl 0.24.0",
        ),
    ],
)
def test_what_an_older_trl_computes_differently_is_refused(
    older: Older, text: str, asked: dict[str, Any], said: str
) -> None:
    with pytest.raises(PlanError) as caught:
        older.held(text, **asked)
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)


@pytest.mark.train
def test_a_field_of_the_adapter_that_the_installed_peft_lacks_is_refused(libraries: None) -> None:
    plan = plan_of()
    plan = replace(plan, lora={**plan.lora, "use_something_new": True})
    with pytest.raises(PlanError, match=r"lora\.use_something_new: peft .* has no such field"):
        lora_config(plan)


# What the trainer overrides.


def trl_classes() -> tuple[type, type]:
    from trl import GRPOTrainer
    from trl.trainer.utils import RepeatSampler

    return GRPOTrainer, RepeatSampler


@pytest.mark.train
def test_the_installed_trl_has_and_calls_all_that_the_trainer_overrides(libraries: None) -> None:
    check_trainer(*trl_classes())


@pytest.mark.train
@pytest.mark.parametrize("name", OVERRIDDEN)
def test_a_trl_that_lost_a_method_that_the_trainer_overrides_is_refused_in_one_line(
    libraries: None, name: str
) -> None:
    trainer, sampler = trl_classes()
    gone = type("Gone", (trainer,), {name: None})
    with pytest.raises(MissingError, match=name) as caught:
        check_trainer(gone, sampler)
    assert "\n" not in str(caught.value)
    renamed = type("Renamed", (trainer,), {name: lambda self, something_else: None})
    with pytest.raises(MissingError, match=rf"found {name}\(something_else\)"):
        check_trainer(renamed, sampler)
    caller = OVERRIDDEN[name][1]
    passed_over = type("PassedOver", (trainer,), {caller: lambda self, inputs: None})
    with pytest.raises(MissingError, match=f"{caller} to call"):
        check_trainer(passed_over, sampler)


@pytest.mark.train
def test_a_sampler_in_which_a_resumed_run_can_not_find_its_place_is_refused(
    libraries: None,
) -> None:
    trainer, _ = trl_classes()
    with pytest.raises(MissingError, match="RepeatSampler to hold shuffle"):
        check_trainer(trainer, type("Sampler", (), {"__init__": lambda self: None}))
