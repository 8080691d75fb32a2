import errno
import os
from collections.abc import Callable

import pytest

from ahalab.errors import InputError
from ahalab.records.base import encode
from ahalab.records.step import Timing
from ahalab.store.durable import replace_file, write_all
from ahalab.store.reading import journal_path
from ahalab.store.rows import RowFile, RowWriter

Batch = Callable[[int], list[Timing]]


class Disk:
    """Stands in for os.write: takes `room` bytes, in short counts, then says ENOSPC."""

    def __init__(self, room: int, piece: int) -> None:
        self.room, self.piece, self.write = room, piece, os.write

    def __call__(self, descriptor: int, payload: bytes | memoryview) -> int:
        if self.room <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = self.write(descriptor, bytes(payload)[: min(self.room, self.piece)])
        self.room -= written
        return written


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
    replace_file(path, b"new content")
    assert path.read_bytes() == b"new content"
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_folder_that_cannot_be_made_is_one_line(row_file: RowFile) -> None:
    blocked = row_file.path.parent
    blocked.write_bytes(b"a file where a folder should be")
    with pytest.raises(InputError, match="expected a writable folder") as caught:
        replace_file(blocked / "run.json", b"")
    assert "\n" not in str(caught.value)
    assert not journal_path(row_file.path).exists()
