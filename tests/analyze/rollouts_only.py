"""Writes a study that was trained and not yet evaluated, by the builder of the verifier's tests."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "verify"))

from ahalab.plan.cells import training_cells
from ahalab.plan.load import dump_plan, parse_plan
from ahalab.store.layout import StudyPaths
from study_builder import PLAN, write_prompts, write_run


def write_trained(root: Path, plan_text: str = PLAN, unfinished: tuple[str, ...] = ()) -> Path:
    """Write the plan, the prompts and every run but those named."""
    plan = parse_plan(plan_text, "plan")
    paths = StudyPaths(root)
    root.mkdir(parents=True)
    paths.plan.write_text(dump_plan(plan), encoding="utf-8")
    prompts = write_prompts(plan, paths)
    for cell in training_cells(plan):
        if cell.name not in unfinished:
            write_run(plan, paths, prompts, cell)
    return root
