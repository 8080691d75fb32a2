"""One answer set on disk: batch by batch, resumable to the byte."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ahalab.errors import InputError
from ahalab.evaluate.protocol import batch_seed, require_same
from ahalab.records.answer import Answer, Protocol
from ahalab.records.base import decode_file, digest, encode_pretty
from ahalab.records.plan import Plan
from ahalab.records.prompt import Prompt
from ahalab.records.terms import Side
from ahalab.store.durable import replace_file
from ahalab.store.journal import read_journal
from ahalab.store.layout import AnswerPaths, StudyPaths
from ahalab.store.lock import WriterLock
from ahalab.store.reading import journal_path
from ahalab.store.rows import RowFile, RowWriter, finished
from ahalab.tasks.generation import Completion, batches, graded
from ahalab.tasks.questions import asked_of

Generate = Callable[[list[tuple[int, ...]], int], list[Completion]]


@dataclass(frozen=True, slots=True)
class AnswerSet:
    """Where one answer set lies and how it comes about."""

    plan: Plan
    paths: StudyPaths
    target: AnswerPaths
    protocol: Protocol
    side: Side

    @property
    def file(self) -> RowFile:
        """What the row file is and belongs to."""
        broken = self.paths.broken / self.target.name
        path, name = self.target.answers, self.target.name
        return RowFile(path, "answer/1", digest(self.plan), name, broken)


def answers_finished(answers: AnswerSet) -> bool:
    """Say whether an answer set is complete under this very protocol.

    Raises:
        ProtocolError: It was begun under another one; the fields are named.
    """
    path = answers.target.protocol
    if not path.is_file():
        return False
    require_same(answers.protocol, decode_file(path.read_bytes(), Protocol, str(path)), path)
    return finished(answers.file)


def write_answers(
    answers: AnswerSet,
    prompts: list[Prompt],
    generate: Generate,
    on_batch: Callable[[int], None],
) -> None:
    """Generate, score and commit an answer set, from the first batch that is not committed.

    Args:
        answers: The set.
        prompts: The evaluation prompts, in order.
        generate: From token ids of a batch and its seed to completions.
        on_batch: Called with the number of answers just committed.

    Raises:
        ProtocolError: It was begun under another protocol.
        LockedError: Another process writes it.
        InputError: There are answers, and no protocol that tells how they came about.
    """
    if answers_finished(answers):
        return
    lock = answers.paths.work / "locks" / f"{answers.target.name.replace('/', '-')}.lock"
    with WriterLock(lock):
        if answers_finished(answers):  # by whoever held the lock until now
            return
        _require_protocol(answers)
        replace_file(answers.target.protocol, encode_pretty(answers.protocol))
        plan = batches(prompts, answers.protocol.samples, answers.protocol.batch_size)
        with RowWriter[Answer](answers.file) as writer:
            for number in range(len(writer.state.batches), len(plan)):
                pairs = plan[number]
                seed = batch_seed(answers.protocol.seed, number)
                completions = generate([prompt.prompt_ids for prompt, _ in pairs], seed)
                writer.append(score_pairs(answers, pairs, completions))
                on_batch(len(pairs))
            writer.seal()


def _require_protocol(answers: AnswerSet) -> None:
    """Refuse answers whose protocol is gone: under which one they were made, nothing tells."""
    path = answers.target.protocol
    if not path.is_file() and read_journal(journal_path(answers.target.answers)).batches:
        raise InputError(
            f"{path}: expected the protocol of the answers that lie beside it, found none. "
            "Restore it, or remove these answers and their journal to generate them again."
        )


def score_pairs(
    answers: AnswerSet, pairs: list[tuple[Prompt, int]], completions: list[Completion]
) -> list[Answer]:
    """Return the rows of one batch, each scored by the evaluation scorer."""
    asked = asked_of(answers.plan.task, answers.plan.answer_format)
    protocol = digest(answers.protocol)
    rows = []
    for (prompt, sample), completion in zip(pairs, completions, strict=True):
        fields = graded(completion, prompt, asked)
        rows.append(Answer(protocol=protocol, side=answers.side, sample=sample, **fields))
    return rows
