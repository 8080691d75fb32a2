"""What lies in a study and has no place in its plan: answers, runs and adapters of others.

A plan fixes what is looked at: per arm and seed the adapter that its training left, answered once.
Whoever evaluates ten checkpoints and tells the best finds an "improvement" by chance in 15 % of
cases. The layout has one place for each planned set; anything else that holds answers is named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from ahalab.errors import RecordError
from ahalab.plan.cells import BASE, training_cells
from ahalab.records.plan import Plan
from ahalab.store.journal import read_journal
from ahalab.store.layout import StudyPaths
from ahalab.store.manifest import files_below
from ahalab.store.reading import journal_path

RUN_ROWS = ("rollouts", "steps", "timings", "validation", "answers")
# Of these a study has exactly the planned ones. Rows of another kind are not answers to questions.
LOOKS = ("answer/1", "validation/1", "rollout/1")
JOURNAL = ".journal.jsonl"
ADAPTER = re.compile(r"(?:^|/)(?:adapter_config\.json|[^/]*\.safetensors)$")
KEPT = re.compile(r"^rescored/scorer-[^/]+/")  # a rescore keeps sets under their own names
TEMPLATE = re.compile(r"^templates/[^/]+/(?:answers|prompts)$")  # the set names them all


def unplanned(plan: Plan, paths: StudyPaths) -> tuple[str, ...]:
    """Return what the plan does not have: row files of answers or runs, and folders of adapters.

    Validation during training is part of a plan that asks for it, and on other questions; a replay
    and answers kept by a rescore are of the planned adapters. None of these is named.

    Args:
        plan: The plan.
        paths: The study.

    Returns:
        Names as `arms/random/seed-0/checkpoint-40/answers`, in order.
    """
    cells = [cell.name for cell in training_cells(plan)]
    rows = {f"{cell}/{stem}" for cell in cells for stem in RUN_ROWS}
    rows |= {f"{BASE.name}/{stem}" for stem in ("answers", "floor")}
    rows |= {f"replay/{name}/answers" for name in (BASE.name, *cells)}
    rows |= {f"prompts/{split}" for split in ("train", "eval", "validation")}
    adapters = {f"{cell}/adapter" for cell in cells}
    return tuple(sorted({*_other_rows(paths, rows), *_other_adapters(paths, adapters)}))


def _other_rows(paths: StudyPaths, known: set[str]) -> Iterator[str]:
    for file, _, _ in files_below(paths.root):
        stored = file.removesuffix(".zst")
        if not stored.endswith(".jsonl") or stored.endswith(JOURNAL):
            continue
        name = stored.removesuffix(".jsonl")
        planned = KEPT.sub("", name)
        if planned in known or TEMPLATE.match(planned):
            continue
        if _schema(paths, stored) in (None, *LOOKS):
            yield name


def _schema(paths: StudyPaths, rows: str) -> str | None:
    """Return what a row file holds by its journal; None where nothing sound tells."""
    try:
        head = read_journal(journal_path(paths.root / rows)).head
    except (OSError, RecordError):
        return None
    return head.rows_schema if head is not None else None


def _other_adapters(paths: StudyPaths, known: set[str]) -> Iterator[str]:
    for file, _, _ in files_below(paths.root):
        folder = str(PurePosixPath(file).parent)
        if ADAPTER.search(file) and folder not in known:
            yield folder
