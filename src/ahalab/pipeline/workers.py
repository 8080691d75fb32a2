"""Runs one command per job in processes of their own, a given number side by side."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ahalab.errors import AhaLabError, InputError
from ahalab.plain_files import read_plain
from ahalab.store.durable import require_room

POLL_SECONDS = 0.25
TETHERED = "from ahalab.pipeline.tether import end_with_parent; end_with_parent(); "
ENTRY = TETHERED + "from ahalab.cli import main; raise SystemExit(main())"
LAUNCHER = TETHERED + "from torch.distributed.run import main; main()"
CHILD_CODE = re.compile(r"^\s*exitcode\s*:\s*(\d+)", re.MULTILINE)  # in what torchrun says of one


class JobError(AhaLabError):
    """A job ended badly; its own message and exit code are passed on."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@dataclass(frozen=True, slots=True)
class Job:
    """One `ahalab` command line, and where its output goes."""

    name: str
    arguments: tuple[str, ...]
    log: Path
    threads: int
    after: str | None = None  # name of a job that must have ended well first
    processes: int = 1  # more are started by torchrun


def run_jobs(jobs: list[Job], side_by_side: int, on_poll: Callable[[], None]) -> None:
    """Run every job; `on_poll` is called four times a second.

    A job that fails stops the others: each is resumable, and the fault is told at once.

    Raises:
        JobError: A job ended with another exit code than 0.
    """
    waiting, running = list(jobs), list[tuple[Job, subprocess.Popen[bytes]]]()
    begun: dict[str, int] = {}  # where each job's part of its log begins
    try:
        while waiting or running:
            while len(running) < side_by_side and (job := _next(waiting, running)):
                waiting.remove(job)
                begun[job.name] = job.log.stat().st_size if job.log.exists() else 0
                running.append((job, _start(job)))
            time.sleep(POLL_SECONDS)
            for job, process in list(running):
                if process.poll() is not None:
                    running.remove((job, process))
                    _let_go(process)
                    if process.returncode != 0:
                        raise _fault(job, process.returncode, begun[job.name])
            on_poll()
    finally:
        for _, process in running:
            process.terminate()
        for _, process in running:
            process.wait()
            _let_go(process)


def _let_go(process: subprocess.Popen[bytes]) -> None:
    """Close our end of the pipe that ties a job to us."""
    if process.stdin is not None:
        process.stdin.close()


def _next(waiting: list[Job], running: list[tuple[Job, subprocess.Popen[bytes]]]) -> Job | None:
    """Return the first job whose predecessor is neither waiting nor running."""
    open_names = {job.name for job in waiting} | {job.name for job, _ in running}
    return next((job for job in waiting if job.after not in open_names), None)


def _start(job: Job) -> subprocess.Popen[bytes]:
    job.log.parent.mkdir(parents=True, exist_ok=True)
    # BLAS and OpenMP read these once, when they are loaded.
    threads = {name: str(job.threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    quiet = {"TOKENIZERS_PARALLELISM": "false", "NO_COLOR": "1"}
    with job.log.open("ab") as log:
        return subprocess.Popen(  # noqa: S603 - our own command
            [sys.executable, "-c", *_entry(job), *job.arguments],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **threads, **quiet},
        )


def _entry(job: Job) -> tuple[str, ...]:
    if job.processes == 1:
        return (ENTRY,)
    count = str(job.processes)
    return (LAUNCHER, "--standalone", "--nproc_per_node", count, "--module", "ahalab")


def _fault(job: Job, code: int, begun: int) -> JobError:
    """Return what to tell of a job that ended badly; its part of the log begins at `begun`."""
    text = read_plain(job.log)[begun:].decode("utf-8", "replace")
    lines = text.strip().splitlines()
    if job.processes > 1:  # our own message, not what torchrun says of it
        lines = [line for line in lines if line.startswith("ahalab: ")] or lines
        child = CHILD_CODE.findall(text)
        code = int(child[-1]) if child and code > 0 else code
    if code < 0:
        return JobError(
            f"{job.name}: killed by signal {-code} (log: {job.log}). The same command resumes.", 4
        )
    last = lines[-1].removeprefix("ahalab: ") if lines else "it left no message"
    if not text.endswith("\n"):  # what it said last is not in the log
        try:
            require_room(job.log.parent)
        except InputError as full:
            last, code = str(full), full.exit_code
    return JobError(f"{job.name}: {last} (log: {job.log})", code)
