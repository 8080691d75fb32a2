"""The command `ahalab`, one file per group: parse, call one stage, say where the result lies."""

from __future__ import annotations

import contextlib
import errno
import sys

from ahalab.errors import AhaLabError, InputError

# What a machine refuses, wherever a stage meets it; every other OSError is a bug.
REFUSALS = {
    errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE,
    errno.ENFILE, errno.ENOTDIR, errno.ENAMETOOLONG,
}  # fmt: skip


def main() -> int:
    """Run the command line and return its exit code.

    Expected errors, and what the machine refuses, become one line on stderr; an interrupt says how
    to resume; anything else is a bug and keeps its traceback.
    """
    from ahalab.cli.app import run

    try:
        return run()
    except AhaLabError as error:
        return _tell(error)
    except KeyboardInterrupt:
        sys.stderr.write(
            "ahalab: interrupted; what was committed is kept. The same command resumes.\n"
        )
        return 130
    except BrokenPipeError:
        sys.stderr.close()  # the reader of a pipe went away: nothing to tell anyone
        return 0
    except OSError as error:
        if error.errno not in REFUSALS:
            raise
        return _tell(
            InputError(
                f"{error.filename or 'this machine'}: expected to read or write it, found: "
                f"{error.strerror}. Mend the folder, the disk or the permissions, then run the "
                "same command to resume."
            )
        )


def _tell(error: AhaLabError) -> int:
    """Print an expected error on one line and return its exit code."""
    from ahalab.cli.output import harmless

    told = harmless(str(error)).replace("\n", " ")  # a message may quote what a model wrote
    try:
        sys.stderr.write(f"ahalab: {told}\n")
        sys.stderr.flush()
    except OSError:  # a log on a full disk: the exit code still says it
        with contextlib.suppress(OSError):
            sys.stderr.close()
    return error.exit_code
