"""What a plan hands the chat template reaches the prompts of every stage, not training's alone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ahalab.store.layout import StudyPaths
from ahalab.store.models import organism_folder
from ahalab.tasks.prepare import read_prompts
from ahalab.tasks.render import load_tokenizer
from lab import PLAN, WarmLab, write_plan

pytestmark = pytest.mark.train
TEMPLATE = "{%- if marked -%}==={%- endif -%}"


def test_trainer_and_prompts_are_handed_the_same(warm: WarmLab, tmp_path: Path) -> None:
    base = tmp_path / "base"
    shutil.copytree(organism_folder(), base)
    file = base / "chat_template.jinja"
    file.write_text(TEMPLATE + file.read_text())
    text = PLAN.replace("id: organism", f"id: {base}").replace("max_steps: 6", "max_steps: 2")
    text = text.replace("grpo:\n", "grpo:\n  chat_template_kwargs: {marked: true}\n")
    plan = write_plan(tmp_path / "plan", text)
    # The trainer's own count of tokens is compared with the prompts': other prompts end it here.
    warm.run("train", plan, "--arm", "random", "--seed", 1, "--out", tmp_path / "results")
    tokenizer = load_tokenizer(base)
    marked = tokenizer("===", add_special_tokens=False)["input_ids"]
    assert marked
    for split in ("train", "eval"):
        for prompt in read_prompts(StudyPaths(tmp_path / "results" / "tiny"), split):
            assert list(prompt.prompt_ids[: len(marked)]) == marked
