"""Damaged disks: bytes lost and sectors trashed anywhere are refused by name or made good again."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import ahalab.store.rows as rows_module
from ahalab.errors import InputError, PlanError, RecordError
from ahalab.records.base import encode
from ahalab.records.step import Timing
from ahalab.store.reading import journal_path, read_rows, sealed_path
from ahalab.store.rows import RowFile, RowWriter, finished

SECTOR = 512
BATCHES = 14
pytestmark = pytest.mark.usefixtures("no_fsync")


def batch_of(number: int) -> list[Timing]:
    """Return 1 to 3 rows of about 150 bytes."""
    text = hashlib.sha256(str(number).encode()).hexdigest()
    return [
        Timing(step=number, seconds=number + i / 8, utc=f"{text} {i}")
        for i in range(number % 3 + 1)
    ]


WHOLE = b"".join(encode(row) + b"\n" for n in range(BATCHES) for row in batch_of(n))


def write(file: RowFile, *, seal: bool) -> None:
    """Write what is missing of the batches, as a resumed stage does."""
    with RowWriter[Timing](file) as writer:
        for number in range(len(writer.state.batches), BATCHES):
            writer.append(batch_of(number))
        if seal:
            writer.seal()


def read(file: RowFile) -> list[Timing]:
    return [row for _, row in read_rows(file.path, Timing)]


@pytest.fixture(params=[False, True], ids=["open", "sealed"])
def damaged(request: pytest.FixtureRequest, row_file: RowFile, tmp_path: Path) -> Damage:
    write(row_file, seal=request.param)
    assert row_file.path.read_bytes() == WHOLE
    journal = journal_path(row_file.path).read_bytes()
    copy = replace(row_file, path=tmp_path / "copy" / "timings.jsonl", broken=tmp_path / "tails")
    return Damage(copy, journal, request.param)


class Damage:
    """Puts a row file and its journal in place, damaged, and sees what becomes of it."""

    def __init__(self, file: RowFile, journal: bytes, sealed: bool) -> None:
        self.file, self.journal, self.sealed = file, journal, sealed

    def put(self, rows: bytes, journal: bytes) -> None:
        self.file.path.parent.mkdir(exist_ok=True)
        self.file.path.write_bytes(rows)
        journal_path(self.file.path).write_bytes(journal)
        for tail in self.file.broken.glob("*"):
            tail.unlink()

    def outcome(self, rows: bytes, journal: bytes) -> str:
        """Return `read` or `resumed` where every byte is right in the end, else the refusal."""
        self.put(rows, journal)
        try:
            found = read(self.file)
            whole = finished(self.file)
        except (RecordError, PlanError) as error:
            whole, found = False, None
            refusal = _one_line(error)
        if whole:  # then nothing is written any more: what was read must be right
            assert found == [row for n in range(BATCHES) for row in batch_of(n)]
            return "read"
        try:
            write(self.file, seal=self.sealed)
        except (RecordError, PlanError) as error:
            refusal = _one_line(error)
        except InputError as error:  # sealed, so only reading tells
            if "expected an open row file, found a sealed one" not in _one_line(error):
                raise
        else:
            assert self.file.path.read_bytes() == WHOLE
            assert read(self.file) == [row for n in range(BATCHES) for row in batch_of(n)]
            return "resumed"
        return refusal


def _one_line(error: Exception) -> str:
    assert "\n" not in str(error)
    return str(error)


def test_rows_cut_short_at_every_byte_of_the_last_two_batches_are_refused_by_name(
    damaged: Damage,
) -> None:
    start = len(WHOLE) - sum(len(encode(r)) + 1 for n in (-2, -1) for r in batch_of(BATCHES + n))
    for size in range(start, len(WHOLE)):
        told = damaged.outcome(WHOLE[:size], damaged.journal)
        assert told.startswith(str(damaged.file.path)), (size, told)
        assert damaged.file.path.read_bytes() == WHOLE[:size]  # nothing was made up, nor lost


def test_the_journal_cut_short_at_every_byte_of_its_last_two_lines_resumes_to_the_same_bytes(
    damaged: Damage,
) -> None:
    lines = damaged.journal.split(b"\n")[:-1]
    for size in range(len(damaged.journal) - len(lines[-1]) - len(lines[-2]) - 2,
                      len(damaged.journal)):  # fmt: skip
        assert damaged.outcome(WHOLE, damaged.journal[:size]) == "resumed", size


TRASH: dict[str, Callable[[bytes, int], bytes]] = {
    "zeros": lambda payload, at: bytes(len(payload[at : at + SECTOR])),
    "noise": lambda payload, at: random.Random(at).randbytes(len(payload[at : at + SECTOR])),  # noqa: S311
    "another sector of the file": lambda payload, at: (payload[at + 700 :] + payload)[
        : len(payload[at : at + SECTOR])
    ],
    "the letters a": lambda payload, at: b"a" * len(payload[at : at + SECTOR]),
    "newlines": lambda payload, at: b"\n" * len(payload[at : at + SECTOR]),
}


def trashed(payload: bytes, at: int, kind: str) -> bytes:
    return payload[:at] + TRASH[kind](payload, at) + payload[at + SECTOR :]


@pytest.mark.parametrize("kind", TRASH)
def test_a_trashed_sector_of_the_rows_is_refused_with_file_and_line(
    damaged: Damage, kind: str
) -> None:
    places = [*range(0, len(WHOLE), SECTOR), 100, 1111, len(WHOLE) - SECTOR]
    for at in places:
        payload = trashed(WHOLE, at, kind)
        assert payload != WHOLE
        told = damaged.outcome(payload, damaged.journal)
        assert told.startswith(f"{damaged.file.path}:"), (at, told)
        line = int(told.removeprefix(f"{damaged.file.path}:").partition(":")[0])
        assert line <= payload[: at + SECTOR].count(b"\n") + 1
        assert damaged.file.path.read_bytes() == payload


@pytest.mark.parametrize("kind", TRASH)
def test_a_trashed_sector_of_the_journal_is_refused_or_costs_nothing_but_work(
    damaged: Damage, kind: str
) -> None:
    outcomes = set()
    for at in (*range(0, len(damaged.journal), SECTOR), len(damaged.journal) - SECTOR):
        payload = trashed(damaged.journal, at, kind)
        told = damaged.outcome(WHOLE, payload)
        named = (str(damaged.file.path), str(journal_path(damaged.file.path)))
        assert told == "resumed" or told.startswith(named), (at, told)
        outcomes.add(told == "resumed")
    assert False in outcomes


def test_a_trashed_sector_of_compressed_rows_is_refused(
    row_file: RowFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows_module, "COMPRESS_FROM_BYTES", 1)
    write(row_file, seal=True)
    packed = sealed_path(row_file.path)
    whole = packed.read_bytes()
    assert not row_file.path.exists()
    for kind in TRASH:
        for at in range(0, len(whole), SECTOR):
            packed.write_bytes(trashed(whole, at, kind))
            with pytest.raises(RecordError, match=rf"^{packed}"):
                read(row_file)


def test_a_letter_changed_in_place_is_refused_wherever_rows_are_read(damaged: Damage) -> None:
    payload = WHOLE.replace(b'"utc":"', b'"utc":"x', 1).replace(b" 0", b"0", 1)
    assert len(payload) == len(WHOLE)  # every line is still a sound row
    damaged.put(payload, damaged.journal)
    with pytest.raises(RecordError, match=r"jsonl:1: expected the 1 rows of batch 0 as committed"):
        read(damaged.file)


def test_rows_after_the_seal_are_refused_when_they_are_read(row_file: RowFile) -> None:
    write(row_file, seal=True)
    row_file.path.write_bytes(WHOLE + encode(batch_of(0)[0]) + b"\n")
    line = WHOLE.count(b"\n") + 1
    with pytest.raises(RecordError, match=rf"jsonl:{line}: expected nothing after the seal"):
        read(row_file)


def test_rows_without_a_journal_are_read_as_they_are(row_file: RowFile) -> None:
    write(row_file, seal=True)
    journal_path(row_file.path).unlink()
    assert len(read(row_file)) == WHOLE.count(b"\n")
