import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "analyze"))  # for `small_study`
sys.path.insert(0, str(Path(__file__).parents[1] / "verify"))  # for `reflection_builder`
sys.path.insert(0, str(Path(__file__).parent))  # for `viewed_study`

from every_set import write_every_set
from viewed_study import Viewed, make_hostile, write_viewed
from viewer_server import Running, start, wait_for_index

from ahalab.plan.load import load_plan
from ahalab.store.layout import StudyPaths


@pytest.fixture(autouse=True)
def no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the flush to the disk: these tests write many small studies."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep indexes in a folder of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def viewed(tmp_path: Path, cache: Path) -> Viewed:
    return write_viewed(tmp_path / "results" / "small")


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A viewer of a hostile study, which no test changes."""
    folder = tmp_path_factory.mktemp("viewed")
    viewed = write_viewed(folder / "results" / "small")
    make_hostile(viewed)
    server = start(viewed, folder / "cache")
    wait_for_index(server)
    yield server
    assert server.stop().endswith("stopped\n")


@pytest.fixture(scope="session")
def study(running: Running) -> str:
    """The id of the study."""
    return wait_for_index(running)


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study with every kind of answers, which no test changes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        return write_every_set(tmp_path_factory.mktemp("every") / "results" / "rich")


@pytest.fixture(scope="session")
def served(whole: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A viewer of it."""
    viewed = Viewed(load_plan(StudyPaths(whole).plan), StudyPaths(whole), [])
    server = start(viewed, tmp_path_factory.mktemp("cache"))
    wait_for_index(server)
    yield server
    assert server.stop().endswith("stopped\n")
