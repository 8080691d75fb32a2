"""The grid of a plan: every arm x seed, and the base with its noise floor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ahalab.errors import InputError
from ahalab.records.plan import Plan
from ahalab.records.terms import Side


@dataclass(frozen=True, slots=True)
class Cell:
    """One answer set of the grid, and, for an arm and seed, one training run."""

    name: str  # `base`, `floor`, or `arms/<arm>/seed-<s>`
    arm: str | None = None
    seed: int | None = None

    @property
    def trained(self) -> bool:
        """Whether it is an adapter's, and so a training run too."""
        return self.arm is not None and self.seed is not None

    @property
    def side(self) -> Side:
        """Which weights answer."""
        return "adapter" if self.trained else "base"

    @property
    def run(self) -> tuple[str, int]:
        """Arm and seed of a training run.

        Raises:
            ValueError: The cell is no training run.
        """
        if self.arm is None or self.seed is None:
            raise ValueError(f"{self.name}: expected a training run.")
        return self.arm, self.seed


def run_cell(arm: str, seed: int) -> Cell:
    """Return the cell of one arm and seed."""
    return Cell(f"arms/{arm}/seed-{seed}", arm, seed)


BASE = Cell("base")
FLOOR = Cell("floor")


def training_cells(plan: Plan) -> list[Cell]:
    """Return one cell per arm and seed, in plan order; the first arm's runs are the pilots."""
    return [run_cell(arm.name, seed) for arm in plan.arms for seed in plan.seeds]


def pilot_of(plan: Plan, cell: Cell) -> Cell | None:
    """Return the run that a cell's run follows: the first arm's, same seed; None for a pilot."""
    arm, seed = cell.run
    pilot = plan.arms[0].name
    return None if arm == pilot else run_cell(pilot, seed)


def answer_cells(plan: Plan) -> list[Cell]:
    """Return every answer set of the plan: the base, its noise floor, and each adapter."""
    return [BASE, FLOOR, *training_cells(plan)]


def rounds(plan: Plan, cells: Sequence[Cell]) -> list[tuple[Cell, ...]]:
    """Return the answer sets that share their batches, each round whole.

    Args:
        plan: The plan; its order and `cells_per_batch` fix the rounds, the floor stands alone.
        cells: What is wanted; a round is returned when it holds one of these.
    """
    size = plan.evaluation.cells_per_batch
    together = [BASE, *training_cells(plan)]
    every = [(FLOOR,), *(tuple(together[at : at + size]) for at in range(0, len(together), size))]
    every[:2] = every[1::-1]  # the base first: its protocol is the measure of every other
    return [found for found in every if any(cell in found for cell in cells)]


def answer_seed(plan: Plan, cell: Cell) -> int:
    """Return the seed of a cell's answers: the plan's, the next one for a sampled floor."""
    sampled = plan.evaluation.temperature > 0
    return plan.evaluation.seed + (1 if sampled and cell == FLOOR else 0)


def find_cell(plan: Plan, name: str) -> Cell:
    """Return the cell of a name.

    Raises:
        InputError: The plan has no such cell.
    """
    cells = {cell.name: cell for cell in answer_cells(plan)}
    if name not in cells:
        raise InputError(f"--cell: expected one of {', '.join(cells)}; found {name!r}.")
    return cells[name]
