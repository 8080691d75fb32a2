"""How far every run and answer set of a study is, and whether something still works on it."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ahalab.errors import RecordError
from ahalab.plain_files import read_plain
from ahalab.plan.cells import Cell, answer_cells, training_cells
from ahalab.records.base import decode_file
from ahalab.records.run import RunRecord
from ahalab.store.reading import journal_path
from ahalab.tasks.places import answer_paths, run_paths
from ahalab.view.database import run_number
from ahalab.view.liveness import Status, idle_seconds, status_of
from ahalab.view.sources import Study
from ahalab.visible import plain


@dataclass(frozen=True, slots=True)
class Latest:
    """Figures of the last step that generated."""

    step: int
    reward: float | None
    strict: float | None
    truncated: float | None
    dead: float | None  # groups of equal rewards


@dataclass(frozen=True, slots=True)
class RunRow:
    """One training run."""

    name: str
    arm: str
    seed: int
    control: bool
    status: Status
    why: str  # what the status rests on
    steps: int
    steps_planned: int
    rollouts: int
    idle_seconds: float | None  # since the last commit; None: no rows, or done
    left_seconds: float | None  # None: not running, or no speed known
    latest: Latest | None
    alarms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One answer set."""

    name: str
    status: Status
    why: str
    answers: int
    answers_planned: int | None  # None: the prompts were not read yet
    strict_fraction: float | None
    lenient_fraction: float | None


@dataclass(frozen=True, slots=True)
class StudyState:
    """One study as a whole."""

    id: str
    name: str
    path: str
    model: str
    task: str
    sealed: bool
    rows: int  # indexed
    rows_total: int  # committed, but for files that can't be read
    runs: tuple[RunRow, ...]
    answers: tuple[AnswerRow, ...]
    faults: tuple[str, ...]
    sentences: tuple[str, ...]  # of the analysis, when there is one


def study_state(study: Study, database: sqlite3.Connection, now: float | None = None) -> StudyState:
    """Return how a study is now.

    Args:
        study: The study.
        database: Its index.
        now: Seconds since the epoch; None: this moment.
    """
    moment = time.time() if now is None else now
    plan = study.plan
    rows, total = database.execute(
        "SELECT coalesce(sum(rows), 0), coalesce(sum(iif(fault IS NULL, total, rows)), 0) "
        "FROM source"
    ).fetchone()
    faults = database.execute("SELECT fault FROM source WHERE fault IS NOT NULL").fetchall()
    return StudyState(
        id=study.id,
        name=plain(plan.name),
        path=plain(str(study.paths.root)),
        model=plain(plan.model.id),
        task=plain(plan.task.name),
        sealed=study.paths.manifest.is_file(),
        rows=rows,
        rows_total=total,
        runs=tuple(_run(study, database, cell, moment) for cell in training_cells(plan)),
        answers=tuple(_answers(study, database, cell, moment) for cell in answer_cells(plan)),
        faults=tuple(plain(fault) for (fault,) in faults),
        sentences=_sentences(study),
    )


def _run(study: Study, database: sqlite3.Connection, cell: Cell, now: float) -> RunRow:
    paths, number = run_paths(study.paths, cell), run_number(database, cell)
    record, fault = _record(paths.record)
    steps, last = database.execute(
        "SELECT count(*), max(step) FROM step WHERE run = ?", (number,)
    ).fetchone()
    (rollouts,) = database.execute(
        "SELECT coalesce(max(rows), 0) FROM source WHERE name = ?", (f"{cell.name}/rollouts",)
    ).fetchone()
    (seconds,) = database.execute(
        "SELECT avg(seconds) FROM (SELECT seconds FROM timing WHERE run = ? "
        "ORDER BY id DESC LIMIT 20)",
        (number,),
    ).fetchone()
    planned, (arm, seed) = int(study.plan.grpo["max_steps"]), cell.run
    idle = None if record else idle_seconds(journal_path(paths.steps), now)
    status, why = status_of(record is not None, study.paths.lock(cell.name), idle, seconds)
    return RunRow(
        name=cell.name,
        arm=plain(arm),
        seed=seed,
        control=arm == study.plan.control,
        status=status,
        why=fault or why,
        steps=last or 0,
        steps_planned=planned,
        rollouts=rollouts,
        idle_seconds=idle,
        left_seconds=seconds * (planned - last)
        if status == "running" and last and seconds
        else None,
        latest=_latest(database, number) if steps else None,
        alarms=tuple(plain(alarm.name) for alarm in record.alarms) if record else (),
    )


def _record(path: Path) -> tuple[RunRecord | None, str]:
    try:
        return decode_file(read_plain(path), RunRecord, str(path)), ""
    except FileNotFoundError:
        return None, ""
    except RecordError as error:
        return None, plain(str(error))


def _latest(database: sqlite3.Connection, run: int) -> Latest | None:
    found = database.execute(
        "SELECT step, json_extract(figures, '$.reward_mean', '$.strict_fraction', "
        "'$.truncated_fraction', '$.zero_variance_fraction') FROM step WHERE run = ? "
        "AND json_extract(figures, '$.strict_fraction') IS NOT NULL ORDER BY step DESC LIMIT 1",
        (run,),
    ).fetchone()
    return None if found is None else Latest(found[0], *json.loads(found[1]))


def _answers(study: Study, database: sqlite3.Connection, cell: Cell, now: float) -> AnswerRow:
    paths = answer_paths(study.paths, cell)
    done, sealed = database.execute(
        "SELECT coalesce(max(rows), 0), max(sealed) FROM source WHERE name = ?",
        (paths.name,),
    ).fetchone()
    strict, lenient = database.execute(
        "SELECT avg(strict = 'correct'), avg(lenient = 'correct') FROM answer WHERE run = ?",
        (run_number(database, cell),),
    ).fetchone()
    (prompts,) = database.execute("SELECT count(*) FROM prompt WHERE split = 'eval'").fetchone()
    idle = None if sealed else idle_seconds(journal_path(paths.answers), now)
    status, why = status_of(bool(sealed), study.paths.lock(paths.name), idle, None)
    return AnswerRow(
        name=cell.name,
        status=status,
        why=why,
        answers=done,
        answers_planned=prompts * study.plan.evaluation.samples or None,
        strict_fraction=strict,
        lenient_fraction=lenient,
    )


class _ArmSentence(msgspec.Struct):
    """What is read of an arm's comparison; the rest of the record is the report's."""

    sentence: str
    primary: bool
    against: str


class _Sentences(msgspec.Struct):
    arms: Sequence[_ArmSentence] = ()


def _sentences(study: Study) -> tuple[str, ...]:
    try:
        found = msgspec.json.decode(read_plain(study.paths.comparison), type=_Sentences)
    except (OSError, msgspec.MsgspecError):  # not analysed yet, or by another version
        return ()
    return tuple(plain(a.sentence) for a in found.arms if a.primary and a.against == "base")
