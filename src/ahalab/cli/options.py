"""Arguments and options that several commands share."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Format(StrEnum):
    """How a result is printed."""

    text = "text"
    json = "json"


StudyArgument = Annotated[
    Path, typer.Argument(help="A study plan (YAML), or a results folder.", metavar="STUDY")
]
OutOption = Annotated[
    Path, typer.Option("--out", envvar="AHALAB_OUT", help="Folder of results, for a plan file.")
]
FormatOption = Annotated[Format, typer.Option("--format", help="Print as text or JSON.")]
QuietOption = Annotated[bool, typer.Option("--quiet", hidden=True, help="Show no progress.")]
JobsOption = Annotated[
    int | None,
    typer.Option(
        "--jobs", envvar="AHALAB_JOBS", min=1, help="Arms and seeds side by side (default: cores)."
    ),
]
ForceOption = Annotated[
    bool, typer.Option("--force", help="Train although pre-flight refuses (memory, truncation).")
]
RESULTS = Path("results")


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def require_level(alpha: float) -> float:
    """Return the two-sided level of a test that `--alpha` gives.

    Raises:
        InputError: At such a level nothing can be computed, or nothing is claimed.
    """
    from ahalab.errors import InputError
    from ahalab.records.plan import LEAST_ALPHA, MOST_ALPHA

    if not LEAST_ALPHA <= alpha <= MOST_ALPHA:
        raise InputError(
            f"--alpha: expected a level from {LEAST_ALPHA:g} to {MOST_ALPHA:g}, found {alpha:g}."
        )
    return alpha
