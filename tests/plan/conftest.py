from pathlib import Path

import pytest

from ahalab.records.plan import Plan

# Minimal and valid. Lines are counted by the tests: 2 is `model`, 8 `control`, 11 `max_steps`.
TEXT = """\
name: demo
model: {id: organism}
task:
  name: arithmetic
  train_prompts: 16
  eval_prompts: 16
arms: [correctness, random]
control: random
seeds: [0, 1]
grpo:
  max_steps: 20
lora: {r: 4}
evaluation:
  max_new_tokens: 16
analysis:
  alpha: 0.05
"""


@pytest.fixture(scope="session")
def text() -> str:
    return TEXT


@pytest.fixture(scope="session")
def plan(text: str) -> Plan:
    from ahalab.plan.load import parse_plan

    return parse_plan(text, "study.yaml")


@pytest.fixture
def plan_path(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "study.yaml"
    path.write_text(text, encoding="utf-8")
    return path
