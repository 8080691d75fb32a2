"""Live progress: a table on a terminal, plain lines elsewhere, one row per run that trains."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ahalab.pipeline import training_progress
from ahalab.pipeline.training_progress import TrainingProgress, clock
from ahalab.pipeline.watch import Watch
from ahalab.plan.cells import training_cells
from ahalab.records.base import digest
from ahalab.records.step import Step
from ahalab.statistics.training import step_figures
from ahalab.store.layout import StudyPaths
from ahalab.store.rows import RowFile, RowWriter
from lab import plan_of


def step(number: int, tokens: int | None = 0, **figures: object) -> Step:
    """Return a step; without figures it is one that reused a batch."""
    nothing = step_figures([])
    own = dict.fromkeys(
        ("loss", "grad_norm", "learning_rate", "entropy", "kl", "clip_low_fraction",
         "clip_high_fraction")
    )  # fmt: skip
    return Step(step=number, tokens=tokens, **{**own, **nothing, **figures})


def told(number: int, tokens: int, reward: float = 0.7) -> Step:
    return step(
        number, tokens, reward_mean=reward, strict_fraction=0.25, zero_variance_fraction=0.5,
        truncated_fraction=0.125, components={"correct_strict": 0.25, "format": 0.5},
    )  # fmt: skip


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def ticks(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(training_progress, "time", clock)
    return clock


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    out, err = capsys.readouterr()
    assert out == ""
    assert "\x1b" not in err
    return err.splitlines()


@pytest.mark.parametrize("force", ["", "1"])
def test_elsewhere_than_on_a_terminal_a_plain_line_comes_now_and_then(
    ticks: Clock, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, force: str
) -> None:
    if force:
        monkeypatch.setenv("FORCE_COLOR", force)  # a log is no terminal for that
    with TrainingProgress(10) as progress:
        for number, second in ((1, 108), (2, 110), (3, 112), (4, 120)):
            ticks.now = second
            progress.on_step("arms/a/seed-1", told(number, 1000 * number))
        ticks.now = 124
    assert lines(capsys) == [
        # At 120 s: 3 steps and 3,000 tokens in the 12 s since the first step, 6 steps are left.
        "training: 4 of 10 steps, 250 tokens/s, 0:24 left; arms/a/seed-1 step 4: reward 0.70 "
        "(correct_strict 0.25, format 0.50), strict 25%, dead groups 50%, cut 12%",
        "training: 4 of 10 steps, 188 tokens/s, 0:32 left; arms/a/seed-1 step 4: reward 0.70 "
        "(correct_strict 0.25, format 0.50), strict 25%, dead groups 50%, cut 12%",
    ]


def test_a_resumed_run_counts_only_its_own_steps_and_tokens(
    ticks: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with TrainingProgress(10) as progress:
        ticks.now = 110
        progress.on_step("arms/a/seed-1", told(7, 70_000))
    assert lines(capsys)[-1].startswith("training: 7 of 10 steps, 0 tokens/s, 0:30 left")


def test_a_step_that_reused_a_batch_leaves_the_figures_of_the_last_one_that_did_not(
    ticks: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with TrainingProgress(2) as progress:
        ticks.now = 104
        progress.on_step("arms/a/seed-1", told(1, 800))
        progress.on_step("arms/a/seed-1", step(2, None))
    (line,) = lines(capsys)
    assert "arms/a/seed-1 step 2: reward 0.70" in line
    assert "200 tokens/s" in line


def test_runs_side_by_side_are_summed_in_steps_and_tokens_and_shown_apart(
    ticks: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with TrainingProgress(20, done=4) as progress:
        ticks.now = 102
        progress.update({"a": (told(1, 100),), "b": (told(1, 300, reward=0.1),)}, 6)
        ticks.now = 106
        progress.update({"b": (told(3, 900, reward=0.2),)}, 9)  # a has ended
    (line,) = lines(capsys)
    assert line.startswith("training: 9 of 20 steps, 150 tokens/s, 0:15 left; b step 3: reward 0.2")
    assert "; a " not in line


def test_a_job_shows_nothing(ticks: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with TrainingProgress(2, show=False) as progress:
        ticks.now = 300
        progress.on_step("arms/a/seed-1", told(1, 800))
    assert lines(capsys) == []


def test_a_duration_is_told_in_minutes_and_hours() -> None:
    assert [clock(s) for s in (0.2, 59.6, 600, 3661)] == ["0:00", "1:00", "10:00", "1:01:01"]


ON_A_TERMINAL = """
import sys; sys.path[:0] = {paths!r}
from pipeline.test_training_progress import told
from ahalab.pipeline.training_progress import TrainingProgress
with TrainingProgress(10) as progress:
    for number in range(1, 5):
        progress.on_step("arms/a/seed-1", told(number, 1000 * number))
"""


def test_a_terminal_of_80_columns_shows_everything(tmp_path: Path) -> None:
    tests = Path(__file__).parents[1]
    program = ON_A_TERMINAL.format(paths=[str(tests), str(tests / "pipeline")])
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80", "LINES": "24"}
    with subprocess.Popen(
        [sys.executable, "-c", program], stderr=theirs, stdout=theirs, env=environment
    ) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            shown += piece
    assert process.returncode == 0, shown.decode()
    assert b"\x1b[" in shown
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode()).replace("\r", "")
    rows = plain.splitlines()
    assert max(map(len, rows)) <= 80
    assert any(row.startswith("training ") and "4/10" in row and "left" in row for row in rows)
    assert re.search(r"arms/a/seed-1 +4 +0\.70 +25% +50% +12% +correct_strict 0\.25", plain)


@pytest.mark.parametrize("reused", [0, 3])
def test_a_run_in_another_process_is_seen_through_what_it_committed(
    tmp_path: Path, reused: int
) -> None:
    plan = plan_of()
    paths = StudyPaths(tmp_path / "results" / "tiny")
    cells = training_cells(plan)
    watch = Watch(paths, cells)
    watch.look()
    assert (watch.done, watch.running) == (0, {})
    run = paths.run("historical", 1)
    file = RowFile(run.steps, "step/1", digest(plan), run.name, paths.broken)
    with RowWriter[Step](file) as writer:
        writer.append([told(1, 100)])
        for number in range(reused):
            writer.append([step(number + 2, None)])
        with run.steps.open("ab") as torn:
            torn.write(b'{"schema":"st')  # being written: not committed
        watch.look()
        assert watch.done == 1 + reused
        (latest,) = watch.running.values()
        assert [s.step for s in latest] == ([1, 1 + reused] if reused else [1])
        os.truncate(run.steps, writer.state.end)
        writer.seal()
    watch.look()
    assert (watch.done, watch.running) == (1 + reused, {})


def test_what_an_earlier_call_left_unfinished_is_not_shown_as_running(tmp_path: Path) -> None:
    plan = plan_of()
    paths = StudyPaths(tmp_path / "results" / "tiny")
    run = paths.run("random", 1)
    file = RowFile(run.steps, "step/1", digest(plan), run.name, paths.broken)
    with RowWriter[Step](file) as writer:
        writer.append([told(1, 100)])
    watch = Watch(paths, training_cells(plan))
    watch.look()
    assert (watch.done, watch.running) == (1, {})
    with RowWriter[Step](file) as writer:
        writer.append([told(2, 200)])
        watch.look()
        assert watch.done == 2
        assert set(watch.running) == {run.name}
