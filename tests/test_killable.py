"""Workers that may be killed: whatever they do, the caller gets an answer or is told, in time."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ahalab import killable
from ahalab.killable import Worker

SECONDS = 30.0  # a worker that is not stuck answers at once


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Worker]:
    """Return a worker that does what it is told."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
    made = Worker("stubborn_worker")
    yield made
    made.close()


def alive(worker: Worker, echo: object = "hello") -> int:
    reply = worker.ask({"do": "answer", "echo": echo}, SECONDS)
    assert reply["echo"] == echo
    return int(reply["pid"])


def gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


def test_one_process_answers_every_request_whatever_it_prints(worker: Worker) -> None:
    first = alive(worker)
    assert worker.ask({"do": "print"}, SECONDS) == {"pid": first, "echo": None}
    assert alive(worker, "x" * 3_000_000) == first


@pytest.mark.parametrize(
    ("does", "told"),
    [
        ("exit", "that its process ended (exit code 3)"),
        ("die", "that its process ended (SIGKILL)"),
        ("raise", "that its process ended (exit code 1)"),
    ],
)
def test_an_end_is_told_and_the_next_request_gets_another_process(
    worker: Worker, does: str, told: str
) -> None:
    before = alive(worker)
    assert worker.ask({"do": does}, SECONDS) == {"bound": told}
    assert gone(before)
    assert alive(worker) != before


def test_one_that_is_stuck_is_killed_after_its_time(worker: Worker) -> None:
    before, began = alive(worker), time.monotonic()
    assert worker.ask({"do": "hang"}, 0.5) == {"bound": "none after 0.5 s"}
    assert time.monotonic() - began < SECONDS
    assert gone(before)
    assert alive(worker) != before


def test_one_that_closes_its_pipe_and_lives_on_is_not_waited_for(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(killable, "END_SECONDS", 0.2)
    before, began = alive(worker), time.monotonic()
    assert worker.ask({"do": "let go"}, 300.0) == {"bound": "that its process closed its pipe"}
    assert time.monotonic() - began < SECONDS
    assert gone(before)
    assert alive(worker) != before


def test_threads_get_each_their_own_answer(worker: Worker) -> None:
    found: dict[int, int] = {}
    threads = [
        threading.Thread(target=lambda n=n: found.update({n: alive(worker, n)})) for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert sorted(found) == list(range(8))
    assert len(set(found.values())) == 1


def test_a_forked_child_has_a_worker_of_its_own_and_leaves_this_one_alone(worker: Worker) -> None:
    before = alive(worker)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if alive(worker) != before else 2
            worker.close()
        finally:  # nothing may reach pytest's copy here
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert alive(worker) == before


def test_a_module_that_does_not_start_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(killable, "START_SECONDS", SECONDS)
    with pytest.raises(RuntimeError, match="no_such_module did not start"):
        Worker("no_such_module").ask({}, SECONDS)
