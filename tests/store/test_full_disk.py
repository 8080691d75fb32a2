import errno
import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ahalab.errors import InputError
from ahalab.records.base import encode
from ahalab.records.step import Timing
from ahalab.store.durable import PROBE_BYTES, make_folder, replace_file, require_room, write_all
from ahalab.store.lock import WriterLock
from ahalab.store.reading import journal_path
from ahalab.store.rows import RowFile, RowWriter
from small_disk import Disk

Batch = Callable[[int], list[Timing]]


def expected(batch: Batch, numbers: range) -> bytes:
    return b"".join(encode(row) + b"\n" for n in numbers for row in batch(n))


def test_short_counts_are_written_on(
    row_file: RowFile, batch: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "write", Disk(room=1 << 20, piece=7))
    with RowWriter[Timing](row_file) as writer:
        writer.append(batch(2))
    assert row_file.path.read_bytes() == expected(batch, range(2, 3))


@pytest.mark.parametrize("room", [0, 1, 50, 119, 179, 180, 200, 300])
def test_a_full_disk_is_one_line_and_the_file_reopens_sound(
    row_file: RowFile, batch: Batch, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    with RowWriter[Timing](row_file) as writer:
        writer.append(batch(0))
        with monkeypatch.context() as full:
            full.setattr(os, "write", Disk(room, piece=30))
            with pytest.raises(InputError, match="No space left on device") as caught:
                writer.append(batch(2))
        assert "\n" not in str(caught.value)
        assert "resume" in str(caught.value)
        # There is room again, but what the file ends in is not known: reopen first.
        for attempt in (lambda: writer.append(batch(1)), lambda: writer.cut(0), writer.seal):
            with pytest.raises(InputError, match="expected no write after a failed one"):
                attempt()
    assert row_file.path.read_bytes().startswith(expected(batch, range(1)))
    with RowWriter[Timing](row_file) as writer:
        assert len(writer.state.batches) == 1
        writer.append(batch(1))
        writer.append(batch(2))
    assert row_file.path.read_bytes() == expected(batch, range(3))


def test_a_disk_full_from_the_start_reopens_sound(
    row_file: RowFile, batch: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    for room in range(0, 600, 60):  # from the first byte of the head to the attempt's last
        with monkeypatch.context() as full:
            full.setattr(os, "write", Disk(room, piece=25))
            with (
                pytest.raises(InputError, match="No space left"),
                RowWriter[Timing](row_file) as writer,
            ):
                writer.append(batch(0) * 9)
    with RowWriter[Timing](row_file) as writer:
        writer.append(batch(0))
    assert row_file.path.read_bytes() == expected(batch, range(1))


def test_a_disk_that_takes_nothing_is_an_error_not_a_loop(
    row_file: RowFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "write", lambda *_: 0)
    with pytest.raises(InputError, match="took no more bytes"):
        write_all(1, b"x", row_file.path)


@pytest.mark.parametrize("which", [1, 2], ids=["of the rows", "of the journal"])
def test_a_failed_fsync_is_raised_and_never_tried_again(
    row_file: RowFile, batch: Batch, monkeypatch: pytest.MonkeyPatch, which: int
) -> None:
    calls = 0

    def fsync(descriptor: int) -> None:
        nonlocal calls
        calls += 1
        if calls == which:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    with RowWriter[Timing](row_file) as writer:
        writer.append(batch(0))
        with monkeypatch.context() as failing:
            failing.setattr(os, "fsync", fsync)
            with pytest.raises(InputError, match="Input/output error"):
                writer.append(batch(1))
            assert calls == which
            with pytest.raises(InputError, match="expected no write after a failed one"):
                writer.append(batch(1))
            assert calls == which
    with RowWriter[Timing](row_file) as writer:  # reopening tells what is there
        if len(writer.state.batches) == 1:
            writer.append(batch(1))
    assert row_file.path.read_bytes() == expected(batch, range(2))


def test_a_small_file_is_the_old_or_the_new_one_when_the_disk_is_full(
    row_file: RowFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = row_file.path
    replace_file(path, b"old")
    with monkeypatch.context() as full:
        full.setattr(os, "write", Disk(room=2, piece=9))
        with pytest.raises(InputError, match="No space left on device"):
            replace_file(path, b"new content")
    assert path.read_bytes() == b"old"
    assert [p.name for p in path.parent.iterdir()] == [path.name]  # nothing half-written is left
    replace_file(path, b"new content")
    assert path.read_bytes() == b"new content"
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_folder_that_cannot_be_made_is_one_line(row_file: RowFile) -> None:
    blocked = row_file.path.parent
    blocked.write_bytes(b"a file where a folder should be")
    for attempt in (
        lambda: replace_file(blocked / "run.json", b""),
        lambda: RowWriter[Timing](row_file),
        lambda: WriterLock(blocked / "locks" / "run.lock").__enter__(),
    ):
        with pytest.raises(InputError, match="expected a writable folder") as caught:
            attempt()
        assert "\n" not in str(caught.value)
    assert not journal_path(row_file.path).exists()


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="descriptors are counted in /proc")
def test_a_writer_that_cannot_begin_leaves_no_file_open(
    row_file: RowFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = open_descriptors()
    with monkeypatch.context() as full:
        full.setattr(os, "write", Disk(room=9, piece=9))
        for _ in range(3):
            with pytest.raises(InputError, match="No space left"):
                RowWriter[Timing](row_file)
    assert open_descriptors() == before


def test_every_new_folder_is_flushed_into_the_one_above(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed = []

    def fsync(descriptor: int) -> None:
        flushed.append(Path(f"/proc/self/fd/{descriptor}").readlink())

    monkeypatch.setattr(os, "fsync", fsync)
    make_folder(tmp_path / "a" / "b")
    assert flushed == [tmp_path, tmp_path / "a"]
    make_folder(tmp_path / "a" / "b")
    assert len(flushed) == 2


def test_committed_bytes_are_read_from_the_disk_and_not_from_the_cache_when_a_file_is_reopened(
    row_file: RowFile, batch: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RowWriter[Timing](row_file) as writer:
        writer.append(batch(0))
    dropped = []

    def fadvise(descriptor: int, start: int, length: int, advice: int) -> None:
        dropped.append((Path(f"/proc/self/fd/{descriptor}").readlink(), start, length, advice))

    monkeypatch.setattr(os, "posix_fadvise", fadvise)
    with RowWriter[Timing](row_file):
        pass
    whole = (0, 0, os.POSIX_FADV_DONTNEED)
    assert dropped == [(row_file.path, *whole), (journal_path(row_file.path), *whole)]


def test_a_lock_on_a_full_disk_or_one_without_locks_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(number: int) -> Callable[..., int]:
        def refuse(*_: object) -> int:
            raise OSError(number, os.strerror(number))

        return refuse

    path = tmp_path / "run.lock"
    for target, name, number in (
        (os, "pwrite", errno.ENOSPC),
        (fcntl, "flock", errno.ENOLCK),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(target, name, refusing(number))
            with pytest.raises(InputError, match=os.strerror(number)) as caught, WriterLock(path):
                pass
        assert "\n" not in str(caught.value)
    with WriterLock(path):  # and it was let go
        pass


def test_a_disk_is_asked_for_room_and_left_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_room(tmp_path)
    monkeypatch.setattr(os, "write", Disk(room=PROBE_BYTES - 1, piece=1 << 20))
    with pytest.raises(InputError, match=rf"^{tmp_path}: .*No space left on device"):
        require_room(tmp_path)
    assert list(tmp_path.iterdir()) == []


# A real file system of 1 MB, in a mount namespace of its own: filled by batches until it refuses,
# enlarged, and resumed.
SMALL_DISK = """
import subprocess, sys
from pathlib import Path
from ahalab.errors import InputError
from ahalab.records.step import Timing
from ahalab.store.reading import read_rows
from ahalab.store.rows import RowFile, RowWriter
disk, batches = Path(sys.argv[1]), int(sys.argv[2])
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], check=True)
file = RowFile(disk / "s" / "rows.jsonl", "timing/1", "plan", "run", disk / "broken")
def rows(n):
    return [Timing(step=n, seconds=n / 4, utc="x" * (n * 37 % 4000)) for _ in range(n % 4)]
def go_on():
    with RowWriter[Timing](file) as writer:
        for n in range(len(writer.state.batches), batches):
            writer.append(rows(n))
        writer.seal()
refused = 0
for _ in range(2):  # as it is, full, the second time
    try:
        go_on()
    except InputError as error:
        assert "No space left on device" in str(error) and "\\n" not in str(error), error
        refused += 1
assert refused == 2, refused
subprocess.run(["mount", "-o", "remount,size=64m", "tmpfs", disk], check=True)
go_on()
expected = [row for n in range(batches) for row in rows(n)]
assert [row for _, row in read_rows(file.path, Timing)] == expected
print("whole")
"""
UNSHARE = ["unshare", "--mount", "--map-root-user"]


@pytest.mark.skipif(
    shutil.which("unshare") is None
    or subprocess.run([*UNSHARE, "true"], capture_output=True, check=False).returncode != 0,
    reason="mounting a small file system needs root or user namespaces; it is simulated above",
)
def test_a_real_file_system_of_one_megabyte_refuses_and_resumes_when_it_is_enlarged(
    tmp_path: Path,
) -> None:
    done = subprocess.run(
        [*UNSHARE, sys.executable, "-c", SMALL_DISK, tmp_path, "600"],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.stdout == "whole\n", done.stderr
