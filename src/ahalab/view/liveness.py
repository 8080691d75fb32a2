"""Whether something still works on a file: its lock's owner, and when it last committed."""

from __future__ import annotations

import json
import os
import re
from datetime import datetime
from pathlib import Path
from typing import Literal

Status = Literal["waiting", "running", "stale", "stopped", "done"]
STALE_SECONDS = 120.0  # without a commit, at the least, before a running process is doubted
FRESH_SECONDS = 20.0  # since a commit, within which a run goes on whoever writes it
CLOCK_SLACK = 2.0  # seconds; a lock's time is whole seconds, a process's is of the boot clock
STALE_STEPS = 10  # or as many times as long as a step takes, when that is longer


def status_of(
    complete: bool, lock: Path, idle: float | None, seconds: float | None
) -> tuple[Status, str]:
    """Say whether something works on a file, from its lock's owner and its last commit."""
    if complete:
        return "done", ""
    owner = _owner(lock)
    if owner is None:
        if idle is None:
            return "waiting", ""
        if idle < FRESH_SECONDS:  # its process may be another machine's, or another container's
            return "running", f"committed {idle:.0f} s ago"
        return "stopped", "no process writes here; the same command resumes"
    patience = max(STALE_SECONDS, STALE_STEPS * (seconds or 0.0))
    if idle is not None and idle > patience:
        return "stale", f"process {owner} is there, but nothing was committed for {idle:.0f} s"
    return "running", f"process {owner}"


def _owner(lock: Path) -> int | None:
    """Return the process that a lock file names, when it lives and is not a later one.

    The lock itself is not tried: to take it, even for a moment, could refuse a writer.
    """
    try:
        told = json.loads(lock.read_bytes())
        number, since = int(told["pid"]), datetime.fromisoformat(told["since"]).timestamp()
    except (OSError, ValueError, TypeError, KeyError):
        return None
    if number <= 0:  # `kill` would mean a group of processes
        return None
    try:
        os.kill(number, 0)
    except PermissionError:
        return number
    except (OSError, OverflowError):
        return None
    started = _started(number)
    return number if started is None or started <= since + CLOCK_SLACK else None


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
