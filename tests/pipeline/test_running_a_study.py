"""`ahalab run`: interrupted, killed, completed, left alone, and never fooled."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from ahalab.records.answer import Answer
from ahalab.store.layout import StudyPaths
from ahalab.store.reading import journal_path, read_rows
from lab import (
    PLAN,
    Trained,
    WarmLab,
    ahalab,
    batches_in,
    repeated_bytes,
    rollouts_of,
    signal_when,
    start_ahalab,
    write_plan,
)
from tampering import mend_journal

pytestmark = pytest.mark.train


@dataclass(frozen=True, slots=True)
class Story:
    """What became of one study that was stopped three times and then completed."""

    plan: Path
    paths: StudyPaths
    interrupted: tuple[int, str]  # exit code and stderr, at a Ctrl-C while the pilot trained
    killed: int  # exit code, at a SIGKILL of the whole group while the control trained
    orphaned: int  # exit code, at a SIGKILL of `ahalab run` alone during the evaluation
    completed: tuple[int, str, str]


@pytest.fixture(scope="session")
def story(tmp_path_factory: pytest.TempPathFactory, warm: WarmLab) -> Story:
    folder = tmp_path_factory.mktemp("story")
    plan = write_plan(folder)
    paths = StudyPaths(folder / "results" / "tiny")
    command = ("run", plan, "--out", folder / "results", "--jobs", 2)

    def rollouts(arm: str) -> int:
        return batches_in(journal_path(paths.run(arm, 1).rollouts))

    code, _, err = signal_when(
        start_ahalab(*command), lambda: rollouts("historical") >= 1, signal.SIGINT
    )
    killed, *_ = signal_when(start_ahalab(*command), lambda: rollouts("random") >= 3)
    process = start_ahalab(*command)
    base = journal_path(paths.base_answers().answers)
    while process.poll() is None and batches_in(base) < 1:
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGKILL)  # its jobs are not killed with it
    process.communicate()
    done = ahalab(*command)
    completed = (done.returncode, done.stdout, done.stderr)
    return Story(plan, paths, (code, err), killed, process.returncode, completed)


@pytest.fixture
def finished(story: Story, tmp_path: Path) -> StudyPaths:
    """A copy of the completed study that a test may change."""
    assert story.completed[0] == 0, story.completed
    return StudyPaths(Path(shutil.copytree(story.paths.root, tmp_path / "results" / "tiny")))


def test_ctrl_c_ends_with_130_and_says_how_to_resume(story: Story) -> None:
    code, err = story.interrupted
    assert code == 130
    assert "interrupted; what was committed is kept. The same command resumes." in err
    assert "Traceback" not in err


def test_a_study_stopped_three_times_completes(story: Story) -> None:
    assert (story.killed, story.orphaned) == (-signal.SIGKILL, -signal.SIGKILL)
    code, out, err = story.completed
    assert code == 0, err
    assert "Traceback" not in err
    assert str(story.paths.report) in err
    assert out.strip()
    assert story.paths.manifest.is_file()


def test_no_row_was_lost_or_doubled_by_the_stops(story: Story, trained: Trained) -> None:
    for arm in ("historical", "random"):
        rows = rollouts_of(story.paths.run(arm, 1))
        assert len({(r.step, r.prompt_id, r.sample) for r in rows}) == len(rows) == 96
        assert repeated_bytes(story.paths.run(arm, 1)) == repeated_bytes(trained.run(arm))
    targets = [
        story.paths.base_answers(), story.paths.floor_answers,
        story.paths.base_answers("replay/"), *(
            story.paths.answers(arm, 1, under)
            for arm in ("historical", "random") for under in ("", "replay/")
        ),
    ]  # fmt: skip
    for target in targets:
        rows = [row for _, row in read_rows(target.answers, Answer)]
        assert len({(r.prompt_id, r.sample) for r in rows}) == len(rows) == 12, target.name


def test_attempts_are_listed_and_not_erased(story: Story) -> None:
    record = json.loads(story.paths.run("historical", 1).record.read_bytes())
    assert [a["number"] for a in record["attempts"]] == [1, 2]


def test_a_complete_study_is_left_alone_and_it_is_said(finished: StudyPaths) -> None:
    def state() -> dict[Path, tuple[int, bytes]]:
        files = [p for p in finished.root.rglob("*") if p.is_file()]
        return {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in files}

    before = state()
    done = ahalab("run", finished.root)
    assert done.returncode == 0, done.stderr
    assert "Nothing to do" in done.stderr
    assert state() == before
    assert "training" not in done.stderr


def test_a_removed_report_is_drawn_again_without_training(finished: StudyPaths) -> None:
    manifest = finished.manifest.read_bytes()
    finished.report.unlink()
    done = ahalab("run", finished.root)
    assert done.returncode == 0, done.stderr
    assert "Nothing to do" not in done.stderr
    assert finished.report.is_file()
    assert finished.manifest.read_bytes() == manifest


@pytest.mark.parametrize("file", ["rollouts", "steps", "record", "answers", "plan"])
def test_sealed_evidence_that_was_changed_is_not_sealed_again(
    finished: StudyPaths, file: str
) -> None:
    run = finished.run("historical", 1)
    path = {
        "rollouts": run.rollouts, "steps": run.steps, "record": run.record,
        "answers": finished.answers("historical", 1).answers, "plan": finished.root / "study.yaml",
    }[file]  # fmt: skip
    before = finished.manifest.read_bytes()
    path.write_bytes(path.read_bytes().replace(b"0", b"1", 1))
    done = ahalab("run", finished.root)
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert "Traceback" not in done.stderr
    assert finished.manifest.read_bytes() == before


def test_sealed_evidence_that_is_gone_is_told_and_not_made_anew(finished: StudyPaths) -> None:
    finished.run("random", 1).record.unlink()
    done = ahalab("run", finished.root)
    assert done.returncode == 2
    assert "run.json: expected the file as it was sealed, found none" in done.stderr


def test_a_replay_that_differs_fails_the_run_also_the_second_time(finished: StudyPaths) -> None:
    again = finished.base_answers("replay/")
    shutil.rmtree(again.answers.parent)
    first = finished.base_answers().answers
    first.write_bytes(first.read_bytes().replace(b'"completion":"', b'"completion":"~', 1))
    mend_journal(first)
    finished.manifest.unlink()
    for _ in range(2):
        done = ahalab("run", finished.root, "--jobs", 1)
        assert done.returncode == 1, done.stderr
        assert "expected the same bytes as the evaluation, found others in base" in done.stderr
        assert not finished.manifest.exists()


def test_another_plan_on_the_same_results_is_refused_and_the_keys_are_named(
    finished: StudyPaths, tmp_path: Path
) -> None:
    plan = write_plan(tmp_path, PLAN.replace("max_steps: 6", "max_steps: 8"))
    done = ahalab("run", plan, "--out", finished.root.parent)
    assert done.returncode == 2
    assert "grpo.max_steps: 8 here, 6 there" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert finished.manifest.is_file()


def test_another_plan_in_one_process_leaves_the_seal_too(finished: StudyPaths) -> None:
    from ahalab.errors import PlanError
    from ahalab.pipeline.run import run_study
    from lab import plan_of

    plan = plan_of(PLAN.replace("max_steps: 6", "max_steps: 8"))
    with pytest.raises(PlanError, match="max_steps"):
        run_study(plan, finished, 1, lambda message: None)
    assert finished.manifest.is_file()


def test_a_job_that_fails_passes_on_its_message_and_exit_code(tmp_path: Path) -> None:
    model = tmp_path / "model"
    plan = write_plan(tmp_path, PLAN.replace("organism", str(model)))
    done = ahalab("run", plan, "--out", tmp_path / "results")
    assert done.returncode == 2
    assert str(model) in done.stderr
    assert "Traceback" not in done.stderr
