"""Real processes and real SIGKILLs: what is committed stays, what is not runs again."""

import fcntl
import json
import os
import platform
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ahalab.errors import LockedError
from ahalab.records.base import encode
from ahalab.records.step import Timing
from ahalab.store.lock import WriterLock
from ahalab.store.reading import read_rows
from ahalab.store.rows import RowFile, finished

BATCHES = 200
# Appends what is missing; every start steps back to a "checkpoint", as training does.
WRITER = """
import sys
from pathlib import Path
from ahalab.records.step import Timing
from ahalab.store.rows import RowFile, RowWriter
folder, batches = Path(sys.argv[1]), int(sys.argv[2])
file = RowFile(folder / "s" / "rows.jsonl", "timing/1", "plan", "run", folder / "broken")
print("ready", flush=True)
with RowWriter[Timing](file) as writer:
    writer.cut(len(writer.state.batches) // 5 * 5)
    for n in range(len(writer.state.batches), batches):
        row = Timing(step=n, seconds=n / 4, utc="x" * (n * 37 % 400))
        writer.append([row] * (n % 4))
    writer.seal()
"""
OWNER = """
import sys, time
from pathlib import Path
from ahalab.store.lock import WriterLock
with WriterLock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def start(program: str, *arguments: object) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()  # its imports are done: what follows is the writing
    return process


def kill(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


def test_a_writer_killed_at_random_instants_leaves_the_bytes_of_an_uninterrupted_run(
    tmp_path: Path,
) -> None:
    expected = b"".join(  # worked out here, not by the writer
        encode(Timing(step=n, seconds=n / 4, utc="x" * (n * 37 % 400))) + b"\n"
        for n in range(BATCHES)
        for _ in range(n % 4)
    )
    file = RowFile(tmp_path / "s" / "rows.jsonl", "timing/1", "plan", "run", tmp_path / "broken")
    instants = random.Random(7)  # noqa: S311 (instants, not secrets)
    kills = 0
    for _ in range(15):
        process = start(WRITER, tmp_path, BATCHES)
        time.sleep(instants.uniform(0.0, 0.02))
        kills += process.poll() is None
        kill(process)
        if file.path.is_file():  # at any instant the rows are a prefix, perhaps with a torn tail
            assert expected.startswith(file.path.read_bytes())
        if finished(file):
            break
    assert kills >= 5
    if not finished(file):
        process = start(WRITER, tmp_path, BATCHES)
        process.communicate()
        assert process.returncode == 0
    assert file.path.read_bytes() == expected
    assert sum(1 for _ in read_rows(file.path, Timing)) == sum(n % 4 for n in range(BATCHES))
    for tail in file.broken.glob("rows.jsonl.*.broken"):
        assert tail.read_bytes() in expected


def test_a_second_process_is_refused_and_the_owner_is_named(tmp_path: Path) -> None:
    path = tmp_path / "locks" / "run.lock"
    owner = start(OWNER, path)
    try:
        with (
            pytest.raises(LockedError, match=rf"{path}.*\"pid\": {owner.pid}\b") as caught,
            WriterLock(path),
        ):
            pass
        assert "\n" not in str(caught.value)
    finally:
        kill(owner)


def test_a_lock_file_replaced_between_opening_and_locking_is_not_taken_for_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.lock"
    path.touch()
    taken, flock = [], fcntl.flock

    def replacing(descriptor: int, how: int) -> None:
        flock(descriptor, how)
        if not taken:  # another process removes the file, and a third makes it anew
            path.rename(tmp_path / "old.lock")
            path.touch()
        taken.append(os.fstat(descriptor).st_ino)

    monkeypatch.setattr(fcntl, "flock", replacing)
    with WriterLock(path):
        assert taken[0] == (tmp_path / "old.lock").stat().st_ino
        assert taken[1:] == [path.stat().st_ino]
        assert f'"pid": {os.getpid()}' in path.read_text()


def test_a_lock_names_the_machine_too(tmp_path: Path) -> None:
    with WriterLock(tmp_path / "run.lock"):
        assert json.loads((tmp_path / "run.lock").read_text())["host"] == platform.node()


def test_a_killed_owner_leaves_a_lock_that_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "run.lock"
    kill(start(OWNER, path))
    assert path.exists()
    with WriterLock(path):
        assert f'"pid": {os.getpid()}' in path.read_text()
        # An exec'd child must not hold the lock on after its parent.
        with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
            pass_on = WriterLock(path)
            with pytest.raises(LockedError), pass_on:
                pass
            child.communicate(b"\n")
    with WriterLock(path):
        pass


def test_a_lock_is_free_again_after_its_block_even_with_a_child_alive(tmp_path: Path) -> None:
    path = tmp_path / "run.lock"
    with WriterLock(path):
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with WriterLock(path):
        child.communicate(b"\n")


def test_an_error_inside_the_block_frees_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "run.lock"
    with pytest.raises(RuntimeError), WriterLock(path):
        raise RuntimeError
    with WriterLock(path):
        pass
