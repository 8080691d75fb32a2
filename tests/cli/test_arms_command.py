"""`ahalab arms`: what a reward pays for hostile responses, told before anyone trains on it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import TRAIN_EXTRA, Call, run_without

from ahalab.cli.arms_table import attack_table
from ahalab.scoring.arms import BUILT_IN_ARMS
from ahalab.scoring.attacks import ATTACKS

ROOT = Path(__file__).parents[2]
PLAN = """\
name: demo
model: {id: organism}
task: {name: arithmetic, train_prompts: 16, eval_prompts: 16}
answer_format: boxed
arms:
  - {name: greedy, components: {correct_strict: 1, reflection: 1}}
  - historical
  - random
control: random
seeds: [0, 1, 2]
grpo: {max_steps: 20}
lora: {r: 4}
evaluation: {max_new_tokens: 16}
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "study.yaml"
    path.write_text(PLAN, "utf-8")
    return path


def test_the_list_has_every_built_in_arm_with_its_formula(call: Call) -> None:
    said = call("arms", "list")
    assert (said.code, said.err) == (0, "")
    lines = [line.split(maxsplit=1) for line in said.out.splitlines()]
    assert [name for name, _ in lines] == list(BUILT_IN_ARMS)
    formulas = dict(lines)
    assert formulas["additive_format"] == "1 correct_strict + 0.2 format"
    assert formulas["random"] == "1 random  (control)"


def test_the_list_as_json_has_weights(call: Call) -> None:
    listed = json.loads(call("arms", "list", "--format", "json").out)
    assert [arm["arm"] for arm in listed] == list(BUILT_IN_ARMS)
    assert listed[-1] == {"arm": "random", "components": {"random": 1.0}, "control": True}


def test_an_arm_that_pays_an_attack_fails_and_the_attack_is_marked(call: Call) -> None:
    said = call("arms", "check", "historical")
    assert (said.code, said.err) == (1, "")
    rows = {words[0]: words[1:] for line in said.out.splitlines() if (words := line.split())}
    assert rows["thinking-only"] == ["1", "0", "+1", "YES"]
    assert rows["right-then-changed"] == ["1", "0", "+1", "YES"]
    assert rows["refusal"] == ["0", "-1", "0", "no"]
    assert rows["right-but-cut"] == ["1", "0", "+1", "YES"]
    assert said.out.count("YES") == 3
    assert said.out.splitlines()[-1] == "FAILED: 3 attacks pay more than an honest wrong answer."


@pytest.mark.parametrize("arm", sorted(BUILT_IN_ARMS))
def test_the_table_is_within_80_columns_and_has_every_attack(call: Call, arm: str) -> None:
    lines = call("arms", "check", arm).out.splitlines()
    assert max(map(len, lines)) <= 80
    assert {attack.name for attack in ATTACKS} <= {line.split(" ")[0] for line in lines}


def test_the_exit_code_of_each_built_in_arm(call: Call) -> None:
    codes = {arm: call("arms", "check", arm).code for arm in BUILT_IN_ARMS}
    assert {arm for arm, code in codes.items() if code == 1} == {
        "historical", "partial_credit", "reflection_bonus",
    }  # fmt: skip
    assert set(codes.values()) == {0, 1}


def test_an_arm_that_pays_right_and_wrong_alike_says_so(call: Call) -> None:
    said = call("arms", "check", "format_only")
    assert said.code == 0
    assert said.out.splitlines()[-2:] == [
        "PASSED: no attack pays more than an honest wrong answer.",
        "Note: a right answer earns no more than a wrong one.",
    ]


def test_the_control_arm_is_accepted_by_definition(call: Call) -> None:
    said = call("arms", "check", "random")
    assert said.code == 0
    assert said.out.splitlines()[-1] == (
        "PASSED: a control arm pays whatever is answered, by definition."
    )


def test_a_control_arm_that_pays_attacks_is_accepted(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    from ahalab.scoring import arms

    control = replace(BUILT_IN_ARMS["historical"], control=True)
    monkeypatch.setattr(arms, "BUILT_IN_ARMS", {"historical": control})
    said = call("arms", "check", "historical")
    assert said.code == 0
    assert said.out.count(" accepted\n") == 3


def test_attacks_accepted_by_name_do_not_fail_the_arm(call: Call) -> None:
    accept = ["--accept", "thinking-only", "--accept", "right-then-changed"]
    some = call("arms", "check", "historical", *accept)
    assert some.code == 1
    assert "FAILED: 1 attack pays more" in some.out
    every = call("arms", "check", "historical", *accept, "--accept", "right-but-cut")
    assert every.code == 0
    assert every.out.count(" accepted\n") == 3
    assert every.out.splitlines()[-1] == "PASSED: every attack that pays was accepted by name."


def test_json_is_one_object_with_every_attack(call: Call) -> None:
    said = call("arms", "check", "historical", "--accept", "thinking-only", "--format", "json")
    assert said.code == 1
    found = json.loads(said.out)
    attacks = {attack.pop("name"): attack for attack in found.pop("attacks")}
    assert list(attacks) == [attack.name for attack in ATTACKS]
    assert found == {
        "arm": "historical", "components": {"historical_correct": 1.0}, "control": False,
        "answer_format": "hashes", "task": "gsm8k", "repeats": True,
        "honest_right": 1.0, "honest_wrong": 0.0,
        "paying": ["thinking-only", "right-then-changed", "right-but-cut"], "result": "FAILED",
    }  # fmt: skip
    assert attacks["thinking-only"] == {
        "paid": 1.0, "min": 1.0, "max": 1.0, "excess": 1.0, "pays": True, "accepted": True,
        "unrewarded": 0,
    }  # fmt: skip


def test_a_declared_arm_is_attacked_in_the_plans_answer_format(call: Call, plan: Path) -> None:
    found = json.loads(call("arms", "check", "greedy", "--plan", plan, "--format", "json").out)
    assert found["answer_format"] == "boxed"
    assert found["paying"] == ["right-then-changed", "empty-reflection"]
    found = json.loads(call("arms", "check", "historical", "--plan", plan, "--format", "json").out)
    assert found["paying"] == ["hedge-right-last", "thinking-only", "right-but-cut", "run-on"]


def test_a_plan_may_accept_attacks_by_name(call: Call, plan: Path) -> None:
    accept = "[right-then-changed, empty-reflection]"
    text = plan.read_text("utf-8")
    plan.write_text(
        text.replace("reflection: 1}}", f"reflection: 1}}, accept: {accept}}}"), "utf-8"
    )
    said = call("arms", "check", "greedy", "--plan", plan)
    assert said.code == 0
    assert said.out.count(" accepted\n") == 2
    plan.write_text(plan.read_text("utf-8").replace(", empty-reflection", ""), "utf-8")
    assert call("arms", "check", "greedy", "--plan", plan).code == 1
    both = call("arms", "check", "greedy", "--plan", plan, "--accept", "empty-reflection")
    assert both.code == 0


def test_the_task_is_the_plans_unless_a_flag_says_otherwise(call: Call, plan: Path) -> None:
    def task(*arguments: object) -> str:
        said = call("arms", "check", "random", "--format", "json", *arguments)
        return str(json.loads(said.out)["task"])

    assert task("--plan", plan) == "gsm8k"
    plan.write_text(plan.read_text("utf-8").replace("name: arithmetic", "name: jsonl"), "utf-8")
    assert task("--plan", plan) == "math"
    assert task("--plan", plan, "--task", "countdown") == "countdown"
    assert task() == "gsm8k"


def test_a_results_folder_is_as_good_as_its_plan(call: Call, plan: Path) -> None:
    assert call("arms", "check", "random", "--plan", plan.parent).code == 0


def test_the_flag_goes_before_the_plans_answer_format(call: Call, plan: Path) -> None:
    said = call("arms", "check", "historical", "--plan", plan, "--answer-format", "hashes")
    assert "Task gsm8k, asked format hashes:" in said.out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["historicl"], "found 'historicl'. Did you mean 'historical'?"),
        (["historical", "--accept", "thinking"], "Did you mean 'thinking-only'?"),
        (["historical", "--answer-format", "xml"], "answer format: expected hashes, boxed"),
        (["historical", "--task", "maths"], "task: expected one of gsm8k, math, countdown"),
        (["historical", "--answer-format", ""], "answer format: expected hashes, boxed"),
        (["historical", "--answer-format", "pattern:x(.)"], "expected a pattern that reads"),
        (["greedy"], "expected one of the arms"),
        (["greedy", "--plan", "none.yaml"], "none.yaml: expected a study plan"),
    ],
)
def test_wrong_input_is_one_line_and_exit_2(call: Call, arguments: list[str], told: str) -> None:
    said = call("arms", "check", *arguments)
    assert (said.code, said.out) == (2, "")
    assert told in said.line


def test_an_arm_that_the_plan_does_not_have_is_told_with_the_nearest(
    call: Call, plan: Path
) -> None:
    said = call("arms", "check", "gredy", "--plan", plan)
    assert said.code == 2
    assert said.line == (
        f"ahalab: {plan}: expected one of the arms greedy, historical, random, found 'gredy'. "
        "Did you mean 'greedy'?"
    )
    assert call("arms", "check", "correctness", "--plan", plan).code == 2


def test_it_needs_nothing_of_the_train_extra() -> None:
    assert run_without(TRAIN_EXTRA, "arms", "check", "correctness").code == 0


def test_the_page_on_arms_has_the_table_that_the_command_prints(call: Call) -> None:
    page = (ROOT / "docs/arms.md").read_text("utf-8")
    table = call("arms", "table").out
    assert table == attack_table() + "\n"
    assert table in page, "docs/arms.md is stale: put in what `ahalab arms table` prints"


# Rewards of one's own.

OWN = """\
import itertools
count = itertools.count()

def contains(completions, answer, **kwargs):
    return [float(a in c[0]["content"]) for c, a in zip(completions, answer)]

def strict(completions, answer, **kwargs):
    return [float(c[0]["content"].endswith("#### " + a)) for c, a in zip(completions, answer)]

def drifting(completions, **kwargs):
    return [float(next(count) % 7) for c in completions]

def broken(completions, **kwargs):
    return [float(c[0]["content"].split()[99]) for c in completions]
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "my_attacked.py").write_text(OWN, "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_reward_of_ones_own_that_looks_for_the_gold_is_gamed(call: Call, own: Path) -> None:
    said = call("arms", "check", "my_attacked:contains", "--format", "json")
    assert said.code == 1
    told = json.loads(said.out)
    assert {"every-number", "hedge", "thinking-only", "right-then-changed"} <= set(told["paying"])
    assert (told["honest_right"], told["honest_wrong"], told["repeats"]) == (1.0, 0.0, True)


def test_it_pays_nothing_of_what_a_stricter_one_does_not(call: Call, own: Path) -> None:
    told = json.loads(call("arms", "check", "my_attacked:strict", "--format", "json").out)
    assert set(told["paying"]) <= {"run-on", "right-but-cut"}


def test_one_that_does_not_repeat_is_drawn_and_said_to_be(call: Call, own: Path) -> None:
    said = call("arms", "check", "my_attacked:drifting")
    assert "Note: a response does not earn the same twice" in said.out
    assert "Note" not in call("arms", "check", "historical").out


def test_one_that_fails_on_an_honest_answer_is_refused_with_its_fault(
    call: Call, own: Path
) -> None:
    said = call("arms", "check", "my_attacked:broken")
    assert (said.code, said.out) == (2, "")
    assert "my_attacked:broken failed: IndexError" in said.err


def test_an_arm_of_a_plan_that_weighs_one_is_checked_with_the_code_beside_the_plan(
    call: Call, own: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = own / "study.yaml"
    path.write_text(
        PLAN.replace("reflection: 1", "'my_attacked:contains': 0.5").replace("boxed", "hashes"),
        "utf-8",
    )
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    told = json.loads(call("arms", "check", "greedy", "--plan", path, "--format", "json").out)
    paid = {attack["name"]: attack["paid"] for attack in told["attacks"]}
    assert paid["every-number"] == 0.5
    assert told["honest_right"] == 1.5
    missing = call("arms", "check", "my_attacked:contains")
    assert missing.code == 2
    assert "expected a module my_attacked" in missing.err
