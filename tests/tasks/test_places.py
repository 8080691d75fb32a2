"""Where the files of a cell lie: an adapter's, the base's, and the noise floor's."""

from pathlib import Path

import pytest

from ahalab.plan.cells import BASE, FLOOR, run_cell
from ahalab.store.layout import StudyPaths
from ahalab.tasks.places import answer_paths, run_paths

PATHS = StudyPaths(Path("study"))


def test_answers_lie_with_the_base_or_with_the_run_that_they_are_of() -> None:
    cells = (BASE, FLOOR, run_cell("random", 0))
    assert [answer_paths(PATHS, cell).answers.as_posix() for cell in cells] == [
        "study/base/answers.jsonl",
        "study/base/floor.jsonl",
        "study/arms/random/seed-0/answers.jsonl",
    ]


def test_a_replay_has_answers_of_the_same_cells_but_for_the_floor() -> None:
    cells = (BASE, run_cell("random", 0))
    assert [answer_paths(PATHS, cell, "replay/").name for cell in cells] == [
        "replay/base/answers",
        "replay/arms/random/seed-0/answers",
    ]


def test_only_a_training_run_has_the_paths_of_one() -> None:
    assert run_paths(PATHS, run_cell("random", 7)).name == "arms/random/seed-7"
    with pytest.raises(ValueError, match="base: expected a training run"):
        run_paths(PATHS, BASE)
