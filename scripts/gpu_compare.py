"""What scripts/gpu_check.sh asks of a finished study; one line `what<TAB>found<TAB>verdict` each.

devices STUDY DEVICE: where the study says that it trained and answered.
answers STUDY BACKEND: its adapters and base answer again by a backend; the share of equal answers.
"""

from __future__ import annotations

import sys
from pathlib import Path

from msgspec.structs import replace

from ahalab.evaluate.backends import Batch, Side
from ahalab.evaluate.backends.choice import make_backend, tokenizer_of
from ahalab.evaluate.pair import target_of
from ahalab.plan.cells import BASE, Cell, training_cells
from ahalab.plan.load import load_plan
from ahalab.records.answer import Answer, Protocol
from ahalab.records.base import decode_file
from ahalab.records.run import RunRecord
from ahalab.store.layout import StudyPaths
from ahalab.store.models import resolve_model
from ahalab.store.reading import read_rows
from ahalab.tasks.generation import batches
from ahalab.tasks.prepare import read_prompts

ENOUGH = 0.9  # of greedy answers; below it a person should look why


def line(what: str, found: str, right: bool, wrong: str = "FAIL") -> None:
    """Print one row of the table."""
    print(what, found, "pass" if right else wrong, sep="\t")


def devices(root: Path, device: str) -> None:
    """Compare the devices on record with the one that was asked for."""
    paths, plan = StudyPaths(root), load_plan(root / "study.yaml")
    for cell in training_cells(plan):
        path = paths.run(str(cell.arm), int(cell.seed or 0)).record
        run = decode_file(path.read_bytes(), RunRecord, str(path))
        line(f"{cell.name} trained on", run.device, run.device.startswith(device))
    path = paths.base_answers().protocol
    protocol = decode_file(path.read_bytes(), Protocol, str(path))
    line("answers came from", protocol.device, protocol.device.startswith(device))


def answers(root: Path, backend_name: str) -> None:
    """Let a backend answer, and compare its texts with the study's."""
    paths, plan = StudyPaths(root), load_plan(root / "study.yaml")
    asked = replace(plan, evaluation=replace(plan.evaluation, backend=backend_name))
    folder = resolve_model(plan.model)
    backend = make_backend(asked, folder, tokenizer_of(asked, folder))
    prompts = read_prompts(paths, "eval")
    for cell in (BASE, *training_cells(plan)):
        backend.serve([side(paths, cell)])
        written = {}
        for number, pairs in enumerate(batches(prompts, 1, len(prompts))):
            for (prompt, _), completion in zip(
                pairs, backend.generate(Batch(tuple(pairs), number))[0], strict=True
            ):
                written[prompt.prompt_id] = completion.text
        rows = [row for _, row in read_rows(target_of(paths, cell).answers, Answer)]
        equal = sum(row.completion == written[row.prompt_id] for row in rows)
        share = equal / len(rows)
        found = f"{equal} of {len(rows)} equal ({100 * share:.1f} %)"
        line(f"{cell.name} by {backend.facts.name}", found, share >= ENOUGH, "look")


def side(paths: StudyPaths, cell: Cell) -> Side:
    """Return who answers in a cell."""
    if cell.arm is None:
        return Side(cell.name)
    return Side(cell.name, paths.run(cell.arm, int(cell.seed or 0)).adapter)


if __name__ == "__main__":
    what, study, name = sys.argv[1:]
    {"devices": devices, "answers": answers}[what](Path(study), name)
