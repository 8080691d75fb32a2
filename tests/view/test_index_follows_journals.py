from __future__ import annotations

import hashlib
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from viewed_study import ADAPTERS, HOSTILE, Viewed, batch, make_hostile, rows_of, write_viewed

from ahalab.cli.view import IndexLines
from ahalab.errors import InputError
from ahalab.store.layout import StudyPaths
from ahalab.store.reading import journal_path, sealed_path
from ahalab.store.rows import compress_sealed
from ahalab.view.database import cache_folder, index_path, open_for_reading
from ahalab.view.follow import Follower
from ahalab.view.index import Extent, Indexer
from ahalab.view.search import search
from ahalab.view.sources import check_folders, find_studies

ROLLOUTS = len(ADAPTERS) * 3 * 8


def indexer_of(viewed: Viewed) -> Indexer:
    (study,), broken = find_studies([viewed.paths.root])
    assert not broken
    return Indexer(study)


@contextmanager
def opened(viewed: Viewed) -> Iterator[sqlite3.Connection]:
    with closing(open_for_reading(index_path(viewed.paths.root))) as database:
        yield database


def texts(viewed: Viewed, query: str = "") -> list[str]:
    """Return what a filter finds, every page of it."""
    with opened(viewed) as database:
        first = search(database, query, "place", 1)
        pages = [search(database, query, "place", n) for n in range(1, first.pages + 1)]
    found = [one.text for page in pages for one in page.found]
    assert len(found) == first.total
    return found


def test_every_committed_row_is_found_once(viewed: Viewed) -> None:
    indexer_of(viewed).sync()
    assert len(texts(viewed)) == ROLLOUTS
    assert len(texts(viewed, "baba")) == ROLLOUTS  # each has the word
    assert len(texts(viewed, "arm=correctness seed=2 step=1 group=0")) == 4
    assert texts(viewed, "arm=random seed=1 step=2 outcome=correct") == [
        "Step 2 sample 0 says baba #### 7"
    ]


def test_a_filter_finds_what_the_rows_say(viewed: Viewed) -> None:
    indexer_of(viewed).sync()
    every = [row for arm, seed in ADAPTERS for row in rows_of(viewed, arm, seed)]
    for query, keeps in {
        "tokens>20 outcome=wrong": [
            r for r in every if len(r.completion_ids) > 20 and r.strict == "wrong"
        ],
        "reward>0.8": [r for r in every if (r.reward or 0) > 0.8],
        "correct_strict>0.5": [
            r for r in every if "correct_strict" in r.components and r.reward == 1.0
        ],
        "disagree=yes": [r for r in every if r.historical != r.strict],
        "finish=length": [r for r in every if r.finish == "length"],
        '"sample 3"': [r for r in every if "sample 3" in r.completion],
        '-"sample 3" advantage=-0.5': [
            r for r in every if "sample 3" not in r.completion and r.advantage == -0.5
        ],
        'text~"#### 7"': [r for r in every if "#### 7" in r.completion],
        "####": every,
        "bab*": every,
        "gold=7 question~jars": every,
    }.items():
        assert sorted(texts(viewed, query)) == sorted(
            " ".join(row.completion.split()) for row in keeps
        ), query


def test_only_what_was_added_is_read(viewed: Viewed) -> None:
    indexer = indexer_of(viewed)
    indexer.sync()
    assert indexer.sync() is False
    with opened(viewed) as database:
        before = database.execute("SELECT max(id) FROM rollout").fetchone()[0]
    with viewed.writer("random", 2) as writer:
        writer.append(batch(viewed, "random", 3))
    told: list[Extent] = []
    assert indexer.sync(told.append) is True
    assert told[0].total - told[0].rows == 8
    with opened(viewed) as database:
        assert database.execute("SELECT min(id) FROM rollout WHERE step = 3").fetchone()[0] == (
            before + 1
        )
    assert len(texts(viewed)) == ROLLOUTS + 8


def test_rows_that_a_resume_took_back_are_gone_and_their_words_too(viewed: Viewed) -> None:
    indexer = indexer_of(viewed)
    indexer.sync()
    again = [f"other words {n} tutu" for n in range(8)]
    with viewed.writer("correctness", 1) as writer:
        writer.cut(1)
        writer.append(batch(viewed, "correctness", 1, again))
    indexer.sync()
    assert len(texts(viewed)) == ROLLOUTS - 8
    assert len(texts(viewed, "arm=correctness seed=1")) == 16
    assert texts(viewed, "tutu") == [f"other words {n} tutu" for n in range(8)]
    assert len(texts(viewed, "baba")) == ROLLOUTS - 16
    with opened(viewed) as database:  # the full-text index agrees with the texts
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            database.execute("DELETE FROM rollout")
        assert database.execute("PRAGMA integrity_check").fetchone()[0] == "ok"


def test_what_no_journal_names_is_not_shown(viewed: Viewed) -> None:
    path = viewed.paths.run("random", 1).rollouts
    whole = path.read_bytes()
    path.write_bytes(whole + whole.split(b"\n")[0] + b"\n")  # a row without its commit
    indexer_of(viewed).sync()
    assert len(texts(viewed)) == ROLLOUTS


def test_sealed_and_compressed_rows_are_read_too(viewed: Viewed) -> None:
    plain = viewed.paths.run("correctness", 2).rollouts
    with viewed.writer("correctness", 2) as writer:
        for step in range(3, 5):
            filling = [f"{step} {n} " + "word " * 40_000 for n in range(8)]
            writer.append(batch(viewed, "correctness", step, filling))
        writer.seal()
    assert not plain.exists()
    assert sealed_path(plain).is_file()
    indexer_of(viewed).sync()
    assert len(texts(viewed, "arm=correctness seed=2")) == 5 * 8


def test_sealing_between_two_looks_reads_nothing_again(viewed: Viewed) -> None:
    indexer = indexer_of(viewed)
    indexer.sync()
    with viewed.writer("correctness", 2) as writer:
        writer.seal()
    compress_sealed(viewed.paths.run("correctness", 2).rollouts)
    told: list[Extent] = []
    indexer.sync(told.append)
    assert all(extent.rows == extent.total for extent in told)
    assert len(texts(viewed)) == ROLLOUTS


def test_another_study_at_the_same_path_takes_its_place(viewed: Viewed, tmp_path: Path) -> None:
    indexer_of(viewed).sync()
    other = write_viewed(tmp_path / "other", steps=1)
    for arm, seed in ADAPTERS:
        for kind in ("rollouts", "steps", "timings"):
            ours, theirs = (v.file(arm, seed, kind).path for v in (viewed, other))
            for of in (lambda path: path, journal_path):
                of(ours).write_bytes(of(theirs).read_bytes())
    indexer_of(viewed).sync()
    assert len(texts(viewed)) == len(ADAPTERS) * 8


def test_damaged_rows_are_named_and_the_rest_is_shown(viewed: Viewed) -> None:
    path = viewed.paths.run("random", 1).rollouts
    path.write_bytes(path.read_bytes().replace(b"Step 1 sample 2", b"Step 1 sample 9"))
    indexer = indexer_of(viewed)
    indexer.sync()
    assert len(texts(viewed, "arm=random seed=1")) < 24
    assert len(texts(viewed, "arm=random seed=2")) == 24
    with opened(viewed) as database:
        ((fault,),) = database.execute("SELECT fault FROM source WHERE fault IS NOT NULL")
    assert "expected the rows of batch 1 as committed, found other bytes" in fault
    assert indexer.extent.rows == indexer.extent.total  # no more can be read
    assert indexer.sync() is False  # nothing changed: not tried again every second
    path.write_bytes(path.read_bytes().replace(b"Step 1 sample 9", b"Step 1 sample 2"))
    indexer.sync()  # restored: tried again
    assert len(texts(viewed)) == ROLLOUTS


def test_a_damaged_journal_leaves_what_is_indexed(viewed: Viewed) -> None:
    indexer = indexer_of(viewed)
    indexer.sync()
    journal = journal_path(viewed.paths.run("random", 1).rollouts)
    journal.write_bytes(b"{}\n" + journal.read_bytes())
    indexer.sync()
    assert len(texts(viewed)) == ROLLOUTS
    with opened(viewed) as database:
        ((fault,),) = database.execute("SELECT fault FROM source WHERE fault IS NOT NULL")
    assert "rollouts.journal.jsonl:1:" in fault


def test_a_damaged_index_is_made_again(viewed: Viewed) -> None:
    indexer = indexer_of(viewed)
    indexer.sync()
    indexer.path.write_bytes(b"not a database" * 1000)
    again = indexer_of(viewed)
    again.sync()
    assert len(texts(viewed)) == ROLLOUTS


def test_an_index_of_another_version_is_made_again(viewed: Viewed) -> None:
    indexer_of(viewed).sync()
    with closing(sqlite3.connect(index_path(viewed.paths.root))) as database:
        database.execute("PRAGMA user_version=99")
        database.execute("DELETE FROM rollout")
        database.commit()
    indexer_of(viewed).sync()
    assert len(texts(viewed)) == ROLLOUTS


def test_the_study_stays_as_it_is(viewed: Viewed, tmp_path: Path) -> None:
    def state() -> dict[str, str]:
        return {
            path.relative_to(tmp_path).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(tmp_path.rglob("*"))
            if path.is_file() and not path.is_relative_to(cache_folder())
        }

    before = state()
    indexer_of(viewed).sync()
    texts(viewed)
    assert state() == before


def test_hostile_text_is_kept_as_it_is_in_the_index(viewed: Viewed) -> None:
    make_hostile(viewed)
    indexer_of(viewed).sync()
    with opened(viewed) as database:
        kept = database.execute("SELECT completion FROM rollout_text WHERE completion LIKE '<s%'")
        assert [row[0] for row in kept] == [HOSTILE]


KILLED = """
import os, signal, sys
from pathlib import Path
from ahalab.view.index import Indexer
import ahalab.view.index as index
from ahalab.view.sources import find_studies

index.COMMIT_SECONDS = 0.0
((study,), _) = find_studies([Path(sys.argv[1])])
add, left = index.Rows.add, [int(sys.argv[2])]

def killed(self, source, payload):
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    return add(self, source, payload)

index.Rows.add = killed
Indexer(study).sync()
"""


@pytest.mark.parametrize("batches", [1, 9, 14])
def test_killed_while_indexing_it_goes_on_and_loses_and_doubles_nothing(
    viewed: Viewed, batches: int
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(viewed.paths.root), str(batches)],
        env=dict(os.environ), timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL
    indexer_of(viewed).sync()
    assert len(texts(viewed)) == ROLLOUTS
    assert len(texts(viewed, "baba")) == ROLLOUTS
    with opened(viewed) as database:
        assert database.execute("SELECT count(*) FROM answer").fetchone()[0] == 6 * 6


def test_two_viewers_of_one_study_share_its_index(viewed: Viewed) -> None:
    one = Follower([viewed.paths.root], lambda *_: None)
    other = Follower([viewed.paths.root], lambda *_: None)
    one.look()
    other.look()  # the lock is taken: it reads only
    assert other.catalogue.faults == ()
    assert len(texts(viewed)) == ROLLOUTS
    with viewed.writer("random", 2) as writer:
        writer.append(batch(viewed, "random", 3))
    other.look()
    assert len(texts(viewed)) == ROLLOUTS
    one.look()
    assert len(texts(viewed)) == ROLLOUTS + 8


def test_a_running_study_is_followed_by_the_thread(viewed: Viewed) -> None:
    follower = Follower([viewed.paths.root.parent], lambda *_: None)
    follower.start()
    try:
        with viewed.writer("random", 2) as writer:
            writer.append(batch(viewed, "random", 3))
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                if len(texts(viewed)) == ROLLOUTS + 8:
                    break
            except sqlite3.OperationalError:
                pass
            time.sleep(0.05)
        assert len(texts(viewed)) == ROLLOUTS + 8
    finally:
        follower.stop()
    assert not follower.is_alive()


def test_a_study_whose_plan_cannot_be_read_is_named_beside_the_others(
    viewed: Viewed,
) -> None:
    other = viewed.paths.root.parent / "other"
    other.mkdir()
    StudyPaths(other).plan.write_text("name: [")
    follower = Follower([viewed.paths.root.parent], lambda *_: None)
    assert len(follower.catalogue.studies) == 1
    (broken,) = follower.catalogue.broken
    assert broken.root == other
    assert "study.yaml" in broken.fault


def test_folders_without_a_study_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expected a study's results folder.*found none"):
        check_folders([tmp_path / "nowhere"])
    with pytest.raises(InputError, match=r"expected a study.yaml there or one folder below"):
        check_folders([tmp_path])


def test_a_cache_that_cannot_be_written_is_said_with_the_remedy(
    viewed: Viewed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(InputError, match=r"expected a cache folder.*set XDG_CACHE_HOME"):
        indexer_of(viewed).sync()


def test_progress_has_a_rate_and_time_left(
    viewed: Viewed, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([0.0, 3.0, 6.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    (study,), _ = find_studies([viewed.paths.root])
    lines = IndexLines()
    for rows in (0, 3_000, 9_000):
        lines.report(study, Extent(rows, 9_000))
    assert capsys.readouterr().err.splitlines() == [
        "index of small: 3,000 of 9,000 rows, 1,000/s, 6 s left",
        "index of small: 9,000 of 9,000 rows, 1,500/s",
    ]
