"""Each alarm of a run, raised by a real short run on the organism that has what it warns of."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from ahalab.records.base import decode_file
from ahalab.records.diagnostics import Diagnostics
from ahalab.records.run import RunRecord
from ahalab.statistics.alarms import ALARMS
from ahalab.store.layout import RunPaths, StudyPaths
from lab import Trained, WarmLab, rollouts_of

pytestmark = pytest.mark.train

CODE = """\
def rising(completions, trainer_state, **_):
    return [trainer_state.global_step / 10 + 0.01 * (i % 3) for i in range(len(completions))]

def jolt(completions, trainer_state, **_):
    size = 1000.0 if trainer_state.global_step == 7 else 0.01
    return [size * (i % 2) for i in range(len(completions))]

def silent(completions, **_):
    return [None if i % 5 == 0 else float(i % 2) for i in range(len(completions))]
"""


@dataclass(frozen=True, slots=True)
class Faulty:
    """A plan that has what an alarm warns of."""

    components: str = "{correct_strict: 1.0}"
    grpo: str = ""
    lora: str = "{r: 4}"
    steps: int = 10
    prompts: int = 24
    more: str = ""


FAULTY = {
    "dead_run": Faulty("{constant: 1.0}", steps=3),
    "unrewarded": Faulty("{'odd:silent': 1.0}", steps=3),
    "truncation": Faulty(grpo="max_completion_length: 4", steps=3),
    # The same four prompts at every step, nearly greedy: accuracy stands still.
    "reward_without_accuracy": Faulty(
        "{'odd:rising': 1.0}", grpo="learning_rate: 1e-7\n  temperature: 0.05", prompts=4
    ),
    "format_without_accuracy": Faulty(
        "{format: 1.0, correct_lenient: -1.0}",
        grpo="learning_rate: 3e-3\n  lr_scheduler_type: constant",
        steps=25,
    ),
    "entropy_collapse": Faulty(
        "{repetition: -5.0}", grpo="learning_rate: 1e-2\n  lr_scheduler_type: constant", steps=20
    ),
    "gradient_spike": Faulty("{'odd:jolt': 1.0}", grpo="scale_rewards: none"),
    "kl_spike": Faulty(
        "{'odd:jolt': 1.0}",
        grpo="scale_rewards: none\n  beta: 0.001\n  max_grad_norm: 1e6\n  learning_rate: 1e-2\n"
        "  optim: sgd\n  lr_scheduler_type: constant",
    ),
    "nothing_learned": Faulty(grpo="learning_rate: 0.0", steps=2),
    "group_below_4": Faulty(grpo="num_generations: 2", steps=2),
}


def plan_text(faulty: Faulty) -> str:
    given = {
        "num_generations": "4", "per_device_train_batch_size": "16", "max_completion_length": "40",
        "learning_rate": "1e-4", "save_steps": "1",
    }  # fmt: skip
    own = "\n  ".join(f"{k}: {v}" for k, v in given.items() if f"{k}:" not in faulty.grpo)
    return f"""\
name: faulty
model: {{id: organism}}
task: {{name: arithmetic, train_prompts: {faulty.prompts}, eval_prompts: 4}}
arms: [{{name: mine, components: {faulty.components}}}, random]
control: random
seeds: [1]
grpo:
  max_steps: {faulty.steps}
  {own}
  {faulty.grpo}
lora: {faulty.lora}
evaluation: {{max_new_tokens: 40}}
{faulty.more}
"""


def train(warm: WarmLab, folder: Path, faulty: Faulty, code: int = 0) -> tuple[RunPaths, str]:
    (folder / "odd.py").write_text(CODE, encoding="utf-8")
    plan = folder / "study.yaml"
    plan.write_text(plan_text(faulty), encoding="utf-8")
    said = warm.run(
        "train", plan, "--out", folder / "results", "--arm", "mine", "--seed", 1,
        "--force",  # pre-flight refuses what is cut through and through
        code=code,
    )  # fmt: skip
    return StudyPaths(folder / "results" / "faulty").run("mine", 1), said


def test_every_alarm_has_its_faulty_run() -> None:
    assert set(FAULTY) == set(ALARMS)


@pytest.mark.parametrize("name", ALARMS)
def test_a_run_that_has_the_fault_raises_the_alarm(
    warm: WarmLab, tmp_path: Path, name: str
) -> None:
    run, said = train(warm, tmp_path, FAULTY[name])
    record = decode_file(run.record.read_bytes(), RunRecord, "run.json")
    summary = decode_file(run.diagnostics.read_bytes(), Diagnostics, "diagnostics.json")
    assert record.alarms == summary.alarms
    (alarm,) = [a for a in summary.alarms if a.name == name]
    assert f"alarm {name}: {alarm.evidence}. Try: {alarm.remedy}." in said
    assert alarm.evidence
    assert alarm.remedy


@pytest.mark.parametrize("arm", ["historical", "random"])
def test_a_sound_run_raises_none(trained: Trained, arm: str) -> None:
    path = trained.run(arm).diagnostics
    assert decode_file(path.read_bytes(), Diagnostics, str(path)).alarms == ()


def test_an_alarm_that_the_plan_names_ends_the_run_and_keeps_what_was_written(
    warm: WarmLab, tmp_path: Path
) -> None:
    faulty = Faulty(
        grpo="max_completion_length: 4\n  save_steps: 2",
        steps=20,
        more="training: {stop_on: [truncation]}",
    )
    run, said = train(warm, tmp_path, faulty, code=1)
    assert "arms/mine/seed-1, step 6: stopped by the alarm truncation" in said
    assert "Try: raise grpo.max_completion_length" in said
    assert "Traceback" not in said
    assert len(rollouts_of(run)) == 6 * 16
    assert not run.record.exists()
    _, again = train(warm, tmp_path, faulty, code=1)  # it does not go on from there unasked
    assert "step 6: stopped by the alarm truncation" in again
    assert len(rollouts_of(run)) == 6 * 16
