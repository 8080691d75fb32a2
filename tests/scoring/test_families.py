"""Families of answers in the spirit of the shared cases, each decided before it was scored.

`families.jsonl` holds a line per answer: the family, the response, the gold, and whether a careful
reader calls the response right. `decider` marks what only math-verify can tell.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ahalab.scoring.answers import Asked, score_answer
from ahalab.scoring.deciding import LatexEqual
from ahalab.scoring.worker import LatexPool

ROWS: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parent / "families.jsonl").read_bytes().split(b"\n")
    if line
]
FAMILIES = sorted({(row["task"], row["family"]) for row in ROWS})


def outcome(row: dict[str, Any], latex_equal: LatexEqual | None = None) -> str:
    asked = Asked(task=row["task"], prompt=row.get("prompt"))
    finish = row.get("finish", "eos")
    return score_answer(row["response"], row["gold"], finish, asked, latex_equal).lenient.outcome


def disagreeing(
    rows: Sequence[dict[str, Any]], latex_equal: LatexEqual | None = None
) -> list[tuple[str, str, str]]:
    """List (response, gold, outcome) where the scorer and the reader differ."""
    found = []
    for row in rows:
        scored = outcome(row, latex_equal)
        if (scored == "correct") != row["right"]:
            found.append((row["response"], row["gold"], scored))
    return found


@pytest.mark.parametrize(("task", "family"), FAMILIES, ids="-".join)
def test_every_answer_of_a_family_is_scored_as_a_careful_reader_would(
    task: str, family: str
) -> None:
    rows = [row for row in ROWS if (row["task"], row["family"]) == (task, family)]
    assert disagreeing([row for row in rows if not row.get("decider")]) == []


def test_what_only_mathematics_can_tell_is_right_with_the_decider_and_wrong_without() -> None:
    rows = [row for row in ROWS if row.get("decider")]
    assert {outcome(row) for row in rows} == {"wrong"}
    with LatexPool() as decider:
        assert disagreeing(rows, decider) == []


def test_the_decider_changes_no_other_verdict() -> None:
    rows = [row for row in ROWS if row["task"] == "math" and not row.get("decider")]
    with LatexPool() as decider:
        assert disagreeing(rows, decider) == []


def test_the_families_are_many_and_their_answers_differ() -> None:
    keys = [(row["task"], row["response"], row["gold"], row.get("finish")) for row in ROWS]
    assert len(set(keys)) == len(ROWS) > 1_000
    assert sum(row["right"] for row in ROWS) > 600
    assert sum(not row["right"] for row in ROWS) > 250
