"""The evaluation stage: base, floor and every adapter, answered under one protocol."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from ahalab.errors import InputError, MissingError
from ahalab.evaluate.adapter_check import require_sound_adapter
from ahalab.evaluate.backends import Backend, Kept, Side
from ahalab.evaluate.backends.choice import make_backend, tokenizer_of
from ahalab.evaluate.batch_size import batch_size_of
from ahalab.evaluate.partial import draw_partial
from ahalab.evaluate.protocol import (
    BatchPlan,
    Weights,
    make_protocol,
    require_replayable,
    with_adapters,
)
from ahalab.evaluate.resume import AnswerSet, answers_finished, write_answers
from ahalab.plain_files import read_plain
from ahalab.plan.cells import FLOOR, Cell, answer_seed, rounds
from ahalab.plan.evaluation import floor_size
from ahalab.records.answer import Protocol
from ahalab.records.base import decode_file, digest
from ahalab.records.plan import Plan
from ahalab.records.run import RunRecord
from ahalab.store.base_tensors import fingerprint_base, require_same_base
from ahalab.store.fingerprint import (
    adapter_fingerprint,
    base_tensors,
    tokenizer_fingerprint,
    weights_digest,
)
from ahalab.store.journal import read_journal
from ahalab.store.layout import AnswerPaths, StudyPaths
from ahalab.store.models import resolve_model
from ahalab.store.reading import journal_path
from ahalab.tasks.places import answer_paths, run_paths
from ahalab.tasks.prepare import read_prompts
from ahalab.tasks.render import template_fingerprint

OnBatch = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Asked:
    """What an evaluation is asked for, beyond the plan."""

    limit: int | None = None  # so many questions, drawn by seed: a partial evaluation
    batch_size: int | None = None  # where the plan leaves it open; None: by memory
    processes: int = 1  # that share this machine's memory
    into: StudyPaths | None = None  # where answers go; None: the study's own folder


def answers_present(paths: StudyPaths, cell: Cell, under: str = "") -> bool:
    """Say, without torch, whether a cell's answers are sealed."""
    return read_journal(journal_path(answer_paths(paths, cell, under).answers)).seal is not None


class Evaluation:
    """The stage with its base loaded once."""

    def __init__(self, plan: Plan, paths: StudyPaths, asked: Asked | None = None) -> None:
        asked = asked or Asked()
        self.plan = plan
        self.paths = paths
        self.folder = resolve_model(plan.model)
        self.limit = asked.limit
        self.prompts = read_prompts(paths, "eval")
        self.written = asked.into or paths  # where answers go
        begun = paths  # whose first answers fix the batch size
        if asked.limit is not None:
            self.prompts = draw_partial(self.prompts, asked.limit, plan.evaluation.seed)
            self.written = begun = paths.partial(asked.limit)
        self.tokenizer = tokenizer_of(plan, self.folder)
        self.tensors = fingerprint_base(paths, self.folder)
        self.weights = Weights(
            template=template_fingerprint(self.tokenizer),
            tokenizer=tokenizer_fingerprint(self.folder),
            base=weights_digest(self.tensors),
        )
        fixed = (asked.batch_size, asked.processes)
        self.batch_size = batch_size_of(plan, begun, self.folder, self.prompts, fixed)

    @cached_property
    def backend(self) -> Backend:
        """What answers, with the base loaded or greeted."""
        return make_backend(self.plan, self.folder, self.tokenizer)

    def answers_of(self, cells: Sequence[Cell]) -> int:
        """Return how many answers these cells come to, their rounds whole."""
        sides = sum(len(together) for together in rounds(self.plan, cells))
        return sides * len(self.prompts) * self.plan.evaluation.samples

    def answers_there(self, cells: Sequence[Cell], under: str = "") -> int:
        """Return how many of them are committed already."""
        every = [cell for together in rounds(self.plan, cells) for cell in together]
        return sum(
            read_journal(journal_path(answer_paths(self.written, cell, under).answers)).rows
            for cell in every
        )

    def evaluate(
        self, cells: Sequence[Cell], on_batch: OnBatch, under: str = ""
    ) -> list[AnswerSet]:
        """Bring the answers of these cells, and of those that share their batches, to completion.

        Raises:
            InputError: An adapter is not the one that training left, or its base is another.
            ProtocolError: Answers were begun under another protocol.
        """
        done = []
        for together in rounds(self.plan, cells):
            if under and FLOOR in together:
                continue
            sets = self._answer_sets(together, under)
            done += sets
            kept = [self._kept(answers.target) for answers in sets]
            if not all(answers_finished(answers) for answers in sets):
                pairs = zip(together, kept, strict=True)
                self.backend.serve([replace(self.side_of(cell), kept=at) for cell, at in pairs])
                write_answers(sets, self.prompts, self.backend.generate, on_batch)
            for place in kept:  # the rows are sealed
                place.path.unlink(missing_ok=True)
        return done

    def check_base(self) -> None:
        """Check at the end that the base did not change while it answered: files and memory.

        Raises:
            InputError: It did; the tensors are named.
        """
        found, since = base_tensors(self.folder), "this evaluation began with"
        require_same_base(self.tensors, found, self.folder, since)
        if "backend" in self.__dict__:  # loaded: something answered
            self.backend.check_weights()

    def _kept(self, target: AnswerPaths) -> Kept:
        """Return where a backend may keep what it has of an answer set: no evidence."""
        path = self.written.work / "replies" / f"{target.name.replace('/', '-')}.jsonl"
        return Kept(path, journal_path(target.answers))

    def _adapter(self, cell: Cell) -> Path:
        return run_paths(self.paths, cell).adapter

    def _run_record(self, cell: Cell) -> RunRecord:
        path = run_paths(self.paths, cell).record
        if not path.is_file():
            raise MissingError(
                f"{path}: expected a finished run, found none. Train it first: ahalab train."
            )
        return decode_file(read_plain(path), RunRecord, str(path))

    def protocols(self, together: Sequence[Cell]) -> list[Protocol]:
        """Return the protocol of every side of a round, its adapters checked.

        Raises:
            InputError: An adapter is not the one that training left, or its base is another.
        """
        adapters = [None if c.arm is None else self._checked_adapter(c) for c in together]
        evaluation, first = self.plan.evaluation, together[0]
        floor = evaluation.floor_batch_size or floor_size(self.batch_size)
        batch = BatchPlan(
            size=floor if first == FLOOR else self.batch_size,
            cells=evaluation.cells_per_batch,
            seed=answer_seed(self.plan, first),
            limit=self.limit,
        )
        shared = make_protocol(self.plan, self.prompts, self.weights, self.backend.facts, batch)
        return [with_adapters(shared, adapter, adapters) for adapter in adapters]

    def side_of(self, cell: Cell) -> Side:
        """Return who answers for a cell."""
        return Side(cell.name, None if cell.arm is None else self._adapter(cell))

    def _answer_sets(self, together: Sequence[Cell], under: str) -> list[AnswerSet]:
        """Return the answer sets of a round."""
        protocols = self.protocols(together)
        if under:
            for cell, protocol in zip(together, protocols, strict=True):
                require_replayable(protocol, answer_paths(self.paths, cell).protocol)
        return [
            AnswerSet(
                self.plan,
                self.written,
                answer_paths(self.written, cell, under),
                protocol,
                cell.side,
            )
            for cell, protocol in zip(together, protocols, strict=True)
        ]

    def _checked_adapter(self, cell: Cell) -> str:
        """Return the adapter's fingerprint, compared with the run's record as its base is."""
        record = self._run_record(cell)
        folder = self._adapter(cell)
        require_sound_adapter(folder, self.plan.model.id, record.effective_lora)
        found = adapter_fingerprint(folder)
        for what, expected, actual in (
            ("adapter", record.adapter_digest, found),
            ("base", record.base_digest, self.weights.base),
            ("plan", record.plan_digest, digest(self.plan)),
        ):
            if expected != actual:
                raise InputError(
                    f"{folder}: expected {what} {expected[:19]}... (run.json), found "
                    f"{actual[:19]}.... "
                    "Restore it, or train again."
                )
        return found
