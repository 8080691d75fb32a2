"""The evaluation stage: base, floor and every adapter, answered under one protocol."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ahalab.errors import InputError, MissingError
from ahalab.evaluate.protocol import generation_fields, make_protocol
from ahalab.evaluate.resume import AnswerSet, answers_finished, write_answers
from ahalab.plan.cells import FLOOR, Cell, answer_seed
from ahalab.records.base import decode_file, digest
from ahalab.records.plan import Plan
from ahalab.records.run import RunRecord
from ahalab.records.terms import Side
from ahalab.store.fingerprint import adapter_fingerprint, base_fingerprint, tokenizer_fingerprint
from ahalab.store.layout import AnswerPaths, StudyPaths
from ahalab.store.models import end_ids, load_model, resolve_model
from ahalab.store.reading import read_bytes
from ahalab.store.versions import versions
from ahalab.tasks.prepare import read_prompts
from ahalab.tasks.render import load_tokenizer, template_fingerprint

if TYPE_CHECKING:
    from ahalab.evaluate.backends.transformers import Generator

OnBatch = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Replayed:
    """One answer set that was generated again."""

    name: str
    equal: bool  # to the byte


def target_of(paths: StudyPaths, cell: Cell, under: str = "") -> AnswerPaths:
    """Return where the answers of a cell lie; `under` is `replay/` for a replay."""
    if cell.arm is not None and cell.seed is not None:
        return paths.answers(cell.arm, cell.seed, under)
    return paths.floor_answers if cell == FLOOR else paths.base_answers(under)


def answers_present(paths: StudyPaths, cell: Cell, under: str = "") -> bool:
    """Say, without torch, whether a cell's answers are sealed."""
    from ahalab.store.journal import read_journal
    from ahalab.store.reading import journal_path

    return read_journal(journal_path(target_of(paths, cell, under).answers)).seal is not None


class Evaluation:
    """The stage with its base loaded once."""

    def __init__(self, plan: Plan, paths: StudyPaths) -> None:
        self.plan = plan
        self.paths = paths
        self.folder = resolve_model(plan.model)
        self.prompts = read_prompts(paths, "eval")
        self.tokenizer = load_tokenizer(self.folder)
        self.model = load_model(plan.model, self.folder)
        self.base_digest = base_fingerprint(self.folder)
        ends = end_ids(self.model, self.tokenizer)
        self.generation = generation_fields(plan, ends, int(self.tokenizer.pad_token_id))
        self._generator: Generator | None = None

    @property
    def generator(self) -> Generator:
        """The backend, made when the first answer is needed."""
        from ahalab.evaluate.backends.transformers import Generator

        if self._generator is None:
            threads = self.plan.model.threads
            self._generator = Generator(self.model, self.tokenizer, self.generation, threads)
        return self._generator

    def evaluate(self, cell: Cell, on_batch: OnBatch, under: str = "") -> AnswerSet:
        """Bring one cell's answers to completion.

        Raises:
            InputError: The adapter is not the one that training left, or its base is another.
            ProtocolError: Answers were begun under another protocol.
        """
        answers = self._answer_set(cell, under)
        if answers_finished(answers):
            return answers
        if cell.arm is None:
            self.generator.use_base()
        else:
            self.generator.use_adapter(self._adapter(cell), self.plan.model.id)
        write_answers(answers, self.prompts, self.generator.generate, on_batch)
        return answers

    def replay(self, cell: Cell, on_batch: OnBatch) -> Replayed:
        """Generate a cell's answers again and compare them with the first ones, byte by byte."""
        again = self.evaluate(cell, on_batch, under="replay/")
        first = target_of(self.paths, cell).answers
        return Replayed(cell.name, read_bytes(first) == read_bytes(again.target.answers))

    def check_base(self) -> None:
        """Check at the end that the base's files did not change while it answered.

        Raises:
            InputError: They did.
        """
        found = base_fingerprint(self.folder)
        if found != self.base_digest:
            raise InputError(
                f"{self.folder}: expected the base {self.base_digest[:19]}... that the "
                "evaluation began "
                f"with, found {found[:19]}.... Its files changed meanwhile; evaluate again."
            )

    def _adapter(self, cell: Cell) -> Path:
        return self.paths.run(str(cell.arm), int(cell.seed or 0)).adapter

    def _run_record(self, cell: Cell) -> RunRecord:
        path = self.paths.run(str(cell.arm), int(cell.seed or 0)).record
        if not path.is_file():
            raise MissingError(
                f"{path}: expected a finished run, found none. Train it first: ahalab train."
            )
        return decode_file(path.read_bytes(), RunRecord, str(path))

    def _answer_set(self, cell: Cell, under: str) -> AnswerSet:
        adapter = None if cell.arm is None else self._checked_adapter(cell)
        weights = {
            "template": template_fingerprint(self.tokenizer),
            "tokenizer": tokenizer_fingerprint(self.folder),
            "base": self.base_digest,
            "adapter": adapter,
        }
        evaluation = self.plan.evaluation
        how: dict[str, Any] = {
            "generation": self.generation,
            "versions": versions(),
            "batch_size": evaluation.floor_batch_size if cell == FLOOR else evaluation.batch_size,
            "seed": answer_seed(self.plan, cell),
        }
        protocol = make_protocol(self.plan, self.prompts, weights, how)
        side: Side = "base" if cell.arm is None else "adapter"
        return AnswerSet(self.plan, self.paths, target_of(self.paths, cell, under), protocol, side)

    def _checked_adapter(self, cell: Cell) -> str:
        """Return the adapter's fingerprint, compared with the run's record as its base is."""
        record = self._run_record(cell)
        folder = self._adapter(cell)
        found = adapter_fingerprint(folder)
        for what, expected, actual in (
            ("adapter", record.adapter_digest, found),
            ("base", record.base_digest, self.base_digest),
            ("plan", record.plan_digest, digest(self.plan)),
        ):
            if expected != actual:
                raise InputError(
                    f"{folder}: expected {what} {expected[:19]}... (run.json), found "
                    f"{actual[:19]}.... "
                    "Restore it, or train again."
                )
        return found
