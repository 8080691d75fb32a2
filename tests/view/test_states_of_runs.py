from __future__ import annotations

import json
import os
import platform
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from viewed_study import Viewed, batch, step_row

from ahalab.store.lock import WriterLock
from ahalab.store.reading import journal_path
from ahalab.view.curves import Curves, curves
from ahalab.view.database import index_path, open_for_reading
from ahalab.view.index import Indexer
from ahalab.view.runs import RunRow, StudyState, study_state
from ahalab.view.sources import Study, find_studies


def study_of(viewed: Viewed) -> Study:
    (study,), _ = find_studies([viewed.paths.root])
    return study


@contextmanager
def indexed(viewed: Viewed) -> Iterator[tuple[Study, sqlite3.Connection]]:
    study = study_of(viewed)
    Indexer(study).sync()
    with closing(open_for_reading(index_path(viewed.paths.root))) as database:
        yield study, database


def state(viewed: Viewed, now: float | None = None) -> StudyState:
    with indexed(viewed) as (study, database):
        return study_state(study, database, now)


def run(viewed: Viewed, now: float | None = None) -> RunRow:
    """Return the state of correctness, seed 1."""
    return state(viewed, now).runs[0]


def lock(viewed: Viewed, **owner: object) -> Path:
    path = viewed.paths.work / "locks" / "arms-correctness-seed-1.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(owner))
    return path


def last_commit(viewed: Viewed, seconds_ago: float) -> float:
    path = journal_path(viewed.paths.run("correctness", 1).steps)
    now = time.time()
    os.utime(path, (now - seconds_ago, now - seconds_ago))
    return now


def test_progress_and_figures_are_those_of_the_rows(viewed: Viewed) -> None:
    found = state(viewed)
    one = found.runs[0]
    assert (one.name, one.steps, one.steps_planned) == ("arms/correctness/seed-1", 3, 5)
    assert one.rollouts == 24
    assert one.latest is not None
    assert (one.latest.step, one.latest.reward) == (3, pytest.approx(0.21))
    assert [r.control for r in found.runs] == [False, False, True, True]
    answers = {a.name: a for a in found.answers}
    assert answers["base"].answers == answers["base"].answers_planned == 6
    assert answers["base"].strict_fraction == pytest.approx(2 / 6)  # WCCFFT
    assert answers["base"].lenient_fraction == pytest.approx(4 / 6)
    assert answers["base"].status == "done"


def test_a_run_that_a_living_process_holds_is_running(viewed: Viewed) -> None:
    path = viewed.paths.work / "locks" / "arms-correctness-seed-1.lock"
    with WriterLock(path):
        now = last_commit(viewed, 60)
        one = run(viewed, now)
    assert one.status == "running"
    assert one.left_seconds == pytest.approx(4.0)  # two steps of two seconds


def test_a_living_process_that_commits_nothing_is_stale(viewed: Viewed) -> None:
    path = viewed.paths.work / "locks" / "arms-correctness-seed-1.lock"
    with WriterLock(path):
        now = last_commit(viewed, 500)
        one = run(viewed, now)
    assert one.status == "stale"
    assert one.why == f"process {os.getpid()} is there, but nothing was committed for 500 s"


def test_a_dead_owner_has_stopped(viewed: Viewed) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    lock(viewed, pid=gone.pid, since=datetime.now(UTC).isoformat(timespec="seconds"))
    one = run(viewed, last_commit(viewed, 60))
    assert (one.status, one.why) == ("stopped", "no process writes here; the same command resumes")


def test_a_process_of_another_machine_is_judged_by_its_commits(viewed: Viewed) -> None:
    since = datetime.now(UTC).isoformat(timespec="seconds")
    lock(viewed, pid=7, host="elsewhere\u202e", since=since)
    one = run(viewed, last_commit(viewed, 60))
    assert (one.status, one.why) == ("running", "process 7 of elsewhere\\u202e")
    one = run(viewed, last_commit(viewed, 500))
    assert one.status == "stale"
    assert "can't be seen from here, and nothing was committed for 500 s" in one.why


def test_a_killed_writer_of_this_machine_has_stopped_at_once(viewed: Viewed) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    lock(viewed, pid=gone.pid, host=platform.node(), since=datetime.now(UTC).isoformat())
    assert run(viewed, last_commit(viewed, 1)).status == "stopped"


def test_a_later_process_of_the_same_number_is_not_the_owner(viewed: Viewed) -> None:
    before = datetime.now(UTC) - timedelta(days=2)
    lock(viewed, pid=os.getpid(), since=before.isoformat(timespec="seconds"))
    assert run(viewed, last_commit(viewed, 60)).status == "stopped"


@pytest.mark.parametrize(
    "told", ["", "{", '{"pid": "x", "since": 3}', "[]", '{"pid": -1, "since": "2026-01-01"}']
)
def test_a_lock_that_cannot_be_read_owns_nothing(viewed: Viewed, told: str) -> None:
    lock(viewed).write_text(told)
    assert run(viewed, last_commit(viewed, 60)).status == "stopped"


def test_fresh_commits_without_a_lock_are_a_running_run(viewed: Viewed) -> None:
    assert run(viewed, last_commit(viewed, 5)).status == "running"


def test_the_viewer_never_holds_a_writers_lock(viewed: Viewed) -> None:
    path = lock(viewed, pid=os.getpid(), since=datetime.now(UTC).isoformat(timespec="seconds"))
    before = path.read_bytes()
    state(viewed)
    assert path.read_bytes() == before
    with WriterLock(path):
        pass


def test_a_run_without_rows_waits(viewed: Viewed) -> None:
    folder = viewed.paths.run("random", 2).folder
    for path in folder.glob("[rst]*.jsonl"):
        path.unlink()
    one = state(viewed).runs[3]
    assert (one.status, one.steps, one.latest, one.idle_seconds) == ("waiting", 0, None, None)


def of_run(found: Curves, name: str) -> tuple[int, ...]:
    return next(curve.steps for curve in found.curves if curve.run == name)


def test_curves_come_whole_and_then_from_the_cursor_on(viewed: Viewed) -> None:
    with indexed(viewed) as (study, database):
        first = curves(study, database)
    assert first.whole
    assert of_run(first, "arms/correctness/seed-1") == (1, 2, 3)
    component = next(f.key for f in first.figures if f.title == "correct_strict")
    assert first.curves[0].values[component] == pytest.approx((0.01, 0.11, 0.21))
    assert "kl" not in first.curves[0].values  # unknown at every step
    with viewed.writer("correctness", 1, "steps") as writer:
        writer.append([step_row(4, 0.9)])
    with indexed(viewed) as (study, database):
        second = curves(study, database, first.cursor)
        same = curves(study, database, second.cursor)
    assert not second.whole
    assert of_run(second, "arms/correctness/seed-1") == (4,)
    assert of_run(second, "arms/random/seed-1") == ()
    assert of_run(same, "arms/correctness/seed-1") == ()


def test_steps_that_were_taken_back_make_the_reader_begin_anew(viewed: Viewed) -> None:
    with indexed(viewed) as (study, database):
        cursor = curves(study, database).cursor
    with viewed.writer("correctness", 1, "steps") as writer:
        writer.cut(2)
        writer.append([step_row(3, 0.9)])
    with indexed(viewed) as (study, database):
        found = curves(study, database, cursor)
    assert found.whole
    assert of_run(found, "arms/correctness/seed-1") == (1, 2, 3)


def test_a_long_run_is_shown_by_every_k_th_step(
    viewed: Viewed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ahalab.view.curves.MAX_POINTS", 3)  # of the plan's five steps: every 2nd
    with indexed(viewed) as (study, database):
        found = curves(study, database)
    assert found.every == 2
    assert of_run(found, "arms/correctness/seed-1") == (2,)


@pytest.mark.parametrize("cursor", ["x", "1", "-1.2", "9" * 50, "999.3"])
def test_a_cursor_of_nobody_begins_anew(viewed: Viewed, cursor: str) -> None:
    with indexed(viewed) as (study, database):
        assert curves(study, database, cursor).whole


def test_a_component_that_appears_later_has_its_curve(viewed: Viewed) -> None:
    with viewed.writer("correctness", 1) as writer:
        rows = batch(viewed, "correctness", 3)
        writer.append(rows)
    with indexed(viewed) as (study, database):
        titles = [figure.title for figure in curves(study, database).figures]
    assert titles[0] == "Reward"
    assert {"correct_strict", "random"} <= set(titles)


def test_a_plan_that_is_replaced_is_read_again(viewed: Viewed, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(viewed.paths.root, tmp_path / "copy"))
    (study,), _ = find_studies([copy])
    (again,), _ = find_studies([copy])
    assert again is study  # nothing changed: nothing is read
    plan = copy / "study.yaml"
    plan.write_bytes(plan.read_bytes().replace(b"name: ", b"name: other-", 1))
    (other,), _ = find_studies([copy])
    assert other.plan.name == f"other-{study.plan.name}"
    plan.write_text("{")
    assert [len(found) for found in find_studies([copy])] == [0, 1]
