import importlib.util
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ahalab.store.layout import StudyPaths
from lab import PLAN, Trained, WarmLab, ahalab, plan_of, write_plan

os.environ.setdefault("HF_HUB_OFFLINE", "1")


@pytest.fixture(scope="session")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmLab]:
    """Commands in forks of one process, which imported torch once."""
    for needed in ("torch", "trl", "peft", "datasets"):
        if importlib.util.find_spec(needed) is None:
            pytest.skip(f"{needed} is not installed: pip install 'ahalab[train]'")
    lab = WarmLab(tmp_path_factory.mktemp("warm"))
    yield lab
    lab.close()


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory, warm: WarmLab) -> Trained:
    """One uninterrupted study: the pilot by the real command line, the control after it."""
    folder = tmp_path_factory.mktemp("trained")
    plan_file = write_plan(folder)
    results = folder / "results"
    train = ("train", plan_file, "--out", results, "--seed", 1)
    # Its own hash seed: sets must not leave a mark in what the forks repeat to the byte.
    done = ahalab(*train, "--arm", "historical", PYTHONHASHSEED="12345")
    assert done.returncode == 0, done.stderr
    pilot = results / "tiny" / "arms" / "historical" / "seed-1"
    warm.run(*train, "--arm", "random", "--like", pilot)
    return Trained(plan_of(PLAN), plan_file, StudyPaths(results / "tiny"))


@pytest.fixture
def study(trained: Trained, tmp_path: Path) -> Trained:
    """A copy of the trained study that a test may change."""
    root = tmp_path / "results" / "tiny"
    shutil.copytree(trained.paths.root, root)
    return Trained(trained.plan, trained.plan_file, StudyPaths(root))


@pytest.fixture
def fresh(tmp_path: Path) -> Callable[[str], Trained]:
    """Make a study that has not begun, from a plan's text."""

    def make(text: str = PLAN) -> Trained:
        plan = plan_of(text)
        plan_file = write_plan(tmp_path, text)
        return Trained(plan, plan_file, StudyPaths(tmp_path / "results" / plan.name))

    return make
