"""Compressed rows that unpack to far more than they weigh, or to something else than they say."""

from __future__ import annotations

import resource
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from command import AHALAB

from ahalab.errors import RecordError
from ahalab.store import reading
from ahalab.store.reading import read_bytes, read_lines, read_spans, sealed_path
from ahalab.verify.checks import Ledger
from ahalab.verify.reading import Study

ROW = b'{"id": 1, "strict": "wrong", "lenient": "wrong"}\n'
BLOWN_UP = 20_000_000  # bytes of one frame that weighs less than a thousandth


def frame(payload: bytes, *, declared: bool = True) -> bytes:
    return zstandard.ZstdCompressor(level=1, write_content_size=declared).compress(payload)


@pytest.fixture(scope="module")
def bomb() -> bytes:
    """Rows of 20 MB in one frame."""
    packed = frame(ROW * (BLOWN_UP // len(ROW)))
    assert len(packed) * 1_000 < BLOWN_UP
    return packed


READERS: dict[str, Callable[[Path], int]] = {
    "whole": lambda path: len(read_bytes(path)),
    "lines": lambda path: sum(len(line) + 1 for _, line in read_lines(path)),
    "spans": lambda path: sum(map(len, read_spans(path, [(0, len(ROW)), (1 << 33, 1 << 34)]))),
}


def refused(path: Path, reader: str) -> str:
    with pytest.raises(RecordError) as error:
        READERS[reader](path)
    assert str(error.value).startswith(str(sealed_path(path)))
    assert str(error.value).isprintable()
    return str(error.value)


@pytest.mark.parametrize("reader", READERS)
def test_frames_after_the_first_one_are_not_unpacked(
    tmp_path: Path, bomb: bytes, reader: str
) -> None:
    path = tmp_path / "rows.jsonl"
    sealed_path(path).write_bytes(frame(ROW) + bomb * 500)  # 10 GB
    began = time.monotonic()
    assert "expected nothing after its frame, found more bytes" in refused(path, reader)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("reader", READERS)
def test_a_frame_over_the_bound_is_refused_by_its_declaration(
    tmp_path: Path, bomb: bytes, reader: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.jsonl"
    whole = BLOWN_UP // len(ROW) * len(ROW)
    sealed_path(path).write_bytes(bomb)
    monkeypatch.setattr(reading, "MAX_UNPACKED_BYTES", whole - 1)
    assert f"expected a size of at most {whole - 1} bytes, found {whole}" in refused(path, reader)
    monkeypatch.setattr(reading, "MAX_UNPACKED_BYTES", whole)
    if reader != "spans":
        assert READERS[reader](path) == whole


@pytest.mark.parametrize("over", [0, 1])
def test_the_bound_is_4_gib(tmp_path: Path, over: int) -> None:
    path = tmp_path / "rows.jsonl"
    # A frame's head as RFC 8878 has it: magic, a size of 8 bytes and a window of 1 KiB declared.
    head = b"\x28\xb5\x2f\xfd\xc0\x00" + ((4 << 30) + over).to_bytes(8, "little")
    sealed_path(path).write_bytes(head + b"\x01\x00\x00")  # and one last block, which is empty
    told = refused(path, "lines")
    assert ("expected a size of at most 4294967296 bytes" in told) == bool(over), told


@pytest.mark.parametrize("reader", READERS)
def test_a_size_that_is_not_declared_or_that_is_a_lie_is_refused(
    tmp_path: Path, reader: str
) -> None:
    path, rows = tmp_path / "rows.jsonl", ROW * 3
    sealed_path(path).write_bytes(frame(rows, declared=False))
    assert "expected a size of at most" in refused(path, reader)
    honest = frame(rows)
    at = honest.index(bytes([len(rows)]))
    for lie in (len(rows) - 1, len(rows) + 1, 255):
        sealed_path(path).write_bytes(honest[:at] + bytes([lie]) + honest[at + 1 :])
        refused(path, reader)


@pytest.mark.parametrize("reader", ["whole", "lines"])
def test_an_archive_that_is_cut_or_has_something_after_it_is_refused_wherever_it_is_cut(
    tmp_path: Path, reader: str
) -> None:
    path = tmp_path / "rows.jsonl"
    rows = b"".join(b'{"id": %d, "strict": "wrong", "lenient": "wrong"}\n' % n for n in range(40))
    whole = frame(rows)
    sealed_path(path).write_bytes(whole)
    assert READERS[reader](path) == len(rows)
    for end in range(len(whole)):
        sealed_path(path).write_bytes(whole[:end])
        refused(path, reader)
    skipped = b"\x50\x2a\x4d\x18\2\0\0\0hi"  # a frame that decoders pass over
    for more in (b"\0", b"\n", skipped, skipped[:9], b"PK\3\4", frame(ROW), frame(ROW)[:9], whole):
        sealed_path(path).write_bytes(whole + more)
        refused(path, reader)


def test_a_line_without_end_is_refused_after_16_mb(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    sealed_path(path).write_bytes(frame(b" " * BLOWN_UP))
    assert ":1: expected a whole line, found a torn or overlong one" in refused(path, "lines")


def test_another_kind_of_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    for magic in (b"\x1f\x8b\x08", b"PK\3\4", b"BZh9", b"\xfd7zXZ\0", b"\x50\x2a\x4d\x18\0\0\0\0"):
        sealed_path(path).write_bytes(magic + frame(ROW))
        refused(path, "lines")


def test_verify_reads_no_more_of_a_compressed_file_than_it_declares(
    tmp_path: Path, bomb: bytes
) -> None:
    path = tmp_path / "rows.jsonl"
    sealed_path(path).write_bytes(frame(ROW) + bomb * 500)
    ledger = Ledger(lambda _: None)
    began = time.monotonic()
    list(Study(tmp_path, ledger).lines(path))
    assert time.monotonic() - began < 5
    (failure,) = ledger["json.strict"].failures
    assert "more bytes" in str(failure)


def test_a_comparison_of_a_bomb_ends_in_one_line_and_in_little_memory(
    tmp_path: Path, bomb: bytes
) -> None:
    (tmp_path / "a.jsonl").write_bytes(ROW)
    sealed_path(tmp_path / "b.jsonl").write_bytes(frame(ROW) + bomb * 500)
    done = subprocess.run(
        [*AHALAB, "compare", tmp_path / "a.jsonl", tmp_path / "b.jsonl.zst"],
        capture_output=True, text=True, check=False, timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30)),
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert "expected nothing after its frame, found more bytes. Restore the file." in done.stderr
    assert done.stderr.count("\n") == 1
