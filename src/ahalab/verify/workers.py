"""Checks runs and answer sets side by side, each in a process that holds no other.

What is found is the same, in the same order, as in one process: faults that shares have in common
are told before they are handed out, and tallies are taken in in the order of the plan.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from ahalab.errors import AhaLabError
from ahalab.plan.cells import Cell
from ahalab.verify.answers import AnswerSet, check_set
from ahalab.verify.checks import Ledger, Tally
from ahalab.verify.reading import JudgedElsewhere, Known, Study
from ahalab.verify.runs import Trained, check_run
from ahalab.verify.shares import Share

LARGE = 60_000  # rows; below, starting processes takes longer than they save
Progress = Callable[[int, int], None]  # rows done, rows in all
_Told = tuple[Trained | AnswerSet | None, list[Tally], JudgedElsewhere]


@dataclass(frozen=True, slots=True)
class Effort:
    """How much a verification may take up, and who is told how far it is."""

    jobs: int = 1  # processes; a study of fewer rows than LARGE is checked in one
    on_progress: Progress | None = None  # as each run or answer set ends


ALONE = Effort()


class Workers:
    """Carries out shares: here, or in `jobs` processes when the study is large."""

    def __init__(self, study: Study, shares: Sequence[Share], effort: Effort) -> None:
        self._study = study
        self._on_progress = effort.on_progress
        self._total = sum(share.rows for share in shares)
        self._done = 0
        self._pool: ProcessPoolExecutor | None = None
        self._futures: dict[tuple[str, Cell, str], Future[_Told]] = {}
        # A user's own reward is loaded once, here; it need not bear being loaded elsewhere.
        if effort.jobs > 1 and self._total >= LARGE and not study.trust_rewards:
            self._pool = ProcessPoolExecutor(
                effort.jobs,
                mp_context=multiprocessing.get_context("spawn"),  # BLAS has threads, so no fork
                initializer=_begin,
                initargs=(study.root, study.known),
            )
            largest = sorted(shares, key=lambda share: -share.rows)
            self._futures = {s.key: self._pool.submit(_carry_out, s) for s in largest}

    def trained(self, shares: Sequence[Share]) -> dict[Cell, Trained]:
        """Check runs; return what comparing them needs, by cell."""
        found = [(share.cell, self._take(share)) for share in shares]
        return {cell: one for cell, one in found if isinstance(one, Trained)}

    def answers(self, shares: Sequence[Share]) -> dict[tuple[Cell, str], AnswerSet]:
        """Check answer sets; return them by cell, and `""` or `replay/`."""
        found = [(share.cell, share.under, self._take(share)) for share in shares]
        return {(c, under): one for c, under, one in found if isinstance(one, AnswerSet)}

    def _take(self, share: Share) -> Trained | AnswerSet | None:
        if share.key in self._futures:
            try:
                found, tallies, judged = self._futures.pop(share.key).result()
            except BrokenProcessPool as error:
                raise AhaLabError(
                    f"{self._study.root}: expected the processes that check it to live, found one "
                    "ended from outside (memory?). Run it again with --jobs 1."
                ) from error
            self._study.ledger.absorb(tallies)
            self._study.judge_elsewhere(judged)
        else:
            found = _examine(self._study, share)
        self._done += share.rows
        if self._on_progress is not None:
            self._on_progress(self._done, self._total)
        return found

    def __enter__(self) -> Self:
        """Start nothing that was not started."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the processes; after an error, what they have begun is not waited for."""
        if self._pool is not None:
            if error is not None:
                for process in list(self._pool._processes.values()):
                    process.terminate()
            self._pool.shutdown(cancel_futures=True)


def _examine(study: Study, share: Share) -> Trained | AnswerSet | None:
    return check_run(study, share) if share.kind == "run" else check_set(study, share)


_BEGUN: list[Study] = []  # of a worker process: the study, as it was read when this was started


def _begin(root: Path, known: Known) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer
    _BEGUN.append(Study(root, Ledger(None), known=known))


def _carry_out(share: Share) -> _Told:
    study = _BEGUN[0]
    study.ledger, study.judged_elsewhere = Ledger(None), {}
    return _examine(study, share), study.ledger.found(), study.judged_elsewhere
