"""The curves of training: figures of the steps, whole or from a cursor on."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

import msgspec

from ahalab.plan.cells import training_cells
from ahalab.plan.looks import arm_looks
from ahalab.records.step import Step
from ahalab.view.database import run_number
from ahalab.view.sources import Study
from ahalab.visible import plain

MAX_POINTS = 1_500  # of a run; a longer one is shown by every k-th step

# Figure of a step -> title, unit and heading. Each is drawn on a scale of its own.
FIGURES = {
    "reward_mean": ("Reward", "", "reward"),
    "reward_std": ("Reward, standard deviation", "", "reward"),
    "strict_fraction": ("Strict accuracy", "%", "accuracy"),
    "lenient_fraction": ("Lenient accuracy", "%", "accuracy"),
    "historical_fraction": ("Right by the training parser", "%", "accuracy"),
    "formatted_fraction": ("In the asked format", "%", "accuracy"),
    "scorer_disagreement_fraction": ("Scorers disagree", "%", "accuracy"),
    "zero_variance_fraction": ("Groups of equal rewards", "%", "groups"),
    "all_right_fraction": ("Groups all right", "%", "groups"),
    "mixed_fraction": ("Groups mixed", "%", "groups"),
    "all_wrong_fraction": ("Groups all wrong", "%", "groups"),
    "unique_completions": ("Distinct completions per group", "", "groups"),
    "length_mean_tokens": ("Length", "tokens", "text"),
    "length_right_tokens": ("Length, right", "tokens", "text"),
    "length_wrong_tokens": ("Length, wrong", "tokens", "text"),
    "truncated_fraction": ("Truncated", "%", "text"),
    "repetition_mean": ("Repetition", "%", "text"),
    "reflection_fraction": ("Reflection", "%", "text"),
    "loss": ("Loss", "", "optimiser"),
    "grad_norm": ("Gradient norm", "", "optimiser"),
    "entropy": ("Entropy", "nats", "optimiser"),
    "kl": ("KL", "nats", "optimiser"),
    "clip_low_fraction": ("Clipped low", "%", "optimiser"),
    "clip_high_fraction": ("Clipped high", "%", "optimiser"),
    "learning_rate": ("Learning rate", "", "optimiser"),
}


@dataclass(frozen=True, slots=True)
class Figure:
    """What one chart draws."""

    key: str
    title: str
    unit: str
    heading: str


@dataclass(frozen=True, slots=True)
class Look:
    """How an arm is drawn."""

    arm: str
    control: bool
    hue: int | None  # None: the control's grey
    dash: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Curve:
    """The new steps of one run."""

    run: str
    arm: int  # position among the looks
    seed: int
    steps: tuple[int, ...]
    values: dict[str, tuple[float | None, ...]]  # figure -> one per step


@dataclass(frozen=True, slots=True)
class Curves:
    """All figures from a cursor on."""

    cursor: str  # to ask from the next time
    whole: bool  # these are all steps: what was drawn before is to be dropped
    every: int  # 1: each step is here; k: every k-th
    figures: tuple[Figure, ...]
    looks: tuple[Look, ...]
    curves: tuple[Curve, ...]


def cursor_of(database: sqlite3.Connection) -> str:
    """Return what changes whenever steps are added or taken back: the last one, and their count."""
    last, count = database.execute("SELECT coalesce(max(id), 0), count(*) FROM step").fetchone()
    return f"{last}.{count}"


def curves(study: Study, database: sqlite3.Connection, since: str = "") -> Curves:
    """Return the figures of every run.

    Args:
        study: The study.
        database: Its index, in one read transaction.
        since: A cursor of an earlier answer; steps up to it are left out, unless some of those
            were since taken back.
    """
    cursor = cursor_of(database)
    after = _after(database, since)
    names = [name for (name,) in database.execute("SELECT name FROM component ORDER BY position")]
    figures = [Figure(key, *told) for key, told in FIGURES.items()]
    figures[1:1] = [
        Figure(f"component:{at}", plain(name), "", "reward") for at, name in enumerate(names)
    ]
    arms = list(arm_looks(study.plan).items())
    places = {arm: at for at, (arm, _) in enumerate(arms)}
    every = -(-int(study.plan.grpo["max_steps"]) // MAX_POINTS)  # the same from start to end
    found = []
    for cell in training_cells(study.plan):
        rows = database.execute(
            "SELECT figures FROM step WHERE run = ? AND id > ? AND step % ? = 0 ORDER BY step",
            (run_number(database, cell), after, every),
        )
        steps = [msgspec.json.decode(row[0], type=Step) for row in rows]
        arm, seed = cell.run
        found.append(
            Curve(
                run=cell.name,
                arm=places[arm],
                seed=seed,
                steps=tuple(step.step for step in steps),
                values=_values(steps, names) if steps else {},
            )
        )
    return Curves(
        cursor=cursor,
        whole=after == 0,
        every=every,
        figures=tuple(figures),
        looks=tuple(Look(plain(arm), look.hue is None, look.hue, look.dash) for arm, look in arms),
        curves=tuple(found),
    )


def _after(database: sqlite3.Connection, since: str) -> int:
    """Return the last step that the reader has; 0 where it has to begin anew."""
    last, _, count = since.partition(".")
    if not (last.isdecimal() and count.isdecimal() and len(since) < 40):
        return 0
    (still,) = database.execute("SELECT count(*) FROM step WHERE id <= ?", (int(last),)).fetchone()
    return int(last) if still == int(count) else 0


def _values(steps: list[Step], names: list[str]) -> dict[str, tuple[float | None, ...]]:
    values = {key: tuple(getattr(step, key) for step in steps) for key in FIGURES}
    for at, name in enumerate(names):
        column = tuple(step.components.get(name) for step in steps)
        if any(value is not None for value in column):
            values[f"component:{at}"] = column
    return {key: column for key, column in values.items() if any(v is not None for v in column)}
