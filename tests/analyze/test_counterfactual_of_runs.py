"""Saved rollouts under every arm, against figures worked out from the rows by other means."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from rollouts_only import PLAN, write_trained

from ahalab.analyze.candidates import draft_of, drafts_of_plan
from ahalab.analyze.counterfactual import Asked, counterfactual
from ahalab.analyze.saved_rollouts import find_runs, generation_batches
from ahalab.errors import IncompleteError, InputError, RecordError
from ahalab.records.base import encode
from ahalab.records.counterfactual import (
    ArmOnRollouts,
    Counterfactual,
    CounterfactualRow,
    MassOnAnswers,
    RecordedRollouts,
)
from ahalab.records.rollout import Rollout
from ahalab.store.reading import read_rows
from ahalab.store.rows import RowFile, write_rows

QUICKSTART = Path(__file__).parents[2] / "results/quickstart"
BUILT_IN = {
    "correctness", "historical", "additive_format", "gated_format", "format_only",
    "length_budget", "partial_credit", "reflection_bonus", "random",
}  # fmt: skip


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of three arms and two seeds that nobody may write to."""
    return write_trained(tmp_path_factory.mktemp("trained") / "synthetic")


def compute(*places: Path, asked: Asked | None = None) -> Counterfactual:
    return counterfactual(find_runs(places), asked or Asked())


def arm_of(source: RecordedRollouts, name: str) -> ArmOnRollouts:
    return next(arm for arm in source.arms if arm.arm == name)


def mass_of(arm: ArmOnRollouts, metric: str, weighting: str) -> MassOnAnswers:
    return next(m for m in arm.mass if (m.metric, m.weighting) == (metric, weighting))


def rows_of(run: Path) -> list[Rollout]:
    return [row for _, row in read_rows(run / "rollouts.jsonl", Rollout)]


def advantages_by_numpy(rewards: list[float]) -> np.ndarray:
    """Return TRL's advantages of groups of four, 0 where all are equal."""
    groups = np.array(rewards).reshape(-1, 4)
    centred = groups - groups.mean(axis=1, keepdims=True)
    found = centred / (groups.std(axis=1, ddof=1, keepdims=True) + 1e-4)
    found[np.ptp(groups, axis=1) < 1e-9] = 0.0
    return found.ravel()


def test_signs_and_mass_are_those_that_numpy_finds_in_the_rows(trained: Path) -> None:
    run = trained / "arms/historical/seed-1"
    rows = rows_of(run)
    recorded = advantages_by_numpy([float(row.historical == "correct") for row in rows])
    other = advantages_by_numpy([(row.strict == "correct") + 0.2 * row.formatted for row in rows])
    found = arm_of(compute(run).sources[0], "additive_format")

    assert found.flipped_fraction.mean == pytest.approx(np.mean(recorded * other < 0))
    assert found.silenced_fraction.mean == pytest.approx(np.mean((recorded != 0) & (other == 0)))
    assert found.awakened_fraction.mean == pytest.approx(np.mean((recorded == 0) & (other != 0)))
    assert found.mean_absolute_advantage.mean == pytest.approx(np.abs(other).mean())
    assert found.correlation == pytest.approx(np.corrcoef(recorded, other)[0, 1])
    assert found.flipped_fraction.mean
    assert found.correlation

    tokens = np.array([len(row.completion_ids) for row in rows], dtype=float).reshape(-1, 8)
    weights = (tokens / tokens.sum(axis=1, keepdims=True)).ravel()  # dapo, batches of eight
    positive = np.maximum(other, 0)
    for metric in ("strict", "lenient"):
        wrong = np.array([getattr(row, metric) != "correct" for row in rows])
        by_loss = mass_of(found, metric, "loss").positive_on_wrong.mean
        assert by_loss == pytest.approx((positive * weights)[wrong].sum() / (positive @ weights))
        alike = mass_of(found, metric, "response").positive_on_wrong.mean
        assert alike == pytest.approx(positive[wrong].sum() / positive.sum())


def test_the_recorded_arm_comes_first_and_gives_what_the_trainer_applied(trained: Path) -> None:
    for source in compute(trained).sources:
        own = source.arms[0]
        assert (own.arm, own.recorded, own.correlation) == (source.arm, True, 1.0)
        assert own.flipped_fraction.by_seed == (0.0, 0.0)
        assert (source.advantages_off, source.rewards_changed, source.outcomes_changed) == (0, 0, 0)
        assert {arm.arm for arm in source.arms} == BUILT_IN


def test_on_the_committed_runs_every_recorded_advantage_comes_out_again() -> None:
    for arm in ("historical", "random"):  # one whose coins depend on the seed
        (source,) = compute(QUICKSTART / f"arms/{arm}/seed-2").sources
        assert source.rollouts == 2304
        assert (source.advantages_off, source.rewards_changed, source.outcomes_changed) == (0, 0, 0)
        assert arm_of(source, "correctness").paid_right.mean
        assert mass_of(arm_of(source, "correctness"), "strict", "loss").positive_on_wrong.mean == 0


def test_seeds_are_taken_together_with_their_spread(trained: Path) -> None:
    (both,) = compute(trained / "arms/historical").sources
    apart = [compute(trained / f"arms/historical/seed-{s}").sources[0] for s in (1, 2)]
    figures = [arm_of(source, "format_only").mean_absolute_advantage.mean for source in apart]
    found = arm_of(both, "format_only").mean_absolute_advantage
    assert both.seeds == (1, 2)
    assert both.rollouts == sum(source.rollouts for source in apart) == 64
    assert found.by_seed == tuple(figures)
    assert found.mean == pytest.approx(np.mean(figures))
    assert found.sd == pytest.approx(np.std(figures, ddof=1))
    assert found.sd
    assert arm_of(apart[0], "format_only").mean_absolute_advantage.sd is None


def test_a_study_is_every_arm_in_plan_order_and_a_run_named_twice_counts_once(
    trained: Path,
) -> None:
    found = compute(trained, trained / "arms/random/seed-1")
    assert [source.arm for source in found.sources] == ["historical", "additive_format", "random"]
    assert [source.seeds for source in found.sources] == [(1, 2)] * 3


def test_only_the_first_steps_are_read_when_asked(trained: Path) -> None:
    run = trained / "arms/historical/seed-1"
    told: list[int] = []
    (source,) = compute(run, asked=Asked(steps=1, on_rollouts=told.append)).sources
    assert source.rollouts == 8
    assert told == [8]
    assert find_runs([run]).runs[0].rollouts_before(1) == 8
    assert find_runs([run]).runs[0].rollouts_before(99) == 32


def test_each_row_tells_what_every_arm_pays_it(trained: Path) -> None:
    run = trained / "arms/additive_format/seed-1"
    told: list[CounterfactualRow] = []
    compute(run, asked=Asked(on_row=told.append))
    rows = rows_of(run)
    assert [(t.step, t.prompt_id, t.sample) for t in told] == [
        (row.step, row.prompt_id, row.sample) for row in rows
    ]
    for row, found in zip(rows, told, strict=True):
        assert next(iter(found.rewards)) == "additive_format"
        assert found.rewards["additive_format"] == row.reward
        assert found.rewards["correctness"] == float(row.strict == "correct")
        assert found.advantages["additive_format"] == pytest.approx(row.advantage, abs=1e-3)


def test_nothing_is_written_into_the_study(trained: Path) -> None:
    def files() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in trained.rglob("*") if path.is_file()}

    before = files()
    compute(trained)
    assert files() == before


def test_the_record_says_what_it_cannot_and_can_be_written_as_json(trained: Path) -> None:
    found = compute(trained)
    assert "no forecast of a run" in found.limit
    assert b"NaN" not in encode(found)


def test_rewards_that_come_out_otherwise_now_are_counted(trained: Path, tmp_path: Path) -> None:
    study = Path(shutil.copytree(trained, tmp_path / "synthetic"))
    edit_first(study / "arms/historical/seed-1", reward=9.0, strict="error")
    (source,) = compute(study / "arms/historical/seed-1").sources
    assert (source.rewards_changed, source.outcomes_changed) == (1, 1)
    assert source.advantages_off == 4  # its group's, whose advantages are not those of a 9


def edit_first(run: Path, **changes: object) -> None:
    """Change the first rollout of a run, journal and all."""
    import msgspec

    rows = rows_of(run)
    rows[0] = msgspec.structs.replace(rows[0], **changes)
    rewrite(run, rows)


def rewrite(run: Path, rows: list[Rollout]) -> None:
    for old in run.glob("rollouts.*"):
        old.unlink()
    broken = run / "broken"
    write_rows(RowFile(run / "rollouts.jsonl", "rollout/1", "sha256:0", "run", broken), rows)


def test_batches_are_read_one_at_a_time(trained: Path, tmp_path: Path) -> None:
    study = Path(shutil.copytree(trained, tmp_path / "synthetic"))
    run = study / "arms/historical/seed-1"
    rows = rows_of(run)
    rewrite(run, [*rows[:-1], rows[0]])  # the last row is not where it belongs
    batches = generation_batches(find_runs([run]).runs[0], None)
    assert [len(next(batches)) for _ in range(3)] == [8, 8, 8]
    with pytest.raises(RecordError, match=r"rollouts\.jsonl:32: expected step, group, prompt"):
        next(batches)


def test_a_run_with_fewer_rows_than_it_wrote_is_refused(trained: Path, tmp_path: Path) -> None:
    study = Path(shutil.copytree(trained, tmp_path / "synthetic"))
    run = study / "arms/historical/seed-1"
    rewrite(run, rows_of(run)[:-8])
    with pytest.raises(RecordError, match="expected 32 rollouts in batches of 8, found 24"):
        compute(run)


def test_a_run_that_was_trained_otherwise_than_the_plan_says_is_refused(
    trained: Path, tmp_path: Path
) -> None:
    study = Path(shutil.copytree(trained, tmp_path / "synthetic"))
    plan = study / "study.yaml"
    plan.write_text(plan.read_text().replace("scale_rewards: group", "scale_rewards: none"))
    with pytest.raises(RecordError, match="expected the grpo of the study's plan"):
        compute(study / "arms/historical/seed-1")


@pytest.mark.parametrize("inside", ["prompts", "arms/other/seed-1", "arms/historical/seed-9"])
def test_a_folder_that_is_no_run_of_the_plan_is_refused(
    trained: Path, tmp_path: Path, inside: str
) -> None:
    study = Path(shutil.copytree(trained, tmp_path / "synthetic"))
    (study / inside).mkdir(parents=True, exist_ok=True)
    with pytest.raises(InputError, match=f"expected a run of the plan, found {inside}"):
        compute(study / inside)


def test_a_folder_outside_any_study_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no study\.yaml there"):
        compute(tmp_path)
    with pytest.raises(InputError, match="expected a folder"):
        compute(tmp_path / "gone")


def test_runs_that_are_not_finished_are_named_or_refused(tmp_path: Path) -> None:
    study = write_trained(
        tmp_path / "half", unfinished=("arms/random/seed-1", "arms/random/seed-2")
    )
    assert compute(study).missing == (
        "synthetic/arms/random/seed-1",
        "synthetic/arms/random/seed-2",
    )
    (study / "arms/random/seed-1").mkdir(parents=True)
    with pytest.raises(IncompleteError, match=r"train .* --arm random --seed 1"):
        compute(study / "arms/random/seed-1")


def test_a_formula_is_an_arm_of_its_own(trained: Path) -> None:
    draft = draft_of("correct_strict + 0.2 format", BUILT_IN)
    assert draft is not None
    (source,) = compute(trained / "arms/historical/seed-1", asked=Asked([draft])).sources
    found = arm_of(source, "1 correct_strict + 0.2 format")
    assert found.flipped_fraction == arm_of(source, "additive_format").flipped_fraction
    assert any({"additive_format", found.arm} <= set(cluster) for cluster in source.clusters)


def test_the_name_of_an_arm_that_is_scored_anyhow_adds_none() -> None:
    assert draft_of("historical", BUILT_IN) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("correctnes", "found 'correctnes'. Did you mean 'correctness'"),
        ("correct_strict + 2 lenght", "found 'lenght'. Did you mean 'length'"),
        ("format + format", "each once"),
        ("0.2 format + ", "found '0.2 format + '"),
        ("1e9 format", "weight of at most"),
    ],
)
def test_a_formula_that_names_no_arm_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        draft_of(text, BUILT_IN)
    assert message in str(caught.value)


DRAFT = """
name: draft
model: {id: organism}
task: {name: arithmetic, train_prompts: 6, eval_prompts: 24}
arms: [{name: mine, components: {correct_strict: 1.0, 'wordy:count': 0.1}}, random]
control: random
seeds: [1]
grpo: {max_steps: 4}
lora: {r: 2}
evaluation: {max_new_tokens: 48}
"""
CODE = """
def count(completion_ids, **kwargs):
    return [float(len(ids)) for ids in completion_ids]
"""


def test_the_arms_of_another_plan_are_scored_and_their_code_only_where_it_is_trusted(
    trained: Path, tmp_path: Path
) -> None:
    (tmp_path / "draft.yaml").write_text(DRAFT)
    (tmp_path / "wordy.py").write_text(CODE)
    drafts = drafts_of_plan(tmp_path / "draft.yaml")
    run = trained / "arms/historical/seed-1"

    (without,) = compute(run, asked=Asked(drafts)).sources
    assert [(left.arm, left.reason) for left in without.left_out] == [
        ("mine", "wordy:count is code that was not run; --trust-rewards runs it")
    ]
    told: list[CounterfactualRow] = []
    asked = Asked(drafts, trust_rewards=True, on_row=told.append)
    (source,) = compute(run, asked=asked).sources
    assert source.left_out == ()
    for row, found in zip(rows_of(run), told, strict=True):
        tokens = len(row.completion_ids)
        assert found.rewards["mine"] == pytest.approx((row.strict == "correct") + 0.1 * tokens)


def test_an_arm_of_another_plan_under_a_taken_name_is_told_apart(
    trained: Path, tmp_path: Path
) -> None:
    one = DRAFT.replace("'wordy:count': 0.1", "format: 0.5").replace("mine", "short")
    drafts = []
    for name, weight in (("one", 0.5), ("two", 2), ("two", 2), ("two", 3)):
        path = tmp_path / "plan.yaml"
        path.write_text(one.replace("name: draft", f"name: {name}").replace("0.5", str(weight)))
        drafts += drafts_of_plan(path)
    run = trained / "arms/historical/seed-1"
    (source,) = compute(run, asked=Asked(drafts[:6])).sources
    assert {arm.arm for arm in source.arms} == BUILT_IN | {"short", "short (two)"}
    assert arm_of(source, "short (two)").components == {"correct_strict": 1.0, "format": 2.0}
    with pytest.raises(InputError, match="arm 'short': expected two definitions at most"):
        compute(run, asked=Asked(drafts))


@pytest.mark.parametrize("scale", ["batch", "none"])
def test_every_scale_of_rewards_has_its_figures(tmp_path: Path, scale: str) -> None:
    # The builder's advantages are group-scaled, so that here they are not those of the plan.
    text = PLAN.replace("save_steps: 2", f"save_steps: 2, scale_rewards: {scale}, loss_type: grpo")
    study = write_trained(tmp_path / "scaled", text, unfinished=("arms/random/seed-2",))
    (source,) = compute(study / "arms/random/seed-1").sources
    assert (source.scale_rewards, source.loss_type) == (scale, "grpo")
    assert source.advantages_off > 0
    for arm in source.arms:  # weighed by response: the two weightings are one
        assert mass_of(arm, "lenient", "loss").positive_on_wrong.mean == pytest.approx(
            mass_of(arm, "lenient", "response").positive_on_wrong.mean
        )
