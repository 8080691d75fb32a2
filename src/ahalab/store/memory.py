"""How much memory a process may still take on this machine, as the kernel tells it."""

from __future__ import annotations

import os
from pathlib import Path

MEMINFO = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")  # of a container: the folder it sees is its own
# (limit, in use, key of what the kernel would give back) of cgroups version 2 and 1
CGROUP_FILES = (
    ("memory.max", "memory.current", "inactive_file"),
    (
        "memory/memory.limit_in_bytes",
        "memory/memory.usage_in_bytes",
        "total_inactive_file",
    ),
)


def available_bytes(meminfo: Path = MEMINFO, cgroup: Path = CGROUP) -> int | None:
    """Return the memory that can be taken without swapping; None where nothing tells.

    The least of what the machine has left and of what the container may still take.
    """
    found = [n for n in (_machine(meminfo), _container(cgroup)) if n is not None]
    return min(found, default=None)


def resident_bytes() -> int:
    """Return what this process holds in memory; 0 where nothing tells."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def _machine(meminfo: Path) -> int | None:
    kilobytes = _value(meminfo, "MemAvailable:")
    return None if kilobytes is None else kilobytes * 1024


def _container(cgroup: Path) -> int | None:
    for limit_name, used_name, free_key in CGROUP_FILES:
        try:
            limit = int((cgroup / limit_name).read_text())
            used = int((cgroup / used_name).read_text())
        except (OSError, ValueError):  # "max": no limit
            continue
        cache = _value((cgroup / used_name).with_name("memory.stat"), free_key) or 0
        return max(0, limit - max(0, used - cache))
    return None


def _value(path: Path, key: str) -> int | None:
    """Return the number behind a key, in a file of one `key number` a line."""
    try:
        for line in path.read_text().splitlines():
            words = line.split()
            if words and words[0] == key:
                return int(words[1])
    except (OSError, ValueError, IndexError):
        return None
    return None
