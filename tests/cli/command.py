"""Calls the command, in this process or in one of its own."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

AHALAB = [sys.executable, "-m", "ahalab"]
TRAIN_EXTRA = ("torch", "transformers", "trl", "peft", "accelerate", "datasets", "safetensors")


@dataclass(frozen=True)
class Said:
    """What a command ended with."""

    code: int
    out: str
    err: str

    @property
    def line(self) -> str:
        """The one line on stderr."""
        assert self.err.count("\n") == 1, self.err
        assert "Traceback" not in self.err
        return self.err.rstrip("\n")


class Call(Protocol):
    """Calls `ahalab` in this process, which spares the start of an interpreter."""

    def __call__(self, *arguments: str | Path) -> Said: ...


def run(*arguments: str | Path, stdin: str = "", cwd: Path | None = None) -> Said:
    """Run `ahalab` in a process of its own."""
    done = subprocess.run(
        [*AHALAB, *map(str, arguments)],
        input=stdin, capture_output=True, text=True, timeout=60, check=False, cwd=cwd,
    )  # fmt: skip
    return Said(done.returncode, done.stdout, done.stderr)


def run_without(hidden: tuple[str, ...], *arguments: str | Path) -> Said:
    """Run `ahalab` in a process to which some packages look as if they were not installed."""
    driver = (
        "import sys, importlib.machinery as machinery\n"
        "find = machinery.PathFinder.find_spec\n"
        "def seen(cls, name, path=None, target=None):\n"
        f"    return None if name.split('.')[0] in {hidden!r} else find(name, path, target)\n"
        "machinery.PathFinder.find_spec = classmethod(seen)\n"
        "from ahalab.cli import main; sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", driver, *map(str, arguments)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    return Said(done.returncode, done.stdout, done.stderr)
