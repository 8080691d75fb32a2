"""A worker process for LaTeX equality that is killed after its time, from any thread or process.

It is started at the first question, and again in a forked child. After the first kill a spare one
is kept ready, so that a batch of hostile answers does not wait for every start.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from types import TracebackType
from typing import Self
from weakref import WeakSet

from ahalab.killable import Killable
from ahalab.scoring.deciding import LatexEqual, LatexVerdict
from ahalab.scoring.latex import MAX_LATEX

DEFAULT_SECONDS = 2.0
START_SECONDS = 120.0  # an interpreter and math-verify; no part of an answer's time
_VERDICTS: dict[str, LatexVerdict] = {
    "equal": "equal", "different": "different", "unreadable": "unreadable", "missing": "missing",
}  # fmt: skip


def _worker() -> Killable:
    return Killable("ahalab.scoring.latex_worker")


class LatexPool:
    """Owns a worker process, after a kill a spare one too; safe under threads, and after a fork."""

    def __init__(self, seconds: float = DEFAULT_SECONDS) -> None:
        """Prepare a pool; nothing is started before the first question.

        Args:
            seconds: Time of one question before its worker is killed.
        """
        self._seconds = seconds
        self._worker: Killable | None = None
        self._spare: Killable | None = None
        self._killed = False
        self._missing = False
        self._lock = threading.Lock()
        _POOLS.add(self)

    def __call__(self, stated: str, gold: str) -> LatexVerdict:
        """Compare two LaTeX answers within the pool's time (the seam of `score_answer`)."""
        return self.compare(stated, gold, self._seconds)

    def within(self, seconds: float) -> LatexEqual:
        """Return a decider whose questions share one time, such as those of one row."""
        left = seconds

        def decide(stated: str, gold: str) -> LatexVerdict:
            nonlocal left
            if left <= 0:
                return "timeout"
            spent: list[float] = []
            verdict = self.compare(stated, gold, left, spent)
            left -= sum(spent)
            return verdict

        return decide

    def compare(
        self, stated: str, gold: str, seconds: float, spent: list[float] | None = None
    ) -> LatexVerdict:
        """Compare two LaTeX answers.

        Args:
            stated: The response's answer.
            gold: The gold answer.
            seconds: Time before the worker is killed; its start and waiting for another thread's
                question are not counted.
            spent: Takes the time that the question took, in seconds.

        Returns:
            The verdict; `timeout` also where the worker ended by itself (memory).
        """
        if len(stated) > MAX_LATEX or len(gold) > MAX_LATEX:
            return "different" if len(gold) <= MAX_LATEX else "unreadable"
        with self._lock:
            worker = self._started()
            if worker is None:
                return "missing"
            began = time.monotonic()
            try:
                worker.ask({"stated": stated, "gold": gold, "seconds": seconds})
                found = worker.answer(seconds)
            except OSError:  # it ended between two questions
                found = None
            except BaseException:  # an interrupt: its answer would be taken for the next one's
                self._drop()
                raise
            if spent is not None:
                spent.append(time.monotonic() - began)
            if found is None:
                self._drop()
                self._killed = True
                self._spare = self._spare or _worker()  # gets ready while the caller goes on
                return "timeout"
            return _VERDICTS[found["verdict"]]

    def close(self) -> None:
        """End the processes; the pool may be used again."""
        with self._lock:
            self._drop()
            self._drop_spare()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.close()

    def _forget(self) -> None:
        """Leave the processes to the parent; this is a forked child, with one thread so far."""
        inherited = self._worker, self._spare
        self._worker = self._spare = None
        self._lock = threading.Lock()  # another thread of the parent may have held it
        for worker in inherited:
            if worker is not None:
                worker.leave_to_parent()

    def _started(self) -> Killable | None:
        if self._missing:
            return None
        if self._worker is not None and self._worker.process.poll() is not None:
            self._drop()
        if self._worker is None:
            self._worker = self._next()
            try:
                said = self._worker.answer(START_SECONDS)
            except BaseException:  # an interrupt: a worker that was not heard is not used
                self._drop()
                raise
            if said != {"verdict": "ready"}:
                self._drop()
                self._missing = said == {"verdict": "missing"}
                if not self._missing:
                    raise RuntimeError("the LaTeX worker process did not start.")
                return None
        return self._worker

    def _next(self) -> Killable:
        """Take the spare one and start another, once a kill has shown that more may follow."""
        if self._spare is not None and self._spare.process.poll() is not None:
            self._drop_spare()
        taken = self._spare or _worker()
        self._spare = _worker() if self._killed else None
        return taken

    def _drop(self) -> None:
        if self._worker is not None:
            self._worker.end()
            self._worker = None

    def _drop_spare(self) -> None:
        if self._spare is not None:
            self._spare.end()
            self._spare = None


_POOLS: WeakSet[LatexPool] = WeakSet()
_SHARED: list[LatexPool] = []  # the process's own pool, once something asked for it


def row_decider(task: str) -> LatexEqual | None:
    """Return what decides LaTeX equality for one row, in the default time.

    Every stage of a process shares one worker, which is started when a row first needs it.

    Args:
        task: gsm8k, math or countdown.

    Returns:
        A decider whose questions share the row's time; None for a task that has none to ask.
    """
    if task != "math":
        return None
    if not _SHARED:
        _SHARED.append(LatexPool())
        atexit.register(_SHARED[0].close)
    return _SHARED[0].within(DEFAULT_SECONDS)


def _after_fork() -> None:
    for pool in list(_POOLS):
        pool._forget()


os.register_at_fork(after_in_child=_after_fork)
