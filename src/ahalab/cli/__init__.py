"""The command `ahalab`, one file per group: parse, call one stage, say where the result lies."""

from __future__ import annotations

import sys

from ahalab.errors import AhaLabError


def main() -> int:
    """Run the command line and return its exit code.

    Expected errors become one line on stderr; an interrupt says how to resume; anything else is
    a bug and keeps its traceback.
    """
    from ahalab.cli.app import run

    try:
        return run()
    except AhaLabError as error:
        from ahalab.cli.output import harmless

        told = harmless(str(error)).replace("\n", " ")  # a message may quote what a model wrote
        sys.stderr.write(f"ahalab: {told}\n")
        return error.exit_code
    except KeyboardInterrupt:
        sys.stderr.write(
            "ahalab: interrupted; what was committed is kept. The same command resumes.\n"
        )
        return 130
    except BrokenPipeError:
        sys.stderr.close()  # the reader of a pipe went away: nothing to tell anyone
        return 0
