"""A worker of `ahalab.killable` that does what it is told: answers, ends, hangs, or lets go."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any

from ahalab.killable import serve


def first() -> dict[str, Any]:
    """Be ready."""
    return {"ready": True}


def reply(message: dict[str, Any]) -> dict[str, Any]:
    """Do what the request says."""
    match message["do"]:
        case "answer":
            return {"pid": os.getpid(), "echo": message["echo"]}
        case "print":
            sys.stdout.write("what a library says")
            sys.stdout.flush()
            os.write(sys.stdout.fileno(), b"and writes")
            return {"pid": os.getpid(), "echo": None}
        case "exit":
            os._exit(3)
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "raise":
            raise RuntimeError("nobody reads this")
        case "let go":
            os.closerange(3, 1_000)
    time.sleep(600)
    return {}


if __name__ == "__main__":
    serve(first, reply)
