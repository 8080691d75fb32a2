"""Whether something still works on a file: its lock's owner, and when it last committed."""

from __future__ import annotations

import json
import os
import platform
import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from ahalab.plain_files import read_plain
from ahalab.visible import plain

Status = Literal["waiting", "running", "stale", "stopped", "done"]
STALE_SECONDS = 120.0  # without a commit, at the least, before a running process is doubted
FRESH_SECONDS = 20.0  # since a commit, within which a run goes on whoever writes it
CLOCK_SLACK = 2.0  # seconds; a lock's time is whole seconds, a process's is of the boot clock
STOPPED = "no process writes here; the same command resumes"
STALE_STEPS = 10  # or as many times as long as a step takes, when that is longer


@dataclass(frozen=True, slots=True)
class Owner:
    """The process that a lock names."""

    number: int
    host: str  # made visible
    lives: bool | None  # None: on another machine, so nothing here can tell


def status_of(
    complete: bool, lock: Path, idle: float | None, seconds: float | None
) -> tuple[Status, str]:
    """Say whether something works on a file, from its lock's owner and its last commit.

    Args:
        complete: Whether the file is whole.
        lock: The lock of its writer.
        idle: Seconds since the last commit; None: there was none.
        seconds: What a step takes; None: not known.

    Returns:
        The status, and what it rests on.
    """
    if complete:
        return "done", ""
    owner = _owner(lock)
    if owner is None and idle is not None and idle < FRESH_SECONDS:
        return "running", f"committed {idle:.0f} s ago"
    if owner is None or owner.lives is False:
        return ("waiting", "") if idle is None else ("stopped", STOPPED)
    who = f"process {owner.number}" + (f" of {owner.host}" if owner.lives is None else "")
    if idle is not None and idle > max(STALE_SECONDS, STALE_STEPS * (seconds or 0.0)):
        known = "is there, but" if owner.lives else "can't be seen from here, and"
        return "stale", f"{who} {known} nothing was committed for {idle:.0f} s"
    return "running", who


def _owner(lock: Path) -> Owner | None:
    """Return the process that a lock file names; None where it names none.

    The lock itself is not tried: to take it, even for a moment, could refuse a writer.
    """
    try:
        told = json.loads(read_plain(lock))
        number, since = int(told["pid"]), datetime.fromisoformat(told["since"]).timestamp()
        host = str(told.get("host", platform.node()))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    if number <= 0:  # `kill` would mean a group of processes
        return None
    return Owner(number, plain(host), _lives(number, since) if host == platform.node() else None)


def _lives(number: int, since: float) -> bool:
    """Say whether a process of this machine lives, and is not a later one of the same number."""
    try:
        os.kill(number, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    started = _started(number)
    return started is None or started <= since + CLOCK_SLACK


def _started(number: int) -> float | None:
    """Return when a process began, in seconds since the epoch; None where no /proc tells."""
    try:
        after_name = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
        boot = re.search(r"^btime (\d+)$", Path("/proc/stat").read_text(), re.MULTILINE)
        ticks = int(after_name[19])  # field 22 of proc(5), in clock ticks since the boot
    except (OSError, ValueError, IndexError):
        return None
    return int(boot[1]) + ticks / os.sysconf("SC_CLK_TCK") if boot else None


def idle_seconds(path: Path, now: float) -> float | None:
    """Return the seconds since a journal was written to; None where there is none."""
    try:
        return max(0.0, now - path.stat().st_mtime)
    except OSError:
        return None
