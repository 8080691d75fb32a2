"""Reads the answer sets of a study and lines them up by question."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
from msgspec import UNSET
from msgspec.structs import replace

from ahalab.analyze.protocols import check_allowed, require_comparable
from ahalab.errors import IncompleteError, ProtocolError, RecordError
from ahalab.plain_files import read_plain
from ahalab.plan.cells import training_cells
from ahalab.records.answer import Answer, Protocol
from ahalab.records.base import decode_file, digest
from ahalab.records.comparison import AllowedDifference, PassAt, ReadingRates
from ahalab.records.plan import Plan
from ahalab.records.prompt import Prompt
from ahalab.records.terms import Metric, Outcome
from ahalab.statistics.passk import mean_pass_at_k
from ahalab.store.journal import read_journal
from ahalab.store.layout import AnswerPaths, StudyPaths
from ahalab.store.reading import journal_path, read_rows
from ahalab.tasks.places import answer_paths
from ahalab.tasks.prepare import read_prompts
from ahalab.tasks.text import normalised
from ahalab.tasks.unplanned import unplanned

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Answers:
    """One answer set, keyed by (prompt_id, sample)."""

    name: str
    protocol: Protocol
    rows: dict[tuple[str, int], Answer]

    def correct(self, metric: Metric, order: list[str], samples: int) -> FloatArray:
        """Return correctness, 0 or 1, shape (N, K), by question and sample.

        Pairing is by key, never by position in the file.
        """
        return np.array(
            [
                [float(getattr(self.rows[prompt, j], metric) == "correct") for j in range(samples)]
                for prompt in order
            ]
        )

    def rates(self, ks: Sequence[int] = ()) -> ReadingRates:
        """Count the outcomes of both readings; with several answers a question, pass@k for ks."""
        strict: dict[Outcome, int] = {}
        lenient: dict[Outcome, int] = {}
        for row in self.rows.values():
            strict[row.strict] = strict.get(row.strict, 0) + 1
            lenient[row.lenient] = lenient.get(row.lenient, 0) + 1
        ids = [row.completion_ids for row in self.rows.values()]
        tokens = None if None in ids else sum(len(i) for i in ids if i is not None)
        return ReadingRates(
            answers=self.name,
            n=len(self.rows),
            strict=dict(sorted(strict.items())),
            lenient=dict(sorted(lenient.items())),
            mean_tokens=None if tokens is None else tokens / len(self.rows),
            pass_at=tuple(self._pass_at(k) for k in ks) or UNSET,
        )

    def _pass_at(self, k: int) -> PassAt:
        answers = Counter(prompt for prompt, _ in self.rows)

        def mean(metric: Metric) -> float:
            right = Counter(
                prompt
                for (prompt, _), row in self.rows.items()
                if getattr(row, metric) == "correct"
            )
            return mean_pass_at_k([right[p] for p in answers], list(answers.values()), k)

        return PassAt(k=k, strict=mean("strict"), lenient=mean("lenient"))


@dataclass(frozen=True)
class StudyAnswers:
    """Every answer set of a study that is there, all under one protocol but for what is allowed."""

    plan: Plan
    prompts: list[Prompt]
    base: Answers
    floor: Answers | None
    adapters: dict[tuple[str, int], Answers]  # (arm, seed)
    missing: tuple[str, ...]  # planned cells without answers
    allowed: tuple[AllowedDifference, ...] = ()  # exceptions that were asked for and made
    unplanned: tuple[str, ...] = ()  # answer sets, runs and adapters that the plan does not have

    @cached_property
    def order(self) -> list[str]:
        """Prompt ids, in order."""
        return [p.prompt_id for p in self.prompts]

    @cached_property
    def clusters(self) -> list[str]:
        """One label per question: questions that occur twice are one cluster."""
        return [normalised(p.question) for p in self.prompts]

    @property
    def exceptions(self) -> tuple[str, ...]:
        """Fields in which the protocols differ by an exception, in order."""
        return tuple(sorted({allowed.field for allowed in self.allowed}))

    def correct(self, answers: Answers, metric: Metric) -> FloatArray:
        """Return correctness of an answer set, shape (N, K)."""
        return answers.correct(metric, self.order, self.plan.evaluation.samples)

    def seeds_of(self, arm: str) -> list[int]:
        """Return the plan's seeds for which an arm has answers."""
        return [seed for seed in self.plan.seeds if (arm, seed) in self.adapters]


def expected_keys(plan: Plan, prompts: Sequence[Prompt]) -> set[tuple[str, int]]:
    """Return (prompt_id, sample) of every answer that a set must have."""
    return {(p.prompt_id, j) for p in prompts for j in range(plan.evaluation.samples)}


def load_study_answers(plan: Plan, paths: StudyPaths, allow: Sequence[str] = ()) -> StudyAnswers:
    """Read every answer set of a study.

    Args:
        plan: The plan.
        paths: The study.
        allow: Fields of the protocol in which the sets may differ.

    Raises:
        InputError: A field of `allow` is none, or one that is never an exception.
        IncompleteError: The base, or every adapter, has no answers yet.
        ProtocolError: Two sets were made under different protocols, or under another plan; the
            fields are named.
        RecordError: A row is malformed, doubled or missing, with `file:line`.
    """
    prompts = read_prompts(paths, "eval")
    expected = expected_keys(plan, prompts)
    base = load_answers(paths.base_answers(), expected)
    if base is None:
        raise IncompleteError(f"{paths.root}: the base has no answers yet. Run: ahalab evaluate")
    if base.protocol.plan_digest != digest(plan):
        raise ProtocolError(
            f"{paths.base_answers().protocol}: expected answers to the plan {digest(plan)}, found "
            f"answers to {base.protocol.plan_digest}. A plan is fixed before the first answer: "
            "restore study.yaml, or use a new --out."
        )
    check_allowed(allow, base.protocol)
    adapters, missing = {}, []
    allowed: list[AllowedDifference] = []
    for cell in training_cells(plan):
        answers = load_answers(answer_paths(paths, cell), expected)
        if answers is None:
            missing.append(cell.name)
        else:
            allowed += require_comparable(base, answers, allow)
            adapters[cell.run] = answers
    if not adapters:
        raise IncompleteError(f"{paths.root}: no adapter has answers yet. Run: ahalab evaluate")
    floor = load_answers(paths.floor_answers, expected)
    if floor is not None:  # the batch plan is the one difference a floor has, and is for
        ours = base.protocol
        same = replace(floor.protocol, batch_size=ours.batch_size, seed=ours.seed)
        level = dataclasses.replace(floor, protocol=same)
        allowed = require_comparable(base, level, allow) + allowed
    beyond = unplanned(plan, paths)
    return StudyAnswers(
        plan, prompts, base, floor, adapters, tuple(missing), tuple(allowed), beyond
    )


def load_answers(paths: AnswerPaths, expected: set[tuple[str, int]]) -> Answers | None:
    """Return a sealed answer set; None when it is not finished.

    Raises:
        ProtocolError: A row was made under another protocol than the one beside it.
        RecordError: A row is malformed, doubled or missing, with `file:line`.
    """
    if read_journal(journal_path(paths.answers)).seal is None:
        return None
    protocol = decode_file(read_record(paths.protocol), Protocol, str(paths.protocol))
    made_under = digest(protocol)
    rows: dict[tuple[str, int], Answer] = {}
    for number, row in read_rows(paths.answers, Answer):
        key = (row.prompt_id, row.sample)
        if key in rows or key not in expected:
            fault = "twice" if key in rows else "though it is not in the prompt set"
            raise RecordError(f"{paths.answers}:{number}: answer {key} stands there {fault}.")
        if row.protocol != made_under:
            raise ProtocolError(
                f"{paths.answers}:{number}: expected an answer under {paths.protocol.name} "
                f"({made_under}), found one under {row.protocol}."
            )
        rows[key] = row
    if len(rows) != len(expected):
        gap = min(expected - rows.keys())
        raise RecordError(
            f"{paths.answers}: expected {len(expected)} answers, found {len(rows)}; missing: {gap}."
        )
    return Answers(paths.name, protocol, rows)


def read_record(path: Path) -> bytes:
    """Return the bytes of a single-record file.

    Raises:
        RecordError: It is not there.
    """
    try:
        return read_plain(path)
    except OSError as error:
        raise RecordError(
            f"{path}: expected a record, found: {error.strerror}. Restore the file."
        ) from error
