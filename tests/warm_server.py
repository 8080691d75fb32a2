"""Runs `ahalab` command lines in forks of a process that has imported torch and TRL already.

A fork is a process of its own, in a session of its own, so that a SIGKILL is real; only the eight
seconds of imports are saved. Requests and answers are lines of JSON on stdin and stdout.
"""

import importlib
import json
import os
import signal
import sys
import traceback

from ahalab.cli import main

for slow in (
    "trl.GRPOTrainer",
    "datasets",
    "peft",
    "ahalab.cli.app",
    "ahalab.evaluate.backends.transformers",
    "ahalab.train.trainer",
):
    module, _, name = slow.partition(".G")
    importlib.import_module(module)
    if name:  # TRL imports its trainers when they are asked for
        getattr(sys.modules[module], "G" + name)


def command(arguments: list[str], log: str) -> None:
    """Become the command `ahalab ARGUMENTS`, and end with its exit code."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for target, source in ((0, nothing), (1, output), (2, output)):
        os.dup2(source, target)
    sys.argv = ["ahalab", *arguments]
    code = 70
    try:
        code = main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0
    except BaseException:  # noqa: BLE001 - as the interpreter would: traceback, exit code 1
        traceback.print_exc()
        code = 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def answer(value: object) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


answer("ready")
for line in sys.stdin:
    request = json.loads(line)
    if "start" in request:
        child = os.fork()
        if child == 0:
            command(request["start"], request["log"])
        answer(child)
    else:
        flags = 0 if request["block"] else os.WNOHANG
        ended, status = os.waitpid(request["wait"], flags)
        answer(os.waitstatus_to_exitcode(status) if ended else None)
