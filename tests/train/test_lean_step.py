"""A training pass without the rows that have no gradient: the same adapter, less work.

Compared under SGD, whose update is the gradient itself: Adam divides by its size, and so makes much
of the rounding of elements that have hardly any.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ahalab.plan.load import dump_plan, parse_plan
from ahalab.records.base import decode_file
from ahalab.records.plan import TrainingSpec
from ahalab.records.run import RunRecord
from ahalab.store.layout import RunPaths, StudyPaths
from ahalab.train.trl_compat import NORMALISED_BY, lean_step_of
from lab import WarmLab, rollouts_of

torch = pytest.importorskip("torch", reason="pip install 'ahalab[train]'")
pytestmark = pytest.mark.train

PLAN = """\
name: lean
model: {id: organism}
task: {name: arithmetic, train_prompts: 24, eval_prompts: 4}
arms: [correctness, {name: flat, components: {constant: 1.0}}, random]
control: random
seeds: [1]
grpo:
  max_steps: 3
  num_generations: 4
  per_device_train_batch_size: 16
  max_completion_length: 40
  learning_rate: 0.1
  optim: sgd
lora: {r: 4}
evaluation: {max_new_tokens: 40}
"""
SLICED = (
    "\n  per_device_train_batch_size: 8\n  steps_per_generation: 4\n"
    "  gradient_accumulation_steps: 2\n  num_iterations: 2\n  max_steps: 4"
)


def plan_text(loss: str = "dapo", *, lean: bool = True, sliced: bool = False) -> str:
    text = PLAN.replace("  max_steps: 3", f"  max_steps: 3\n  loss_type: {loss}")
    if sliced:
        text = text.replace("\n  per_device_train_batch_size: 16", SLICED)
        text = text.replace("  max_steps: 3\n", "", 1)
    return text + f"training: {{lean_step: {str(lean).lower()}}}\n"


def train(warm: WarmLab, folder: Path, text: str, arm: str) -> RunPaths:
    folder.mkdir()
    plan = folder / "study.yaml"
    plan.write_text(text, encoding="utf-8")
    warm.run("train", plan, "--out", folder / "results", "--arm", arm, "--seed", 1)
    return StudyPaths(folder / "results" / "lean").run(arm, 1)


def tensors(run: RunPaths) -> dict[str, Any]:
    from safetensors.torch import load_file

    found: dict[str, Any] = load_file(run.adapter / "adapter_model.safetensors")
    return found


def record(run: RunPaths) -> RunRecord:
    return decode_file(run.record.read_bytes(), RunRecord, "run.json")


def assert_same_adapter(lean: RunPaths, full: RunPaths) -> None:
    ours, theirs = tensors(lean), tensors(full)
    assert list(ours) == list(theirs)
    for name, tensor in ours.items():
        scale = max(float(theirs[name].norm()), 1e-12)
        assert float((tensor - theirs[name]).norm()) / scale <= 1e-5, name


@pytest.mark.parametrize(
    ("loss", "sliced"),
    [*((loss, False) for loss in NORMALISED_BY), ("dapo", True), ("grpo", True), ("bnpo", True)],
)
def test_the_adapter_is_the_one_that_every_row_would_have_made(
    warm: WarmLab, tmp_path: Path, loss: str, sliced: bool
) -> None:
    runs = [
        train(warm, tmp_path / name, plan_text(loss, lean=lean, sliced=sliced), "correctness")
        for name, lean in (("lean", True), ("full", False))
    ]
    rows = [rollouts_of(run) for run in runs]
    assert rows[0] == rows[1]
    left_out = sum(row.advantage == 0 for row in rows[0])
    assert 0 < left_out < len(rows[0])  # else nothing was put to the test
    assert_same_adapter(*runs)
    assert [record(run).lean_step for run in runs] == ["on", "off: training.lean_step is false"]


def test_where_every_group_is_dead_gradients_are_zeros_and_not_absent(
    warm: WarmLab, tmp_path: Path
) -> None:
    runs = [
        train(warm, tmp_path / name, plan_text(lean=lean), "flat")
        for name, lean in (("lean", True), ("full", False))
    ]
    assert all(row.advantage == 0 for row in rollouts_of(runs[0]))
    assert_same_adapter(*runs)


@pytest.mark.parametrize("zero", [True, False])
def test_a_group_of_equal_rewards_gets_exactly_zero_where_the_plan_says_so(
    warm: WarmLab, tmp_path: Path, zero: bool
) -> None:
    text = (
        plan_text()
        .replace("constant: 1.0", "constant: 0.1")
        .replace("num_generations: 4", "num_generations: 8")
    )
    text = text.replace("lean_step: true", f"zero_dead_groups: {str(zero).lower()}")
    advantages = [row.advantage for row in rollouts_of(train(warm, tmp_path / "run", text, "flat"))]
    assert len(advantages) == 48
    assert all(a == 0 for a in advantages) is zero  # TRL alone leaves 7e-5 (TRL_FACTS 19)


# The parts, on tensors made by hand.


def slice_of() -> dict[str, Any]:
    return {
        "prompt_ids": torch.tensor([[0, 0, 1, 2], [0, 3, 4, 5], [0, 0, 0, 6]]),
        "prompt_mask": torch.tensor([[0, 0, 1, 1], [0, 1, 1, 1], [0, 0, 0, 1]]),
        "completion_ids": torch.tensor([[7, 8, 0, 0, 0], [7, 7, 7, 7, 0], [9, 9, 9, 0, 0]]),
        "completion_mask": torch.tensor([[1, 1, 0, 0, 0], [1, 1, 1, 1, 0], [1, 1, 1, 0, 0]]),
        "old_per_token_logps": torch.arange(15.0).reshape(3, 5),
        "advantages": torch.tensor([0.5, 0.0, -0.5]),
        "num_items_in_batch": torch.tensor(9),
        "num_images": None,
    }


def test_kept_rows_lose_the_columns_that_none_of_their_answers_reaches() -> None:
    from ahalab.train.lean_step import kept_rows, lean

    inputs = slice_of()
    found = lean(inputs, kept_rows(inputs))
    assert found["prompt_ids"].tolist() == [[0, 0, 1, 2], [0, 0, 0, 6]]
    assert found["prompt_mask"].tolist() == [[0, 0, 1, 1], [0, 0, 0, 1]]
    assert found["completion_ids"].tolist() == [[7, 8, 0], [9, 9, 9]]
    assert found["old_per_token_logps"].tolist() == [[0, 1, 2], [10, 11, 12]]
    assert found["advantages"].tolist() == [0.5, -0.5]
    assert int(found["num_items_in_batch"]) == 9
    assert found["num_images"] is None
    assert inputs["completion_ids"].shape == (3, 5)  # the trainer's buffer is left alone


def test_an_advantage_of_minus_zero_is_none_and_one_that_is_no_number_is_kept() -> None:
    from ahalab.train.lean_step import kept_rows

    advantages = torch.tensor([-0.0, float("nan"), 1e-30, 0.0])
    assert kept_rows({"advantages": advantages}).tolist() == [False, True, True, False]


@pytest.mark.parametrize(
    ("loss", "expected"), [("dapo", 1.0), ("cispo", 1.0), ("grpo", 2 / 3), ("bnpo", 5 / 9)]
)
def test_the_loss_is_scaled_back_by_what_it_was_divided_by(loss: str, expected: float) -> None:
    from ahalab.train.lean_step import kept_rows, scale_back

    inputs = slice_of()
    assert scale_back(loss, inputs, kept_rows(inputs)) == pytest.approx(expected)


CONFIG = {"beta": 0.0, "loss_type": "dapo", "top_entropy_quantile": 1.0}


@pytest.mark.parametrize(
    ("changed", "experts", "processes", "said"),
    [
        ({"beta": 0.01}, False, 1, "grpo.beta=0.01"),
        ({"entropy_coef": 0.1}, False, 1, "grpo.entropy_coef"),
        ({"top_entropy_quantile": 0.2}, False, 1, "grpo.top_entropy_quantile"),
        ({"off_policy_mask_threshold": 0.5}, False, 1, "grpo.off_policy_mask_threshold"),
        ({"use_vllm": True}, False, 1, "grpo.use_vllm"),
        ({"use_liger_kernel": True}, False, 1, "grpo.use_liger_kernel"),
        ({"loss_type": "vespo"}, False, 1, "grpo.loss_type=vespo"),
        ({}, True, 1, "routers"),
        ({}, False, 2, "2 processes"),
    ],
)
def test_it_is_off_where_a_term_needs_every_row(
    changed: dict[str, Any], experts: bool, processes: int, said: str
) -> None:
    config = SimpleNamespace(**(CONFIG | changed))
    found = lean_step_of(TrainingSpec(), config, experts=experts, processes=processes)
    assert found.startswith("off: ")
    assert said in found
    plain = SimpleNamespace(**CONFIG)
    assert lean_step_of(TrainingSpec(), plain, experts=False, processes=1) == "on"


def test_the_plan_of_a_test_is_a_plan() -> None:
    for sliced in (True, False):
        plan = parse_plan(plan_text(sliced=sliced), "study.yaml")
        assert parse_plan(dump_plan(plan), "study.yaml") == plan
