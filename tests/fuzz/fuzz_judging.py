"""Runs one input against a target and says whether it is a finding."""

from __future__ import annotations

import codecs
import os
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from fuzz_targets import Target

from ahalab.cli.output import LONGEST_ERROR, one_line
from ahalab.errors import AhaLabError
from ahalab.visible import plain

CPU_SECONDS, WALL_SECONDS = 5.0, 60.0  # of one input, of a few kilobytes
# What no reader may do: start a program, a connection or code, or write outside its folder.
FORBIDDEN = ("os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen", "socket.",
             "pickle.find_class", "ctypes.dlopen", "urllib.Request", "exec", "import")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Finding:
    """An input that did what none may."""

    target: str
    where: str  # the kind of error, and the last place in our code: one of a kind is kept
    told: str
    payload: bytes


class TookTooLongError(Exception):
    """The input's time is over."""


class ForbiddenError(BaseException):
    """The input had something run; no reader may catch it."""


class Judge:
    """Runs inputs under a clock and under watch; made once in a process, in its main thread."""

    def __init__(self) -> None:
        self._watching: str | None = None  # the folder that may be written to
        self.executions = 0
        sys.addaudithook(self._audit)  # stays until the process ends
        for encoding in ("unicode_escape", "utf_8_sig"):
            codecs.lookup(encoding)  # imports a module of the standard library
        signal.signal(signal.SIGPROF, _over)
        signal.signal(signal.SIGALRM, _over)

    def warm(self, target: Target, corpus: list[bytes]) -> None:
        """Run sound inputs unwatched: modules are imported at their first use."""
        with tempfile.TemporaryDirectory() as folder:
            for payload in corpus:
                try:
                    target.run(payload, Path(folder))
                except Exception:  # noqa: BLE001, S112 - judged when its turn comes
                    continue

    def judge(self, target: Target, payload: bytes) -> Finding | None:
        """Run one input; None when it ended, or was refused in one line."""
        self.executions += 1
        with tempfile.TemporaryDirectory(dir=_MEMORY) as folder:
            try:
                with self._watched(folder), _clock():
                    target.run(payload, Path(folder))
            except AhaLabError as error:
                told = one_line(error)  # as the command prints it
                if told.isprintable() and len(told) <= LONGEST_ERROR + 10:
                    return None
                return Finding(target.name, f"told {type(error).__name__}", told[:200], payload)
            except (Exception, ForbiddenError) as error:  # noqa: BLE001 - that is what is looked for
                return Finding(target.name, _where(error), plain(str(error))[:200], payload)
        return None

    @contextmanager
    def _watched(self, folder: str) -> Iterator[None]:
        self._watching = folder
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                yield
        finally:
            self._watching = None

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._watching is None:
            return
        if event == "subprocess.Popen" and _ours(*arguments[:2]):
            return
        if event.startswith(FORBIDDEN) or (event == "open" and self._writes_elsewhere(*arguments)):
            self._watching = None
            raise ForbiddenError(f"{event} {arguments!r:.100}")

    def _writes_elsewhere(self, path: object, mode: object, flags: int) -> bool:
        writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        return bool(writes) and not str(path).startswith(str(self._watching))


def _ours(executable: object, arguments: object) -> bool:
    """Say whether a process is one of our own, which is there to be killed."""
    words = [str(word) for word in arguments] if isinstance(arguments, list) else []
    return words[:3] == [sys.executable, "-P", "-m"] and words[3].startswith("ahalab.")


_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - ten times as fast


@contextmanager
def _clock() -> Iterator[None]:
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
    signal.setitimer(signal.ITIMER_REAL, WALL_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)


def _over(number: int, frame: FrameType | None) -> None:
    raise TookTooLongError(f"{CPU_SECONDS} s of CPU, or {WALL_SECONDS} s")


def _where(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if "/ahalab/" in f.filename or "fuzz_targets" in f.filename]
    if not ours:
        return type(error).__name__
    return f"{type(error).__name__} {Path(ours[-1].filename).name}:{ours[-1].name}"
