"""A study with a reward of the user's own: trained, recorded, sealed with its code, rechecked."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from ahalab.analyze.candidates import drafts_of_plan
from ahalab.analyze.counterfactual import Asked, counterfactual
from ahalab.analyze.saved_rollouts import find_runs
from ahalab.plan.load import load_plan
from ahalab.records.base import decode_file
from ahalab.records.counterfactual import CounterfactualRow
from ahalab.records.run import RunRecord
from ahalab.store.layout import StudyPaths
from ahalab.verify.checks import Check
from ahalab.verify.study import verify_study
from lab import PLAN, WarmLab, rollouts_of
from tampering import Row, edit_rows, mend_journal, reseal

pytestmark = pytest.mark.train

NAME = "brevity:brief"
CODE = '''\
"""TRL's signature, as its documentation shows it."""


def brief(completions, **kwargs):
    return [1.0 / (1 + len(c[0]["content"].split())) for c in completions]


def fussy(completions, answer, trainer_state, **kwargs):
    rewards = []
    for completion, gold in zip(completions, answer):
        assert gold.lstrip("-").isdigit()
        if trainer_state.global_step >= 2 and "#" in completion[0]["content"]:
            raise KeyError("no such thing")
        rewards.append(float(len(completion[0]["content"])))
    return rewards
'''
OWN = PLAN.replace("name: tiny", "name: own").replace(
    "arms: [historical, random]",
    "arms:\n"
    "  - {name: mine, components: {correct_strict: 1.0, 'brevity:brief': 0.5}}\n"
    "  - {name: fussy, on_error: none, components: {'brevity:fussy': 0.01}}\n"
    "  - random\n",
)
RUN = "arms/mine/seed-1"


def write(folder: Path, plan: str = OWN, code: str = CODE) -> Path:
    (folder / "brevity.py").write_text(code, encoding="utf-8")
    path = folder / "study.yaml"
    path.write_text(plan, encoding="utf-8")
    return path


@dataclass(frozen=True, slots=True)
class Own:
    """The study, run once."""

    plan: Path
    paths: StudyPaths


@pytest.fixture(scope="session")
def own(tmp_path_factory: pytest.TempPathFactory, warm: WarmLab) -> Own:
    folder = tmp_path_factory.mktemp("own")
    plan = write(folder)
    warm.run("run", plan, "--out", folder / "results", "--jobs", 1)
    return Own(plan, StudyPaths(folder / "results" / "own"))


@pytest.fixture
def copy(own: Own, tmp_path: Path) -> Path:
    """A copy of the study that a test may change."""
    return Path(shutil.copytree(own.paths.root, tmp_path / "own"))


def check(root: Path, name: str, *, trust: bool = False) -> Check:
    checks = verify_study(root, trust_rewards=trust).checks
    return next(c for c in checks if c.name == name)


def test_the_reward_is_a_component_of_its_own_on_every_row(own: Own) -> None:
    rows = rollouts_of(own.paths.run("mine", 1))
    assert len(rows) == 96
    for row in rows:
        part = row.components[NAME]
        assert part.status == "ok"
        assert part.value == 1.0 / (1 + len(row.completion.split()))
        strict = row.components["correct_strict"].value
        assert row.reward == pytest.approx(strict + 0.5 * part.value, abs=1e-12)


def test_a_failure_that_the_plan_allows_leaves_the_row_out_of_its_group(own: Own) -> None:
    rows = rollouts_of(own.paths.run("fussy", 1))
    failed = [r for r in rows if r.reward is None]
    assert {r.step >= 2 and "#" in r.completion for r in failed} == {True}
    assert sum(r.step >= 2 and "#" in r.completion for r in rows) == len(failed) > 0
    assert {r.components["brevity:fussy"].status for r in failed} == {
        "failed: KeyError: 'no such thing'"
    }
    assert all(abs(r.advantage) < 1e-2 for r in failed)  # float dust over a small deviation
    record = own.paths.run("fussy", 1).record
    alarms = decode_file(record.read_bytes(), RunRecord, "run.json").alarms
    assert "unrewarded" in {alarm.name for alarm in alarms}


def test_the_plan_pins_the_source_and_the_study_holds_it(own: Own) -> None:
    plan = load_plan(own.paths.plan)
    assert set(plan.rewards) == {NAME, "brevity:fussy"}
    record = own.paths.run("mine", 1).record
    assert decode_file(record.read_bytes(), RunRecord, "run.json").rewards == {
        NAME: plan.rewards[NAME]
    }
    assert (own.paths.rewards / "brevity.py").read_text("utf-8") == CODE
    assert [p.name for p in own.paths.rewards.iterdir()] == ["brevity.py"]


def test_verify_runs_the_code_only_when_told_to(copy: Path, tmp_path: Path) -> None:
    assert verify_study(copy).result == "PASSED"
    assert check(copy, "reward.own").status == "not checked"
    assert "--trust-rewards" in check(copy, "reward.own").note
    trusted = verify_study(copy, trust_rewards=True)
    assert trusted.result == "PASSED"
    own = next(c for c in trusted.checks if c.name == "reward.own")
    assert (own.status, own.count) == ("passed", 1 + 96 + 96)
    assert not list(copy.rglob("__pycache__"))


def test_changed_code_is_found_without_running_it(copy: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    code = copy / "rewards" / "brevity.py"
    code.write_text(f"open({str(ran)!r}, 'w')\n" + CODE, encoding="utf-8")
    reseal(copy)
    failures = check(copy, "reward.source").failures
    assert [f.file for f in failures] == ["rewards/brevity.py"] * 2
    assert check(copy, "reward.own", trust=True).status == "not checked"
    assert not ran.exists()


def test_a_changed_value_of_an_own_reward_is_found_by_running_it(copy: Path) -> None:
    def change(rows: list[Row]) -> None:
        rows[4]["components"][NAME]["value"] += 0.25
        rows[4]["reward"] += 0.125

    path = copy / RUN / "rollouts.jsonl"
    edit_rows(path, change)
    mend_journal(path)
    reseal(copy)
    assert check(copy, "reward.own").status == "not checked"
    failures = check(copy, "reward.own", trust=True).failures
    assert [(f.file, f.line) for f in failures] == [(f"{RUN}/rollouts.jsonl", 5)]


def test_the_counterfactual_takes_own_rewards_as_recorded_and_runs_them_only_where_trusted(
    own: Own,
) -> None:
    found = find_runs([own.paths.root / RUN])
    (recorded,) = counterfactual(found, Asked()).sources
    assert recorded.arms[0].arm == "mine"
    assert [left.arm for left in recorded.left_out] == ["fussy"]
    assert (recorded.rewards_changed, recorded.advantages_off) == (None, 0)
    (trusted,) = counterfactual(found, Asked(trust_rewards=True)).sources
    assert (trusted.rewards_changed, trusted.left_out) == (0, ())
    assert recorded.arms[0].mass == trusted.arms[0].mass


def test_other_arms_may_weigh_an_own_reward_that_the_run_recorded(own: Own, tmp_path: Path) -> None:
    draft = OWN.replace("name: own", "name: draft").replace("brief': 0.5", "brief': -3.0")
    drafts = drafts_of_plan(write(tmp_path, draft))
    told: list[CounterfactualRow] = []
    asked = Asked(drafts, on_row=told.append)
    counterfactual(find_runs([own.paths.root / RUN]), asked)
    for row, found in zip(rollouts_of(own.paths.run("mine", 1)), told, strict=True):
        paid = row.components["correct_strict"].value - 3 * row.components[NAME].value
        assert found.rewards["mine (draft)"] == pytest.approx(paid, abs=1e-12)


def test_other_code_beside_the_plan_is_another_plan(
    own: Own, warm: WarmLab, tmp_path: Path
) -> None:
    shutil.copytree(own.paths.root.parent, tmp_path / "results")
    plan = write(tmp_path, code=CODE.replace("1.0 /", "2.0 /"))
    said = warm.run("run", plan, "--out", tmp_path / "results", code=2)
    assert "rewards.brevity:brief" in said
    assert "Traceback" not in said


def test_a_failing_reward_stops_the_run_with_its_row_and_loses_nothing(
    warm: WarmLab, tmp_path: Path
) -> None:
    plan = write(tmp_path, OWN.replace("on_error: none, ", ""))
    train = ("train", plan, "--out", tmp_path / "results", "--arm", "fussy", "--seed", 1)
    for _ in range(2):  # and the same again: it resumes, and meets the same row
        said = warm.run(*train, code=2)
        assert "arm fussy, step 2, prompt 0" in said
        assert "brevity:fussy failed: KeyError: 'no such thing'" in said
        assert "on_error: none" in said
        assert "Traceback" not in said
    rows = rollouts_of(StudyPaths(tmp_path / "results" / "own").run("fussy", 1))
    assert {r.step for r in rows} == {0, 1}
    assert len(rows) == 32


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("brevity:brief", "nowhere:brief"), "nowhere:brief: expected a module nowhere in"),
        (("brevity:brief", "brevity:absent"), "brevity:absent: expected a function absent"),
        (("brevity:brief", "brevity.brief"), "package.module:function"),
        (("on_error: none", "on_error: ignore"), "on_error"),
    ],
)
def test_a_plan_whose_reward_can_not_be_used_is_refused_before_anything_is_written(
    warm: WarmLab, tmp_path: Path, change: tuple[str, str], said: str
) -> None:
    plan = write(tmp_path, OWN.replace(*change))
    output = warm.run("run", plan, "--out", tmp_path / "results", code=2)
    assert said in output
    assert len(output.strip().splitlines()) == 1
    assert not (tmp_path / "results").exists()
