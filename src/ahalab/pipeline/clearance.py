"""What comes of pre-flight: whether it is due, what is kept and told of it, and what it refuses."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from ahalab.errors import CheckFailedError, RecordError
from ahalab.pipeline.workers import Job, JobError, run_jobs
from ahalab.plain_files import read_plain
from ahalab.plan.cells import training_cells
from ahalab.records.base import decode_file, digest, encode_pretty
from ahalab.records.plan import Plan
from ahalab.records.preflight import Preflight
from ahalab.store.durable import replace_file
from ahalab.store.journal import read_journal
from ahalab.store.layout import StudyPaths
from ahalab.store.reading import journal_path
from ahalab.tasks.places import run_paths

Say = Callable[[str], None]


def preflight_apart(study: Path, out: Path, plan: Plan, paths: StudyPaths, jobs: int) -> Preflight:
    """Measure in a process of its own, so that its torch and the model are gone with it.

    Raises:
        JobError: It could not be measured.
    """
    path = record_path(paths)
    path.unlink(missing_ok=True)
    arguments = ("preflight", str(study), "--out", str(out), "--jobs", str(jobs))
    log = paths.work / "logs" / "preflight.log"
    try:
        run_jobs([Job("pre-flight", arguments, log, plan.model.threads)], 1, lambda: None)
    except JobError as error:
        if error.exit_code != CheckFailedError.exit_code or not path.is_file():
            raise
    return read_preflight(paths)


def record_path(paths: StudyPaths) -> Path:
    """Return where the findings of pre-flight lie: beside the checkpoints, not among evidence."""
    return paths.work / "preflight.json"


def keep(found: Preflight, paths: StudyPaths) -> None:
    """Write the findings."""
    replace_file(record_path(paths), encode_pretty(found))


def read_preflight(paths: StudyPaths) -> Preflight:
    """Return the findings that were kept.

    Raises:
        RecordError: They are malformed.
    """
    path = record_path(paths)
    return decode_file(read_plain(path), Preflight, str(path))


def due(plan: Plan, paths: StudyPaths) -> bool:
    """Say whether pre-flight is to come: nothing was trained, and it did not pass for this plan."""
    if os.environ.get("RANK", "0") != "0":  # of several processes of one run, the first one looks
        return False
    for cell in training_cells(plan):
        run = run_paths(paths, cell)
        if run.record.is_file() or read_journal(journal_path(run.steps)).rows:
            return False
    if not record_path(paths).is_file():
        return True
    try:
        found = read_preflight(paths)
    except RecordError:  # of another version: it is no evidence, and is made again
        return True
    return found.plan_digest != digest(plan) or bool(found.refused and not found.forced)


def clear(found: Preflight, paths: StudyPaths, *, force: bool, say: Say) -> None:
    """Tell what was found, keep it, and refuse to go on over a refusal unless forced.

    Raises:
        CheckFailedError: A run would be worthless, with what to do.
    """
    standing = [c for c in found.refused if not (force and c.forcible)]
    found = msgspec.structs.replace(found, forced=bool(found.refused) and not standing)
    keep(found, paths)
    for line in lines(found):
        say(line)
    if standing:
        forcible = all(check.forcible for check in standing)
        raise CheckFailedError(
            f"pre-flight: {'; '.join(f'{c.name}: {c.found}' for c in standing)}. "
            f"To do: {'; '.join(c.remedy for c in standing)}"
            + (". `--force` goes on all the same." if forcible else ".")
        )


def lines(found: Preflight) -> list[str]:
    """Return what a person has to know: one line per check that is not in order, then a summary."""
    told = [
        f"pre-flight: {check.level}, {check.name}: {check.found}"
        + (f". To do: {check.remedy}." if check.remedy else ".")
        for check in found.checks
        if check.level != "ok"
    ]
    return [*told, f"pre-flight: {summary(found)}"]


def summary(found: Preflight) -> str:
    """Return the counts of one pre-flight on one line."""
    levels: list[str] = [check.level for check in found.checks]
    counts = [f"{levels.count('ok')} of {len(levels)} checks in order"]
    for level, named in (("note", "noted"), ("warning", "warned of"), ("refused", "refused")):
        if levels.count(level):
            counts.append(f"{levels.count(level)} {named}")
    return f"{', '.join(counts)} ({found.seconds:.1f} s)"
