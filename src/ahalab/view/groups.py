"""The steps of a run, the groups of a step, the completions of a group as cards."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from typing import Any

from ahalab.errors import InputError
from ahalab.plan.cells import Cell, training_cells
from ahalab.records.plan import ArmSpec
from ahalab.scoring.arms import resolve_arm
from ahalab.view.database import run_number
from ahalab.view.scored import Question, Taken, taken
from ahalab.view.shown import Shown, line, shown
from ahalab.view.sources import Study
from ahalab.visible import plain


@dataclass(frozen=True, slots=True)
class Contribution:
    """A reward component of one rollout."""

    name: str
    value: float | None  # None: not scored
    status: str
    weight: float
    contribution: float | None


@dataclass(frozen=True, slots=True)
class Card:
    """One completion with all that made its gradient."""

    id: int
    sample: int
    tokens: int
    finish: str
    reward: float | None
    advantage: float
    components: tuple[Contribution, ...]
    historical: str
    strict: str
    lenient: str
    status: str
    formatted: bool
    repetition: float
    reflection: tuple[str, ...]
    taken: Taken


@dataclass(frozen=True, slots=True)
class Group:
    """The completions of one prompt in one step."""

    run: str
    step: int
    group: int
    prompt: str
    question: Shown | None  # None: the prompts were not read yet
    gold: Shown | None
    cards: tuple[Card, ...]  # highest advantage first


@dataclass(frozen=True, slots=True)
class GroupLine:
    """A group in the list of its step."""

    group: int
    question: str
    rollouts: int
    right: int  # strict
    reward_mean: float | None
    reward_spread: float | None  # largest less smallest
    truncated: int


@dataclass(frozen=True, slots=True)
class StepGroups:
    """The groups that were generated at one step."""

    run: str
    step: int
    first: int
    last: int
    previous: int | None
    next: int | None
    groups: tuple[GroupLine, ...]


def step_groups(database: sqlite3.Connection, run: Cell, step: int | None) -> StepGroups:
    """Return the groups of a step; of the last one that generated, where none is named.

    Raises:
        InputError: The run has no rollouts, or none at that step.
    """
    number = run_number(database, run)
    first, last = database.execute(
        "SELECT min(step), max(step) FROM rollout WHERE run = ?", (number,)
    ).fetchone()
    if last is None:
        raise InputError(f"{run.name}: expected rollouts, found none yet.")
    at = last if step is None else step
    rows = database.execute(
        "SELECT grp, count(*), sum(strict = 'correct'), avg(reward), max(reward) - min(reward), "
        "sum(finish = 'length'), (SELECT question FROM prompt WHERE id = r.prompt) "
        "FROM rollout r WHERE run = ? AND step = ? GROUP BY grp ORDER BY grp",
        (number, at),
    ).fetchall()
    if not rows:
        raise InputError(f"{run.name}: expected a step that generated, found {at}.")
    previous, following = (
        database.execute(
            f"SELECT {pick}(step) FROM rollout WHERE run = ? AND step {sign} ?",  # noqa: S608
            (number, at),
        ).fetchone()[0]
        for pick, sign in (("max", "<"), ("min", ">"))
    )
    groups = tuple(
        GroupLine(group, line(question, 120), count, right, mean, spread, truncated)
        for group, count, right, mean, spread, truncated, question in rows
    )
    return StepGroups(run.name, at, first, last, previous, following, groups)


def group(study: Study, database: sqlite3.Connection, run: Cell, step: int, at: int) -> Group:
    """Return the completions of a group, the highest advantage first.

    Raises:
        InputError: There is no such group.
    """
    rows = database.execute(
        f"{_CARD} WHERE r.run = ? AND r.step = ? AND r.grp = ? ORDER BY r.advantage DESC, r.sample",
        (run_number(database, run), step, at),
    ).fetchall()
    return _group(study, run, rows, f"{run.name}, step {step}, group {at}")


def rollout(study: Study, database: sqlite3.Connection, number: int) -> Group:
    """Return one rollout, as a group of one.

    Raises:
        InputError: There is no such rollout.
    """
    rows = database.execute(f"{_CARD} WHERE r.id = ?", (number,)).fetchall()
    names = {cell.name: cell for cell in training_cells(study.plan)}
    cell = names.get(rows[0]["run_name"]) if rows else None
    if cell is None:
        raise InputError(f"rollout {number}: expected a rollout of the study, found none.")
    return _group(study, cell, rows, str(number))


_CARD = (
    "SELECT r.*, t.completion, t.status, t.components, t.reflection, "
    "p.name AS prompt_name, p.question, p.gold, run.name AS run_name FROM rollout r "
    "JOIN rollout_text t ON t.id = r.id LEFT JOIN prompt p ON p.id = r.prompt "
    "LEFT JOIN run ON run.id = r.run"
)


def _group(study: Study, run: Cell, rows: list[sqlite3.Row], place: str) -> Group:
    if not rows:
        raise InputError(f"{place}: expected rollouts, found none.")
    first = rows[0]
    spec = next((arm for arm in study.plan.arms if arm.name == run.arm), None)
    weights = _weights(spec)
    asked = Question(first["question"], first["gold"])
    return Group(
        run=run.name,
        step=first["step"],
        group=first["grp"],
        prompt=plain(first["prompt_name"] or ""),
        question=None if asked.question is None else shown(asked.question),
        gold=None if asked.gold is None else shown(asked.gold),
        cards=tuple(_card(study, asked, row, weights) for row in rows),
    )


def _weights(spec: ArmSpec | None) -> dict[str, float]:
    """Return an arm's weights; those of a reward of one's own stand in the plan."""
    if spec is None:
        return {}
    return dict(spec.components or resolve_arm(spec.name).components)


def _card(study: Study, asked: Question, row: sqlite3.Row, weights: dict[str, float]) -> Card:
    components: dict[str, dict[str, Any]] = json.loads(row["components"])
    return Card(
        id=row["id"],
        sample=row["sample"],
        tokens=row["tokens"],
        finish=row["finish"],
        reward=row["reward"],
        advantage=row["advantage"],
        components=tuple(
            Contribution(
                plain(name), told["value"], plain(told["status"]), weight,
                None if told["value"] is None else told["value"] * weight,
            )
            for name, told in components.items()
            for weight in (weights.get(name, 0.0),)
        ),
        historical=row["historical"],
        strict=row["strict"],
        lenient=row["lenient"],
        status=plain(row["status"]),
        formatted=bool(row["formatted"]),
        repetition=row["repetition"],
        reflection=tuple(plain(marker) for marker in json.loads(row["reflection"])),
        taken=taken(study.plan, asked, row["completion"], row["finish"], row["extracted"]),
    )  # fmt: skip
