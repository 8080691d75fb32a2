"""How far a verification is: one line on stderr that makes room for the checks on stdout."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

QUIET_SECONDS = 2.0  # a verification that is done by then says nothing
LINE_SECONDS = 15.0  # between two lines where stderr is no terminal
ERASE = "\r\x1b[2K"


class VerificationProgress:
    """Rows done, rate and time left; on a terminal one line that is written over and erased."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._told = self._began + QUIET_SECONDS - LINE_SECONDS
        self._terminal = sys.stderr.isatty()
        self._shown = False

    def update(self, done: int, total: int) -> None:
        """Say how far it is; called as each run or answer set ends."""
        now = time.monotonic()
        if now - self._began < QUIET_SECONDS:
            return
        if not self._terminal and now - self._told < LINE_SECONDS:
            return
        rate = done / (now - self._began)
        left = f", {(total - done) / rate:.0f} s left" if 0 < done < total else ""
        line = f"checking: {done:,} of {total:,} rows, {rate:,.0f}/s{left}"
        sys.stderr.write(f"{ERASE}{line}" if self._terminal else f"{line}\n")
        sys.stderr.flush()
        self._shown, self._told = self._terminal, now

    def clear(self) -> None:
        """Erase the line, before something else is printed."""
        if self._shown:
            sys.stderr.write(ERASE)
            sys.stderr.flush()
            self._shown = False

    def __enter__(self) -> Self:
        """Show nothing yet."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave a clean screen, also after Ctrl-C."""
        self.clear()
