"""How far every file of answers is, what came out so far, and whether something writes it."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from msgspec import UNSET

from ahalab.plan.schedule import checkpoint_count
from ahalab.store.reading import journal_path
from ahalab.view.liveness import Status, idle_seconds, status_of
from ahalab.view.sets import AnswerFile, SetKind, answer_files, read_templates
from ahalab.view.sources import Study
from ahalab.visible import plain


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One file of answers."""

    name: str
    kind: SetKind
    arm: str | None
    seed: int | None
    split: str
    steps: tuple[int, ...]  # checkpoints with answers, of a validation: each is a set by itself
    status: Status
    why: str
    answers: int
    answers_planned: int | None  # None: not known, or the prompts were not read yet
    strict_fraction: float | None  # of a validation, at its last checkpoint
    lenient_fraction: float | None


@dataclass(frozen=True, slots=True)
class _Tally:
    step: int | None
    answers: int
    strict: int
    lenient: int


def answer_rows(study: Study, database: sqlite3.Connection, now: float) -> tuple[AnswerRow, ...]:
    """Return every file of answers that the plan or its rows say is there.

    The evaluation's files are always named; others once something was committed to them.
    """
    tallies: dict[str, list[_Tally]] = {}
    for file, *figures in database.execute(
        "SELECT s.file, s.step, sum(t.answers), sum(t.strict), sum(t.lenient) FROM answer_set s "
        "JOIN tally t ON t.answer_set = s.id GROUP BY s.id ORDER BY s.step"
    ):
        tallies.setdefault(file, []).append(_Tally(*figures))
    sources = {
        name: (rows, bool(sealed))
        for name, rows, total, sealed in database.execute(
            "SELECT name, rows, total, sealed FROM source"
        )
        if total
    }
    planned = _planned(study, database)
    return tuple(
        _row(study, file, tallies.get(file.name, []), sources.get(file.name, (0, False)),
             planned.get(file.kind), now)
        for file in answer_files(study.plan, study.paths)
        if file.name in sources or file.kind in ("evaluation", "floor")
    )  # fmt: skip


def _row(
    study: Study,
    file: AnswerFile,
    tallies: list[_Tally],
    source: tuple[int, bool],
    planned: int | None,
    now: float,
) -> AnswerRow:
    done, sealed = source
    lock = study.paths.lock(file.writer)
    idle = None if sealed else idle_seconds(journal_path(file.paths.answers), now)
    status, why = status_of(sealed, lock, idle, None)
    last = tallies[-1] if tallies else None
    return AnswerRow(
        name=file.name,
        kind=file.kind,
        arm=None if file.cell.arm is None else plain(file.cell.arm),
        seed=file.cell.seed,
        split=file.split,
        steps=tuple(tally.step for tally in tallies if tally.step is not None),
        status=status,
        why=why,
        answers=done,
        answers_planned=planned,
        strict_fraction=last.strict / last.answers if last else None,
        lenient_fraction=last.lenient / last.answers if last else None,
    )


def _planned(study: Study, database: sqlite3.Connection) -> dict[str, int | None]:
    """Return how many answers a file of each kind has when it is whole."""
    prompts = dict(database.execute("SELECT split, count(*) FROM prompt GROUP BY split"))
    asked = prompts.get("eval", 0) * study.plan.evaluation.samples or None
    found: dict[str, int | None] = dict.fromkeys(("evaluation", "floor", "replay"), asked)
    if study.plan.validation is not UNSET:
        checkpoints = checkpoint_count(study.plan)
        found["validation"] = prompts.get("validation", 0) * checkpoints or None
    templates = read_templates(study.paths)
    found["template"] = templates.questions if templates else None
    return found
