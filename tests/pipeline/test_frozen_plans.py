from pathlib import Path

import pytest

from ahalab.errors import InputError, PlanError
from ahalab.pipeline.study import freeze, open_study
from ahalab.plan.load import load_plan
from ahalab.records.base import digest

TEXT = """
name: frozen
model: {id: organism}
task: {name: arithmetic, train_prompts: 8, eval_prompts: 8}
arms: [correctness, random]
control: random
seeds: [1]
grpo: {max_steps: 2, num_generations: 4, per_device_train_batch_size: 8, learning_rate: 1e-4}
lora: {r: 4}
evaluation: {max_new_tokens: 16}
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "plan.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_plan_that_nothing_came_of_gives_way_to_the_next_one(tmp_path: Path) -> None:
    plan, paths = open_study(write(tmp_path, TEXT), tmp_path / "out")
    freeze(plan, paths)
    changed = TEXT.replace("1e-4", "2e-4")
    again, paths = open_study(write(tmp_path, changed), tmp_path / "out")
    freeze(again, paths)
    assert digest(load_plan(paths.plan)) == digest(again) != digest(plan)


def test_a_plan_that_rows_were_written_under_stays_and_its_keys_are_named(tmp_path: Path) -> None:
    plan, paths = open_study(write(tmp_path, TEXT), tmp_path / "out")
    freeze(plan, paths)
    paths.prompts("train").parent.mkdir()
    paths.prompts("train").write_bytes(b"")
    before = paths.plan.read_bytes()
    with pytest.raises(PlanError, match=r"grpo\.learning_rate: 0\.0002 here, 0\.0001 there"):
        open_study(write(tmp_path, TEXT.replace("1e-4", "2e-4")), tmp_path / "out")
    assert paths.plan.read_bytes() == before


def test_a_results_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="expected a folder, found a link"):
        open_study(write(tmp_path, TEXT), tmp_path / "out")
