"""A process that may be killed at any time, and both ends of its pipes.

What others wrote can keep an interpreter busy within one instruction (`9**9**9`), take all memory,
or end it. So it is worked on in a fresh interpreter that is asked in length-prefixed JSON and is
killed after its time, from any thread: no signal is used, and nothing of the caller is forked.
`Killable` is the caller's end, `Worker` keeps one at hand; a worker's module ends in `serve`.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import os
import resource
import select
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

HEADER = struct.Struct(">I")
CPU_GRACE_SECONDS = 3  # what a worker whose parent was killed may still compute
START_SECONDS = 120.0  # an interpreter and its imports; no part of a request's time
END_SECONDS = 5.0  # from the close of its pipe to the end of the process
_READ_BYTES = 1 << 20
# Threads and memory pools reserve address space, which is bounded.
_SINGLE = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}
Message = dict[str, Any]


class Killable:
    """One running worker and its two pipes."""

    def __init__(self, module: str, environment: Mapping[str, str] | None = None) -> None:
        """Start a worker.

        Args:
            module: Its module, which calls `serve`.
            environment: Variables that it has besides those of this process.
        """
        self.process = subprocess.Popen(  # noqa: S603 - our own module, no shell
            # -P: nothing is imported from the working directory
            [sys.executable, "-P", "-m", module, str(os.getpid())],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0,
            env={**os.environ, **(environment or {})},
        )  # fmt: skip

    def ask(self, message: Message) -> None:
        """Send a request; a worker reads the whole of it before it does anything.

        Raises:
            OSError: The worker has ended.
        """
        _write(_pipe(self.process.stdin).fileno(), message)

    def answer(self, seconds: float) -> Message | None:
        """Return the answer; None when the time is over or the process has ended."""
        until = time.monotonic() + seconds
        head = self._read(HEADER.size, until)
        body = None if head is None else self._read(HEADER.unpack(head)[0], until)
        found: Message | None = None if body is None else json.loads(body)
        return found

    def _read(self, size: int, until: float) -> bytes | None:
        descriptor = _pipe(self.process.stdout).fileno()
        ready = select.poll()  # unlike select(), good for any descriptor number
        ready.register(descriptor, select.POLLIN)
        found = bytearray()
        while len(found) < size:
            left = until - time.monotonic()
            if left <= 0 or not ready.poll(left * 1_000):
                return None
            piece = os.read(descriptor, min(_READ_BYTES, size - len(found)))
            if not piece:
                return None
            found += piece
        return bytes(found)

    def end(self) -> None:
        """Kill the process."""
        self.process.kill()
        self.process.wait()
        self._close()

    def leave_to_parent(self) -> None:
        """Let go of a worker that this forked child inherited: it is not this process's to kill."""
        self._close()
        self.process.returncode = 0  # no child of ours: nothing to wait for

    def _close(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


class Worker:
    """Owns one worker: started at the first request, and again after a kill, an end or a fork.

    Safe under threads. What it is asked to work on may end it or take its bounds: that is told, and
    is no error of this class.
    """

    def __init__(self, module: str) -> None:
        """Prepare a worker, whose module calls `serve`; nothing is started."""
        self._module = module
        self.child: Killable | None = None
        self._lock = threading.Lock()
        os.register_at_fork(after_in_child=self._forget)
        atexit.register(self.close)

    def ask(self, message: Message, seconds: float) -> Message:
        """Return the answer to a request, or `{"bound": what was found in place of one}`.

        Args:
            message: The request; the worker finds `seconds` in it too.
            seconds: Time before it is killed; its start is not counted.
        """
        with self._lock:
            child = self._started()
            until = time.monotonic() + seconds
            try:
                child.ask({**message, "seconds": seconds})
                reply = child.answer(seconds)
            except OSError:  # it ended between two requests, or while it read this one
                reply = None
            except BaseException:  # an interrupt: its answer would be taken for the next one's
                self.close()
                raise
            if reply is None:
                late = time.monotonic() >= until
                reply = {"bound": f"none after {seconds:g} s" if late else _ending(child)}
            if "bound" in reply:
                self.close()
            return reply

    def _started(self) -> Killable:
        if self.child is not None and self.child.process.poll() is not None:
            self.close()
        if self.child is None:
            self.child = Killable(self._module, _SINGLE)
            try:
                said = self.child.answer(START_SECONDS)
            except BaseException:
                self.close()
                raise
            if said is None:
                self.close()
                raise RuntimeError(f"{self._module} did not start.")
        return self.child

    def close(self) -> None:
        """End the process; another is started when it is needed."""
        if self.child is not None:
            self.child.end()
            self.child = None

    def _forget(self) -> None:
        """Leave the process to the parent; this is a forked child, with one thread so far."""
        self._lock = threading.Lock()  # another thread of the parent may have held it
        if self.child is not None:
            self.child.leave_to_parent()
            self.child = None


def _ending(child: Killable) -> str:
    try:  # it closed its pipe, which is the first thing to go
        code = child.process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        return "that its process closed its pipe"
    told = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return f"that its process ended ({told})"


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    """Return one of a worker's pipes: both were asked for when it was started."""
    if pipe is None:
        raise RuntimeError("a worker process has no pipe: it was started without one.")
    return pipe


def _write(descriptor: int, message: Message) -> None:
    body = json.dumps(message).encode("ascii")
    left = memoryview(HEADER.pack(len(body)) + body)
    while left:
        left = left[os.write(descriptor, left) :]


def limit(kind: int, amount: int) -> None:
    """Lower a limit of this process; a system without it, or with a lower one, keeps its own."""
    _, hard = resource.getrlimit(kind)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(kind, (amount, hard))


def limit_memory(more: int) -> None:
    """Let this process take so many bytes of address space beside what it has."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:  # not Linux: the limit is then a little lower than asked for
        pages = 0
    limit(resource.RLIMIT_AS, pages * resource.getpagesize() + more)


def limit_cpu(seconds: float) -> None:
    """Let this process compute for so long from now on, in case nobody is left to kill it."""
    spent = resource.getrusage(resource.RUSAGE_SELF)
    limit(resource.RLIMIT_CPU, int(spent.ru_utime + spent.ru_stime + seconds) + CPU_GRACE_SECONDS)


def serve(first: Callable[[], Message], reply: Callable[[Message], Message]) -> None:
    """Be a worker: tell what `first` returns, then answer requests until standard input ends.

    Args:
        first: Gets ready: imports, limits.
        reply: Answers a request.
    """
    out = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints is no answer
    logging.disable(logging.CRITICAL)
    threading.Thread(target=_end_with, args=(int(sys.argv[1]),), daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer
    limit(resource.RLIMIT_CORE, 0)
    _write(out, first())
    source = sys.stdin.buffer
    while header := source.read(HEADER.size):
        _write(out, reply(json.loads(source.read(HEADER.unpack(header)[0]))))


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(0)
