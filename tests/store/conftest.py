import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ahalab.records.step import Timing
from ahalab.store.rows import RowFile, RowWriter

PLAN = "sha256:" + "a" * 64


@pytest.fixture
def row_file(tmp_path: Path) -> RowFile:
    path = tmp_path / "study" / "timings.jsonl"
    return RowFile(path, "timing/1", PLAN, "arms/random/seed-0", tmp_path / "broken")


@pytest.fixture
def batch() -> Callable[[int], list[Timing]]:
    """Make batch number n: n % 3 + 1 rows, so that batches differ in length."""

    def make(number: int) -> list[Timing]:
        return [
            Timing(step=number, seconds=number + i / 4, utc=f"{number}\u2028{i}")
            for i in range(number % 3 + 1)
        ]

    return make


@pytest.fixture
def write(batch: Callable[[int], list[Timing]]) -> Callable[[RowFile, range], None]:
    """Append the batches of a range, as one process would."""

    def run(file: RowFile, numbers: range) -> None:
        with RowWriter[Timing](file) as writer:
            for number in numbers:
                writer.append(batch(number))

    return run


@pytest.fixture
def no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the flush to the disk, for tests that reopen hundreds of files in one process."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
