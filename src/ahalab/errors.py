"""The one tree of expected errors.

Each message names the place, what was expected, what was found, and the remedy. The command line
prints an expected error on one line without a traceback and exits with the class's `exit_code`;
anything else is a bug and keeps its traceback.
"""

from __future__ import annotations


class AhaLabError(Exception):
    """An expected error: wrong input, or something that is missing."""

    exit_code = 2


class InputError(AhaLabError):
    """A plan, file, row or flag is not what it must be."""


class PlanError(InputError):
    """The study plan is malformed, inconsistent, or not the one a result was made under."""


class RecordError(InputError):
    """A record on disk is malformed; the message starts with `file:line`."""


class ProtocolError(InputError):
    """Two answer sets were not produced under one protocol, so they cannot be compared."""


class RewardError(InputError):
    """A reward component failed or gave a value that is not finite; the row is named."""


class LockedError(InputError):
    """Another process is writing to the same output."""


class IncompleteError(AhaLabError):
    """The study is unfinished; the same command resumes it."""

    exit_code = 4


class MissingError(AhaLabError):
    """Something that is needed is not here: an extra, a model, a tool."""

    exit_code = 5


class CheckFailedError(AhaLabError):
    """A verification did not pass."""

    exit_code = 1


class AlarmError(CheckFailedError):
    """A run was stopped by an alarm that its plan names."""
