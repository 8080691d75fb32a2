"""Real SIGKILLs during training, then the same command: the bytes of an uninterrupted run."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ahalab.plan.load import parse_plan
from ahalab.records.base import decode_file, digest
from ahalab.records.run import RunRecord
from ahalab.store.layout import RunPaths, StudyPaths
from ahalab.store.models import organism_folder
from ahalab.train.checkpoints import MARKER, last_sound
from lab import (
    PLAN,
    WINDOWED,
    Command,
    Trained,
    WarmLab,
    batches_in,
    kinds,
    repeated_bytes,
    rollouts_of,
    signal_when,
    start_ahalab,
)

pytestmark = pytest.mark.train
Fresh = Callable[..., Trained]


def begin(warm: WarmLab, study: Trained, *more: object) -> Command:
    out = study.paths.root.parent
    return warm.start(
        "train", study.plan_file, "--out", out, "--arm", "historical", "--seed", 1, *more
    )


def again(warm: WarmLab, study: Trained, code: int = 0) -> str:
    command = begin(warm, study)
    assert command.finish() == code, command.text()
    return command.text()


def run_of(study: Trained) -> RunPaths:
    return study.run("historical")


def checkpoints(study: Trained) -> Path:
    return study.paths.work / "checkpoints" / run_of(study).name


def rollout_batches(study: Trained) -> int:
    return batches_in(run_of(study).folder / "rollouts.journal.jsonl")


def attempts(study: Trained) -> list[int]:
    run = run_of(study)
    record = decode_file(run.record.read_bytes(), RunRecord, str(run.record))
    return [a.number for a in record.attempts]


INSTANTS: dict[str, Callable[[Trained], bool]] = {
    "after the first rollouts, before a step": lambda s: rollout_batches(s) >= 1,
    "while the second checkpoint is being saved": lambda s: (
        (checkpoints(s) / "checkpoint-4").is_dir()
        and not (checkpoints(s) / "checkpoint-4" / MARKER).exists()
    ),
    "in the second epoch, past a checkpoint": lambda s: rollout_batches(s) >= 6,
    "after the last checkpoint, before the record": lambda s: (
        checkpoints(s) / "checkpoint-6" / MARKER
    ).exists(),
}


@pytest.mark.parametrize("instant", INSTANTS)
def test_a_run_killed_and_resumed_leaves_the_bytes_of_an_uninterrupted_one(
    warm: WarmLab, trained: Trained, fresh: Fresh, instant: str
) -> None:
    study = fresh()
    assert begin(warm, study).kill_when(lambda: INSTANTS[instant](study)) == -signal.SIGKILL
    run = run_of(study)
    assert not run.record.exists()
    # A kill after the rows were sealed leaves nothing to write to: no second attempt at them.
    listed = [1] if "seal" in kinds(run.folder / "steps.journal.jsonl") else [1, 2]
    again(warm, study)
    assert repeated_bytes(run) == repeated_bytes(run_of(trained))
    assert attempts(study) == listed
    assert "Nothing to do" in again(warm, study)
    assert attempts(study) == listed


def test_a_run_killed_again_and_again_lists_every_attempt_and_repeats_to_the_byte(
    warm: WarmLab, trained: Trained, fresh: Fresh
) -> None:
    study = fresh()
    for batches in (2, 4, 6):  # of those in the journal, cut ones included
        begin(warm, study).kill_when(lambda n=batches: rollout_batches(study) >= n)  # type: ignore[misc]
    again(warm, study)
    assert repeated_bytes(run_of(study)) == repeated_bytes(run_of(trained))
    assert attempts(study) == [1, 2, 3, 4]


def test_rows_that_were_cut_are_generated_again_as_they_were(warm: WarmLab, fresh: Fresh) -> None:
    study = fresh()
    begin(warm, study).kill_when(lambda: rollout_batches(study) >= 3)  # checkpoint 2, then a batch
    again(warm, study)
    journal = run_of(study).folder / "rollouts.journal.jsonl"
    lines = [json.loads(line) for line in journal.read_bytes().split(b"\n")[:-1]]
    seen: dict[int, set[str]] = {}
    for line in lines:
        if line["kind"] == "batch":
            seen.setdefault(line["sequence"], set()).add(line["sha256"])
    assert kinds(journal).count("cut") == 1
    assert kinds(journal).count("batch") > 6
    assert all(len(digests) == 1 for digests in seen.values())


def test_the_real_command_killed_and_resumed_repeats_to_the_byte(
    trained: Trained, warm: WarmLab, fresh: Fresh
) -> None:
    study = fresh()
    out = study.paths.root.parent
    arguments = ("train", study.plan_file, "--out", out, "--arm", "historical", "--seed", 1)
    code, *_ = signal_when(start_ahalab(*arguments), lambda: rollout_batches(study) >= 3)
    assert code == -signal.SIGKILL
    again(warm, study)
    assert repeated_bytes(run_of(study)) == repeated_bytes(run_of(trained))


def test_an_interrupt_ends_with_130_and_tells_how_to_resume(
    warm: WarmLab, trained: Trained, fresh: Fresh
) -> None:
    study = fresh()
    command = begin(warm, study)
    code = command.kill_when(lambda: rollout_batches(study) >= 3, signal.SIGINT)
    assert code == 130
    assert "Traceback" not in command.text()
    assert "The same command resumes" in command.text()
    again(warm, study)
    assert repeated_bytes(run_of(study)) == repeated_bytes(run_of(trained))


# Half-written checkpoints -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def halfway(warm: WarmLab, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run killed after the checkpoint of step 4."""
    folder = tmp_path_factory.mktemp("halfway")
    plan = folder / "study.yaml"
    plan.write_text(PLAN, encoding="utf-8")
    study = Trained(parse_plan(PLAN, "plan"), plan, StudyPaths(folder / "results" / "tiny"))
    begin(warm, study).kill_when(lambda: (checkpoints(study) / "checkpoint-4" / MARKER).exists())
    for other in checkpoints(study).glob("checkpoint-*"):  # perhaps killed while removing it
        if other.name != "checkpoint-4":
            shutil.rmtree(other)
    return folder


@pytest.fixture
def half(halfway: Path, tmp_path: Path) -> Trained:
    shutil.copytree(halfway, tmp_path / "half")
    folder = tmp_path / "half"
    paths = StudyPaths(folder / "results" / "tiny")
    return Trained(parse_plan(PLAN, "plan"), folder / "study.yaml", paths)


def sound(study: Trained) -> int | None:
    marker = last_sound(checkpoints(study), digest(study.plan), run_of(study).name)
    return None if marker is None else marker.step


def without_marker(folder: Path) -> None:
    (folder / MARKER).unlink()


def torn_marker(folder: Path) -> None:
    marker = folder / MARKER
    marker.write_bytes(marker.read_bytes()[:-10])


def truncated_weights(folder: Path) -> None:
    weights = folder / "adapter_model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])


def flipped_optimizer(folder: Path) -> None:
    state = folder / "optimizer.pt"
    content = bytearray(state.read_bytes())
    content[len(content) // 2] ^= 1
    state.write_bytes(bytes(content))


def missing_rng(folder: Path) -> None:
    (folder / "rng_state.pth").unlink()


def added_file(folder: Path) -> None:
    (folder / "extra.json").write_text("{}")


def another_plans(folder: Path) -> None:
    marker = folder / MARKER
    text = marker.read_text("utf-8")
    marker.write_text(text.replace('"plan_digest": "sha256:', '"plan_digest": "sha256:0'))


FAULTS = (
    without_marker, torn_marker, truncated_weights, flipped_optimizer, missing_rng, added_file,
    another_plans,
)  # fmt: skip


def test_a_whole_checkpoint_is_sound(half: Trained) -> None:
    assert sound(half) == 4
    assert (checkpoints(half) / "checkpoint-4").is_dir()


@pytest.mark.parametrize("fault", FAULTS)
def test_a_checkpoint_that_is_not_whole_is_never_sound(
    half: Trained, fault: Callable[[Path], None]
) -> None:
    fault(checkpoints(half) / "checkpoint-4")
    assert sound(half) is None


def test_a_checkpoint_of_another_run_or_plan_is_not_this_ones(half: Trained) -> None:
    root = checkpoints(half)
    assert last_sound(root, digest(half.plan), "arms/random/seed-1") is None
    assert last_sound(root, "sha256:0", run_of(half).name) is None


def test_a_higher_checkpoint_that_is_not_whole_yields_to_the_one_before(half: Trained) -> None:
    root = checkpoints(half)
    shutil.copytree(root / "checkpoint-4", root / "checkpoint-6")  # its marker says 4
    (root / "checkpoint-final").mkdir()
    assert sound(half) == 4


@pytest.mark.parametrize("fault", [without_marker, truncated_weights])
def test_training_starts_over_rather_than_from_a_checkpoint_that_is_not_whole(
    warm: WarmLab, trained: Trained, half: Trained, fault: Callable[[Path], None]
) -> None:
    fault(checkpoints(half) / "checkpoint-4")
    again(warm, half)
    assert repeated_bytes(run_of(half)) == repeated_bytes(run_of(trained))
    journal = run_of(half).folder / "rollouts.journal.jsonl"
    cuts = [json.loads(x) for x in journal.read_bytes().split(b"\n")[:-1]]
    assert [c["rows"] for c in cuts if c["kind"] == "cut"] == [0]


def test_a_half_written_checkpoint_above_a_sound_one_is_thrown_away(
    warm: WarmLab, trained: Trained, half: Trained
) -> None:
    root = checkpoints(half)
    shutil.copytree(root / "checkpoint-4", root / "checkpoint-5")
    without_marker(root / "checkpoint-5")
    again(warm, half)
    assert repeated_bytes(run_of(half)) == repeated_bytes(run_of(trained))
    journal = run_of(half).folder / "steps.journal.jsonl"
    assert kinds(journal)[-3:] == ["batch", "batch", "seal"]  # steps 5 and 6 alone


# Refusals -----------------------------------------------------------------------------------------


@contextmanager
def unchanged(folder: Path) -> Iterator[None]:
    def content() -> dict[str, bytes]:
        return {str(p): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}

    before = content()
    yield
    assert content() == before


@pytest.mark.parametrize("stage", ["half", "study"])
def test_a_changed_plan_is_refused_and_the_keys_are_named(
    warm: WarmLab, stage: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    study: Trained = request.getfixturevalue(stage)
    changed = tmp_path / "changed.yaml"
    changed.write_text(
        PLAN.replace("learning_rate: 1e-4", "learning_rate: 2e-4").replace("{r: 4}", "{r: 8}")
    )
    with unchanged(study.paths.root):
        text = again(warm, Trained(study.plan, changed, study.paths), code=2)
    assert len(text.strip().splitlines()) == 1
    assert "grpo.learning_rate: 0.0002 here, 0.0001 there" in text
    assert "lora.r: 8 here, 4 there" in text


def test_rows_lost_after_a_checkpoint_are_not_papered_over(warm: WarmLab, half: Trained) -> None:
    rows = run_of(half).rollouts
    rows.write_bytes(rows.read_bytes()[:100])
    text = again(warm, half, code=2)
    assert "rollouts.jsonl" in text
    assert "Rows were lost" in text
    assert len(text.strip().splitlines()) == 1


def test_a_checkpoint_without_its_rows_is_refused_with_a_remedy(
    warm: WarmLab, half: Trained
) -> None:
    shutil.rmtree(half.paths.root)  # a person removes the results, and forgets .work
    text = again(warm, half, code=2)
    assert "remove its checkpoints" in text
    assert len(text.strip().splitlines()) == 1


def test_a_second_process_on_the_same_run_is_refused_and_the_first_one_named(
    warm: WarmLab, trained: Trained, half: Trained
) -> None:
    first = begin(warm, half)
    lock = half.paths.work / "locks" / "arms-historical-seed-1.lock"
    while first.running() and f'"pid": {first.pid}' not in lock.read_text():
        pass
    text = again(warm, half, code=2)
    assert f'"pid": {first.pid}' in text
    assert len(text.strip().splitlines()) == 1
    assert first.finish() == 0
    assert repeated_bytes(run_of(half)) == repeated_bytes(run_of(trained))


@pytest.mark.parametrize("killed", [False, True])
def test_a_base_whose_weights_changed_meanwhile_is_refused(
    warm: WarmLab, fresh: Fresh, tmp_path: Path, killed: bool
) -> None:
    model = tmp_path / "model"
    shutil.copytree(organism_folder(), model)
    study = fresh(
        PLAN.replace("{id: organism}", f"{{id: {model}}}").replace("steps: 6", "steps: 4")
    )
    if killed:
        marker = checkpoints(study) / "checkpoint-2" / MARKER
        begin(warm, study).kill_when(marker.exists)
        assert not run_of(study).record.exists()
        weights = model / "model.safetensors"
        content = bytearray(weights.read_bytes())
        content[-1] ^= 1
        weights.write_bytes(bytes(content))
        text = again(warm, study, code=2)
        assert "expected the base" in text
        assert len(text.strip().splitlines()) == 1
    else:
        again(warm, study)
        config = json.loads((run_of(study).adapter / "adapter_config.json").read_bytes())
        assert config["base_model_name_or_path"] == str(model)  # as the plan names it


# Windows ------------------------------------------------------------------------------------------


def test_a_run_of_slices_and_iterations_resumes_to_the_byte(warm: WarmLab, fresh: Fresh) -> None:
    whole = fresh(WINDOWED)
    again(warm, whole)
    expected, rows = repeated_bytes(run_of(whole)), rollouts_of(run_of(whole))
    shutil.rmtree(whole.paths.root)
    steps = run_of(whole).folder / "steps.journal.jsonl"
    begin(warm, whole).kill_when(lambda: batches_in(steps) >= 3)
    again(warm, whole)
    assert repeated_bytes(run_of(whole)) == expected
    assert len({(r.step, r.prompt_id, r.sample) for r in rows}) == len(rows) == 32
