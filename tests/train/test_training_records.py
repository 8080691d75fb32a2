"""What a real run leaves: every completion once, with what the trainer really used."""

from __future__ import annotations

import json
from collections import Counter, defaultdict

import pytest

from ahalab.plan.schedule import expected_rollouts
from ahalab.records.base import decode_file
from ahalab.records.diagnostics import Diagnostics
from ahalab.records.prompt import Prompt
from ahalab.records.rollout import Rollout
from ahalab.records.run import RunRecord
from ahalab.records.step import Step
from ahalab.statistics.diagnostics import diagnose
from ahalab.statistics.training import advantages_from_rewards, step_figures
from ahalab.store.adapters import adapter_effect_norm
from ahalab.store.fingerprint import adapter_fingerprint
from ahalab.store.layout import RunPaths, StudyPaths
from ahalab.store.models import organism_folder
from ahalab.store.reading import read_rows
from ahalab.tasks.prepare import read_prompts
from lab import WINDOWED, Trained, WarmLab, kinds, rollouts_of

pytestmark = pytest.mark.train
ARMS = ("historical", "random")


def steps_of(run: RunPaths) -> list[Step]:
    return [row for _, row in read_rows(run.steps, Step)]


def record_of(run: RunPaths) -> RunRecord:
    return decode_file(run.record.read_bytes(), RunRecord, str(run.record))


def groups(rows: list[Rollout]) -> dict[tuple[int, int], list[Rollout]]:
    found = defaultdict(list)
    for row in rows:
        found[row.step, row.group].append(row)
    return found


def tokens(rows: list[Rollout], prompts: list[Prompt]) -> int:
    length = {p.prompt_id: len(p.prompt_ids) for p in prompts}
    return sum(length[r.prompt_id] + len(r.completion_ids) for r in rows)


@pytest.fixture(scope="module")
def windowed(warm: WarmLab, tmp_path_factory: pytest.TempPathFactory) -> StudyPaths:
    """A run of two slices a batch and two iterations: 4 steps served by 2 generation batches."""
    folder = tmp_path_factory.mktemp("windowed")
    plan = folder / "study.yaml"
    plan.write_text(WINDOWED, encoding="utf-8")
    warm.run("train", plan, "--out", folder / "results", "--arm", "historical", "--seed", 1)
    return StudyPaths(folder / "results" / "windowed")


@pytest.mark.parametrize("arm", ARMS)
def test_every_completion_has_one_row_under_its_key(trained: Trained, arm: str) -> None:
    rows = rollouts_of(trained.run(arm))
    assert len(rows) == 6 * 16 == expected_rollouts(trained.plan)
    assert len({(r.step, r.prompt_id, r.sample) for r in rows}) == len(rows)
    expected = [(s, g, i) for s in range(6) for g in range(4) for i in range(4)]
    assert [(r.step, r.group, r.sample) for r in rows] == expected
    for group in groups(rows).values():
        assert len({r.prompt_id for r in group}) == 1


@pytest.mark.parametrize("arm", ARMS)
def test_every_prompt_is_met_once_an_epoch(trained: Trained, arm: str) -> None:
    met = [r.prompt_id for r in rollouts_of(trained.run(arm)) if r.sample == 0]
    prompts = {p.prompt_id for p in read_prompts(trained.paths, "train")}
    assert set(met[:12]) == set(met[12:]) == prompts
    assert met[:12] != met[12:]  # shuffled anew


@pytest.mark.parametrize("arm", ARMS)
def test_recorded_advantages_are_those_of_the_recorded_rewards(trained: Trained, arm: str) -> None:
    for group in groups(rollouts_of(trained.run(arm))).values():
        expected = advantages_from_rewards([r.reward for r in group], "group")
        assert [r.advantage for r in group] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("arm", ARMS)
def test_the_trainers_own_count_of_tokens_is_that_of_the_rows(trained: Trained, arm: str) -> None:
    run = trained.run(arm)
    rows, prompts = rollouts_of(run), read_prompts(trained.paths, "train")
    counted = [s.tokens for s in steps_of(run)]
    assert counted == [tokens([r for r in rows if r.step <= at], prompts) for at in range(6)]


def test_token_ids_and_text_of_a_row_agree(trained: Trained) -> None:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(organism_folder() / "tokenizer.json"))
    for row in rollouts_of(trained.run("historical")):
        assert tokenizer.decode(list(row.completion_ids), skip_special_tokens=True) == (
            row.completion
        )
        assert (row.finish == "eos") == (row.completion_ids[-1] == 1)
        assert row.finish == "eos" or len(row.completion_ids) == 40


@pytest.mark.parametrize("arm", ARMS)
def test_step_rows_are_recomputed_from_their_rollouts(trained: Trained, arm: str) -> None:
    run = trained.run(arm)
    rows = rollouts_of(run)
    for at, step in enumerate(steps_of(run)):
        assert step.step == at + 1
        expected = step_figures([r for r in rows if r.step == at])
        assert {name: getattr(step, name) for name in expected} == expected
        assert step.loss is not None
        assert step.grad_norm is not None
        assert step.kl is None  # beta is 0


def test_the_learning_rate_falls_as_the_plan_says(trained: Trained) -> None:
    rates = [s.learning_rate for s in steps_of(trained.run("historical"))]
    assert rates == pytest.approx([1e-4 * (6 - at) / 6 for at in range(6)], rel=1e-6)


@pytest.mark.parametrize("arm", ARMS)
def test_diagnostics_are_those_of_the_rows(trained: Trained, arm: str) -> None:
    run = trained.run(arm)
    found = decode_file(run.diagnostics.read_bytes(), Diagnostics, "diagnostics.json")
    norm = adapter_effect_norm(run.adapter)
    assert norm > 0
    assert found == diagnose(arm, 1, steps_of(run), rollouts_of(run), norm)


def test_an_uninterrupted_run_lists_one_attempt(trained: Trained) -> None:
    for arm in ARMS:
        attempts = record_of(trained.run(arm)).attempts
        assert [(a.number, a.steps_found) for a in attempts] == [(1, 0)]
        for journal in ("rollouts", "steps", "timings"):
            lines = kinds(trained.run(arm).folder / f"{journal}.journal.jsonl")
            assert lines == ["head", "attempt", *["batch"] * 6, "seal"]


def test_the_record_tells_what_was_asked_and_what_was_used(trained: Trained) -> None:
    record = record_of(trained.run("random"))
    assert (record.arm, record.seed, record.control) == ("random", 1, True)
    assert record.like == "arms/historical/seed-1"
    assert record.requested_grpo == trained.plan.grpo
    for name, value in trained.plan.grpo.items():
        assert record.effective_grpo[name] == value, name
    assert record.effective_grpo["seed"] == record.effective_grpo["data_seed"] == 1
    assert record.effective_grpo["logging_steps"] == 1
    assert record.effective_lora["r"] == 4
    assert (record.steps_done, record.rollouts_written, record.rollouts_expected) == (6, 96, 96)
    assert record.versions["trl"] != "absent"


def test_no_record_names_a_local_path(trained: Trained) -> None:
    place = trained.paths.root.parent.parent
    for path in trained.paths.root.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            for trace in (str(place), str(organism_folder()), "/root/", "/home/"):
                assert trace.encode() not in content, path


def test_the_adapter_has_its_fingerprint_in_the_record_and_a_sorted_configuration(
    trained: Trained,
) -> None:
    for arm in ARMS:
        run = trained.run(arm)
        assert record_of(run).adapter_digest == adapter_fingerprint(run.adapter)
        config = json.loads((run.adapter / "adapter_config.json").read_bytes())
        assert list(config) == sorted(config)
        assert config["target_modules"] == sorted(config["target_modules"])
        assert config["base_model_name_or_path"] == "organism"
        assert {p.name for p in run.adapter.iterdir()} == {
            "adapter_config.json",
            "adapter_model.safetensors",
        }


def test_no_pickle_and_no_checkpoint_stays_behind(trained: Trained) -> None:
    for folder in (trained.paths.root, trained.paths.work):
        suffixes = Counter(p.suffix for p in folder.rglob("*") if p.is_file())
        assert not suffixes.keys() & {".bin", ".pt", ".pth", ".pkl"}
    assert not list(trained.paths.work.rglob("checkpoint-*"))


def test_slices_and_iterations_leave_one_row_per_completion(windowed: StudyPaths) -> None:
    run = windowed.run("historical", 1)
    rows = rollouts_of(run)
    expected = [(s, g, i) for s in (0, 2) for g in range(4) for i in range(4)]
    assert [(r.step, r.group, r.sample) for r in rows] == expected
    assert record_of(run).rollouts_expected == 32
    for group in groups(rows).values():
        advantages = advantages_from_rewards([r.reward for r in group], "group")
        assert [r.advantage for r in group] == pytest.approx(advantages, abs=1e-4)


def test_a_step_that_reused_a_batch_claims_no_rollouts_of_its_own(windowed: StudyPaths) -> None:
    run = windowed.run("historical", 1)
    rows, steps = rollouts_of(run), steps_of(run)
    assert [s.step for s in steps] == [1, 2, 3, 4]
    assert [s.reward_mean is None for s in steps] == [False, True, False, True]
    assert steps[2].reward_mean == pytest.approx(sum(r.reward for r in rows[16:]) / 16)
    prompts = read_prompts(windowed, "train")
    first, both = tokens(rows[:16], prompts), tokens(rows, prompts)
    assert [s.tokens for s in steps] == [first, None, both, None]  # TRL logs it when it generates
