"""Sharing a study out among processes changes nothing but the time that it takes."""

from __future__ import annotations

from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest

from ahalab.errors import AhaLabError
from ahalab.verify import workers
from ahalab.verify.study import verify_study
from ahalab.verify.workers import Effort
from tampering import edit_row, reseal

RUN = "arms/historical/seed-1"


def test_two_processes_find_what_one_does_in_the_same_order(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for line in range(1, 25):  # more than are listed, over two files
        edit_row(study / f"{RUN}/rollouts.jsonl", line, extracted="77", status="odd")
        edit_row(study / "base/answers.jsonl", line, extracted="78")
    edit_row(study / "arms/random/seed-2/answers.jsonl", 3, prompt_id="nobody's")
    (study / "base/answers.protocol.json").write_bytes(b"{}\n")  # a fault of all answer sets
    reseal(study)
    alone = verify_study(study)
    monkeypatch.setattr(workers, "LARGE", 0)
    told: list[tuple[int, int]] = []
    together = verify_study(study, effort=Effort(2, lambda *rows: told.append(rows)))
    assert together == alone
    assert alone.result == "FAILED"
    done, total = told[-1]
    assert done == total
    assert [rows for rows, _ in told] == sorted(rows for rows, _ in told)


def test_a_process_that_is_killed_ends_in_one_line_with_a_remedy(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Gone:
        """A future whose process was killed."""

        def result(self) -> None:
            raise BrokenProcessPool("killed")

    class Pool:
        """A pool whose processes are all gone."""

        def __init__(self, *_: object, **__: object) -> None:
            self._processes: dict[int, object] = {}

        def submit(self, *_: object) -> Gone:
            return Gone()

        def shutdown(self, **_: object) -> None:
            """Nothing is left to end."""

    monkeypatch.setattr(workers, "LARGE", 0)
    monkeypatch.setattr(workers, "ProcessPoolExecutor", Pool)
    with pytest.raises(AhaLabError, match="Run it again with --jobs 1"):
        verify_study(study, effort=Effort(2))
