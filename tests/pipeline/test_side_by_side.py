"""Jobs in processes of their own: in order, side by side, stopped together. Nothing trains here."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ahalab.errors import InputError, LockedError
from ahalab.pipeline import workers
from ahalab.pipeline.run import _training_job
from ahalab.pipeline.workers import Job, JobError, run_jobs
from ahalab.plan.cells import pilot_of, training_cells
from ahalab.store.layout import StudyPaths
from ahalab.store.lock import WriterLock
from lab import PLAN, plan_of

# Stands in for `python -m ahalab`: a job's arguments are a line of Python.
STAND_IN = """#!{python}
import sys
exec(sys.argv[3])
"""


@pytest.fixture
def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let jobs run lines of Python instead of `ahalab` commands."""
    stand_in = tmp_path / "stand-in"
    stand_in.write_text(STAND_IN.format(python=sys.executable))
    stand_in.chmod(0o755)
    monkeypatch.setattr(workers.sys, "executable", str(stand_in))
    monkeypatch.setattr(workers, "POLL_SECONDS", 0.02)


def job(folder: Path, name: str, program: str, after: str | None = None) -> Job:
    return Job(name, (program,), folder / "logs" / f"{name}.log", 1, after)


def note(folder: Path, name: str) -> str:
    return f"open({str(folder / 'order')!r}, 'a').write({name!r} + ' ')"


def order(folder: Path) -> list[str]:
    return (folder / "order").read_text().split()


def test_real_commands_run_and_leave_their_output_in_their_logs(tmp_path: Path) -> None:
    jobs = [Job(f"job {n}", ("--version",), tmp_path / f"{n}.log", 1) for n in range(2)]
    polls: list[int] = []
    run_jobs(jobs, 2, lambda: polls.append(1))
    assert all((tmp_path / f"{n}.log").read_text().startswith("ahalab ") for n in range(2))
    assert polls


def test_a_real_commands_message_and_exit_code_are_passed_on(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    with pytest.raises(JobError, match=r"train: .*no-such-plan\.yaml: expected a study") as caught:
        run_jobs([Job("train", ("plan", "no-such-plan.yaml"), log, 1)], 1, lambda: None)
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)
    assert str(log) in str(caught.value)


@pytest.mark.parametrize("side_by_side", [1, 3])
def test_a_job_starts_only_after_the_one_it_follows(
    line: None, tmp_path: Path, side_by_side: int
) -> None:
    slow = f"import time; time.sleep(.3); {note(tmp_path, 'pilot')}"
    run_jobs(
        [
            job(tmp_path, "late", note(tmp_path, "late"), after="later"),
            job(tmp_path, "later", note(tmp_path, "later"), after="pilot"),
            job(tmp_path, "pilot", slow),
            job(tmp_path, "free", note(tmp_path, "free"), after="done before"),
        ],
        side_by_side,
        lambda: None,
    )
    found = order(tmp_path)
    assert sorted(found) == ["free", "late", "later", "pilot"]
    assert found.index("pilot") < found.index("later") < found.index("late")


def test_no_more_than_the_given_number_run_at_a_time(line: None, tmp_path: Path) -> None:
    alive = tmp_path / "alive"
    alive.mkdir()
    program = (
        f"import os, time, pathlib; me = pathlib.Path({str(alive)!r}, str(os.getpid()));"
        "me.touch(); time.sleep(.2); n = len(list(me.parent.iterdir()));"
        f"open({str(tmp_path / 'counts')!r}, 'a').write(f'{{n}} '); me.unlink()"
    )
    run_jobs([job(tmp_path, f"j{n}", program) for n in range(5)], 2, lambda: None)
    counts = [int(n) for n in (tmp_path / "counts").read_text().split()]
    assert len(counts) == 5
    assert max(counts) <= 2


def test_a_failing_job_stops_the_others_and_starts_no_further_one(
    line: None, tmp_path: Path
) -> None:
    waiting = f"import time; {note(tmp_path, 'began')}; time.sleep(60); {note(tmp_path, 'ended')}"
    failing = (
        f"import sys, time, pathlib\nwhile not pathlib.Path({str(tmp_path / 'order')!r}).exists():"
        " time.sleep(.01)\nsys.stderr.write('noise\\nahalab: the disk is full\\n'); sys.exit(5)"
    )
    began = time.monotonic()
    with pytest.raises(JobError, match=r"^bad: the disk is full") as caught:
        run_jobs(
            [
                job(tmp_path, "slow", waiting),
                job(tmp_path, "bad", failing),
                job(tmp_path, "never", note(tmp_path, "never")),
            ],
            2,
            lambda: None,
        )
    assert caught.value.exit_code == 5
    assert time.monotonic() - began < 20
    assert order(tmp_path) == ["began"]


def test_a_job_that_says_nothing_still_has_a_message(line: None, tmp_path: Path) -> None:
    with pytest.raises(JobError, match="quiet: it left no message") as caught:
        run_jobs([job(tmp_path, "quiet", "raise SystemExit(4)")], 1, lambda: None)
    assert caught.value.exit_code == 4


def test_what_an_earlier_attempt_said_is_not_told_again(line: None, tmp_path: Path) -> None:
    before = job(tmp_path, "quiet", "").log
    before.parent.mkdir()
    before.write_text("ahalab: something of yesterday\n")
    with pytest.raises(JobError, match="quiet: it left no message"):
        run_jobs([job(tmp_path, "quiet", "raise SystemExit(4)")], 1, lambda: None)


@pytest.mark.parametrize("said", ["", "ahalab: /disk/rows: expec"])
def test_a_job_whose_message_the_full_disk_swallowed_ends_with_that(
    line: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    def full(folder: Path) -> None:
        raise InputError(f"{folder}: expected to write, found: No space left on device.")

    monkeypatch.setattr(workers, "require_room", full)
    program = f"sys.stderr.write({said!r}); raise SystemExit(1)"
    with pytest.raises(JobError, match=r"^quiet: .*logs: .*No space left on device") as caught:
        run_jobs([job(tmp_path, "quiet", program)], 1, lambda: None)
    assert caught.value.exit_code == 2


def test_a_job_killed_by_the_system_is_resumable(line: None, tmp_path: Path) -> None:
    program = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    with pytest.raises(JobError, match=r"killed by signal 9 .*The same command resumes") as caught:
        run_jobs([job(tmp_path, "oom", program)], 1, lambda: None)
    assert caught.value.exit_code == 4


def test_an_interrupt_terminates_the_jobs(line: None, tmp_path: Path) -> None:
    program = (
        f"import os, time; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()) + ' ');"
        "time.sleep(60)"
    )

    def interrupt() -> None:
        while not (tmp_path / "pid").exists() or " " not in (tmp_path / "pid").read_text():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        run_jobs([job(tmp_path, "slow", program)], 1, lambda: None)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_jobs_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    """SIGKILL of the parent alone must not leave writers behind that hold the locks."""
    lock, log = tmp_path / "locks" / "x.lock", tmp_path / "x.log"
    hold = (
        "import time; from pathlib import Path; from ahalab.store.lock import WriterLock\n"
        f"with WriterLock(Path({str(lock)!r})): time.sleep(60)"
    )
    parent = (
        "from pathlib import Path; from ahalab.pipeline import workers\n"
        f"workers.ENTRY = workers.ENTRY.partition('from ahalab.cli')[0] + chr(10) + {hold!r}\n"
        f"workers.run_jobs([workers.Job('x', (), Path({str(log)!r}), 1)], 1, lambda: None)"
    )
    with subprocess.Popen([sys.executable, "-c", parent]) as process:
        while process.poll() is None and (not lock.exists() or not lock.read_text()):
            time.sleep(0.01)
        process.kill()
    for _ in range(200):
        try:
            with WriterLock(lock):
                return
        except LockedError:
            time.sleep(0.02)
    pytest.fail("the job outlived its parent and still holds the lock")


def test_every_arm_follows_the_first_arms_run_of_its_seed(tmp_path: Path) -> None:
    plan = plan_of(PLAN.replace("seeds: [1]", "seeds: [1, 2]"))
    paths = StudyPaths(tmp_path / "results" / "tiny")
    jobs = {cell.name: _training_job(plan, paths, cell) for cell in training_cells(plan)}
    assert [job.after for job in jobs.values()] == [
        None, None, "arms/historical/seed-1", "arms/historical/seed-2",
    ]  # fmt: skip
    for cell in training_cells(plan):
        arguments = jobs[cell.name].arguments
        pilot = pilot_of(plan, cell)
        assert ("--like" in arguments) == (pilot is not None)
        if pilot is not None:
            assert arguments[arguments.index("--like") + 1] == str(paths.root / pilot.name)
    assert len({job.log for job in jobs.values()}) == 4
