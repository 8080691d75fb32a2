"""Finished runs and their rollouts, read a generation batch at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ahalab.errors import IncompleteError, InputError, RecordError
from ahalab.plain_files import read_plain
from ahalab.plan.cells import Cell, training_cells
from ahalab.plan.load import load_plan
from ahalab.plan.schedule import generation_batch, rollouts_after
from ahalab.records.base import decode_file
from ahalab.records.plan import Plan
from ahalab.records.prompt import Prompt
from ahalab.records.rollout import Rollout
from ahalab.records.run import RunRecord
from ahalab.scoring.arms import resolve_arm
from ahalab.store.layout import RunPaths, StudyPaths
from ahalab.store.reading import read_rows, stored_path
from ahalab.tasks.places import run_paths
from ahalab.tasks.prepare import read_prompts


@dataclass(frozen=True, slots=True)
class RunsStudy:
    """A study that runs are taken from."""

    plan: Plan
    paths: StudyPaths
    prompts: dict[str, Prompt]  # training prompts by id


@dataclass(frozen=True, slots=True)
class SavedRun:
    """One finished run."""

    study: RunsStudy
    paths: RunPaths
    record: RunRecord

    @property
    def group_size(self) -> int:
        """G."""
        return int(self.study.plan.grpo["num_generations"])

    def rollouts_before(self, steps: int | None) -> int:
        """Return how many rollouts were generated before so many steps were done; None: ever."""
        written = self.record.rollouts_written
        return written if steps is None else min(written, rollouts_after(self.study.plan, steps))


@dataclass(frozen=True, slots=True)
class FoundRuns:
    """The runs that were asked for."""

    runs: tuple[SavedRun, ...]  # in the order asked for, those of a study in plan order
    missing: tuple[str, ...]  # planned runs of a study that are not finished


def find_runs(places: Sequence[Path]) -> FoundRuns:
    """Find finished runs: a run's folder is that run, a study's or an arm's all of its runs.

    Raises:
        InputError: A place is none of these, or a run is not one of its study's plan.
        IncompleteError: A run is not finished, or none in the folder is.
        RecordError: A record is malformed, or not what the plan says.
    """
    studies: dict[Path, RunsStudy] = {}
    runs: dict[Path, SavedRun] = {}
    missing: list[str] = []
    for place in places:
        root = _study_root(place)
        if root not in studies:
            studies[root] = _open_study(root)
        study = studies[root]
        inside = place.resolve().relative_to(root).as_posix()
        cells = [c for c in training_cells(study.plan) if inside in (".", *_folders(c))]
        if not cells:
            raise InputError(
                f"{place}: expected a run of the plan, found {inside}. Name <study>, "
                "<study>/arms/ARM or <study>/arms/ARM/seed-S."
            )
        there = [cell for cell in cells if run_paths(study.paths, cell).record.is_file()]
        if not there:
            raise IncompleteError(
                f"{place}: expected a finished run, found none of {len(cells)}. Train it first: "
                f"ahalab train {root} --arm {cells[0].arm} --seed {cells[0].seed}"
            )
        for cell in there:
            runs.setdefault(root / cell.name, _open_run(study, cell))
        missing += [f"{study.plan.name}/{cell.name}" for cell in cells if cell not in there]
    return FoundRuns(tuple(runs.values()), tuple(dict.fromkeys(missing)))


def _folders(cell: Cell) -> tuple[str, ...]:
    """Return the folders below the study that hold a run: `arms`, `arms/ARM`, the run's own."""
    return ("arms", f"arms/{cell.arm}", cell.name)


def _study_root(place: Path) -> Path:
    if not place.is_dir():
        raise InputError(f"{place}: expected a folder of a run or of a study, found none.")
    resolved = place.resolve()
    for folder in (resolved, *resolved.parents[:3]):
        if StudyPaths(folder).plan.is_file():
            return folder
    raise InputError(
        f"{place}: expected a run's folder (<study>/arms/ARM/seed-S) or a study's, found no "
        "study.yaml there or up to three folders above."
    )


def _open_study(root: Path) -> RunsStudy:
    paths = StudyPaths(root)
    prompts = {prompt.prompt_id: prompt for prompt in read_prompts(paths, "train")}
    return RunsStudy(load_plan(paths.plan), paths, prompts)


def _open_run(study: RunsStudy, cell: Cell) -> SavedRun:
    """Read a run's record, and refuse one that was trained otherwise than the plan says."""
    paths = run_paths(study.paths, cell)
    record = decode_file(read_plain(paths.record), RunRecord, str(paths.record))
    spec = next(arm for arm in study.plan.arms if arm.name == cell.arm)
    components = dict(resolve_arm(spec.name, spec.components).components)
    for what, expected, found in (
        ("run", paths.name, f"arms/{record.arm}/seed-{record.seed}"),
        ("components", components, record.components),
        ("grpo", study.plan.grpo, record.requested_grpo),
    ):
        if found != expected:
            raise RecordError(
                f"{paths.record}: expected the {what} of the study's plan, {expected}, found "
                f"{found}. `ahalab verify` tells more."
            )
    return SavedRun(study, paths, record)


def generation_batches(run: SavedRun, steps: int | None) -> Iterator[list[Rollout]]:
    """Yield the rollouts of a run, a generation batch at a time, groups in a row.

    Args:
        run: The run.
        steps: Only batches generated before so many optimizer steps were done; None: all.

    Raises:
        InputError: There are no rollouts.
        RecordError: A row is malformed or stands in another place than the trainer's order gives
            it, or there are not as many rows as the run wrote; with `file:line`.
    """
    size, group_size = generation_batch(run.study.plan), run.group_size
    batch: list[Rollout] = []
    place = stored_path(run.paths.rollouts)
    number = 0
    for number, row in read_rows(run.paths.rollouts, Rollout):
        if steps is not None and row.step >= steps:
            break
        first = batch[len(batch) - len(batch) % group_size] if len(batch) % group_size else row
        expected = (
            batch[0].step if batch else row.step,
            len(batch) // group_size,
            first.prompt_id,
            len(batch) % group_size,
        )
        found = (row.step, row.group, row.prompt_id, row.sample)
        if found != expected or row.prompt_id not in run.study.prompts:
            raise RecordError(
                f"{place}:{number}: expected step, group, prompt and sample {expected} with a "
                f"training prompt, found {found}. `ahalab verify` tells more."
            )
        batch.append(row)
        if len(batch) == size:
            yield batch
            batch = []
    else:
        written = run.record.rollouts_written
        if number != written or batch:
            raise RecordError(
                f"{place}:{number}: expected {written} rollouts in batches of {size}, "
                f"found {number}. `ahalab verify` tells more."
            )
