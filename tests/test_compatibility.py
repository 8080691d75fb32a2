"""The page of supported versions, the package's bounds and the committed outcomes agree."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import astuple
from pathlib import Path

import pytest
from tools import compat

ROOT = Path(__file__).parents[1]
SETS = compat.sets()
LIBRARIES = ("trl", "transformers", "peft")


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def test_there_are_at_most_six_sets_newest_first() -> None:
    assert 2 <= len(SETS) <= 6
    assert [one.trl for one in SETS] == sorted((s.trl for s in SETS), key=numbers, reverse=True)
    assert len({one.name for one in SETS}) == len(SETS)


@pytest.mark.parametrize("one", SETS, ids=lambda one: one.name)
def test_the_committed_outcome_of_a_set_is_that_of_its_versions_and_passed(
    one: compat.Set,
) -> None:
    found = json.loads(one.outcome.read_text("utf-8"))
    assert [found["versions"][name] for name in LIBRARIES] == list(astuple(one)[1:])
    assert found["passed"] is True
    assert len(found["checks"]) == 6
    assert compat.passed(found)


def test_no_outcome_is_kept_of_a_set_that_is_no_longer_tried() -> None:
    assert {path.stem for path in compat.OUTCOMES.iterdir()} == {one.name for one in SETS}


def test_the_table_of_the_page_is_that_of_the_committed_outcomes() -> None:
    page = compat.PAGE.read_text("utf-8")
    assert page.count(compat.BEGIN) == page.count(compat.END) == 1
    assert page.partition(compat.BEGIN)[2].partition(compat.END)[0] == compat.table()


def test_a_set_that_failed_shows_in_the_table_with_what_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = compat.Set("0.1", "0.1.0", "1.0.0", "0.1.0")
    monkeypatch.setattr(compat, "OUTCOMES", tmp_path)
    monkeypatch.setattr(compat, "sets", lambda: [one])
    found = {"versions": {}, "checks": {"install": "pip found no such set", "verify": "passed"}}
    one.outcome.write_text(json.dumps(found), encoding="utf-8")
    assert compat.table().rstrip("\n").endswith("| install: pip found no such set |")
    assert not compat.passed(found)


def test_a_set_is_chosen_by_its_name_or_by_its_place() -> None:
    assert compat.chosen([]) == SETS
    assert compat.chosen(["newest", "oldest"]) == [SETS[0], SETS[-1]]
    assert compat.chosen([SETS[0].name, "newest"]) == [SETS[0]]
    with pytest.raises(SystemExit, match="expected a set of"):
        compat.chosen(["0.15"])


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_packages_bounds_are_what_was_tried(library: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extra = project["optional-dependencies"]["train"]
    bounds = next(line for line in extra if re.match(rf"{library}\W", line))
    tried = sorted((getattr(one, library) for one in SETS), key=numbers)
    low, high = re.fullmatch(rf"{library}>=([\d.]+),<([\d.]+)", bounds).groups()  # type: ignore[union-attr]
    newest = numbers(tried[-1])
    assert numbers(low) == numbers(tried[0])[: len(numbers(low))]
    assert numbers(high) == (newest[0], newest[1] + 1)
    if len(numbers(low)) < 3:
        assert numbers(tried[0])[2] == 0


def test_the_newest_set_is_the_one_that_the_constraints_pin() -> None:
    pinned = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    assert set(SETS[0].pins) <= set(pinned)


def test_ci_tries_the_oldest_set() -> None:
    assert "make test-compat SETS=oldest" in (ROOT / ".ci/run").read_text("utf-8")
