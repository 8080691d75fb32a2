"""A real terminal for the demo, and a study whose answers try to command it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

from msgspec.structs import replace
from small_study import make_answers, make_protocol, put_answers, write_study

from ahalab.records.base import digest_bytes

HOSTILE = (
    "[/answer] [bold red]\x1b[31m\x1b[2J \x1b]52;c;aGk=\x07 \x9b31m \x90q \u202e\u2066 \u200b"
    "\ufeff \x08\x7f\r \x00 [link=file:///etc]x[/link] #### 7"
)
# None of these may reach a terminal or a pipe; ESC may, since the demo itself draws with it.
ESCAPES = set("\x07\x9b\x90\u202e\u2066\u200b\ufeff\x08\x7f\x00")
CONTROL = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|[=>])")  # what the demo draws with


def write_hostile(root: Path) -> Path:
    """Write a study of one question, to which the adapter gave a hostile answer."""
    plan, paths = write_study(root, "C", {("random", 0): "C"})
    protocol = make_protocol(plan, adapter_digest=digest_bytes(b"random0"))
    rows = [replace(r, completion=HOSTILE) for r in make_answers(paths, "C", protocol)]
    put_answers(plan, paths, paths.answers("random", 0), rows, protocol)
    return root


class Terminal:
    """The demo on a terminal of a size, driven by keys."""

    def __init__(
        self,
        *options: str,
        columns: int = 80,
        rows: int = 40,
        environment: dict[str, str] | None = None,
    ) -> None:
        self.screen, self._inside = pty.openpty()
        self.resize(columns, rows)
        own = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES", "NO_COLOR")}
        self.before = termios.tcgetattr(self._inside)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ahalab", "demo", *options],
            stdin=self._inside, stdout=self._inside, stderr=self._inside, start_new_session=True,
            env={**own, "TERM": "xterm-256color", **(environment or {})},
            preexec_fn=self._control,
        )  # fmt: skip
        self.raw = ""

    def _control(self) -> None:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that Ctrl-C reaches the demo, and it alone

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._inside, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def until(self, text: str) -> str:
        """Return what is shown until a text appears, without what the demo draws with."""
        shown, end = b"", time.monotonic() + 20
        while text not in (plain := CONTROL.sub("", shown.decode(errors="replace"))):
            ready, _, _ = select.select([self.screen], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"{text!r} did not appear in {plain!r}"
            shown += os.read(self.screen, 65536)
        self.raw = shown.decode(errors="replace")
        return plain

    def press(self, key: str) -> None:
        time.sleep(0.05)
        os.write(self.screen, key.encode())

    def ended(self) -> int:
        """Return the exit code; the terminal must be as it was."""
        code = self.process.wait(20)
        while select.select([self.screen], [], [], 0.1)[0]:
            self.raw += os.read(self.screen, 65536).decode(errors="replace")
        assert termios.tcgetattr(self._inside) == self.before
        os.close(self._inside)
        os.close(self.screen)
        return code
