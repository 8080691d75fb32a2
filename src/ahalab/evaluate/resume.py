"""Answer sets on disk: batch by batch, resumable to the byte.

The sides of a round share every batch. A batch is generated whole, also when a kill left it with
some of its sides only: what stands is kept, what is missing is appended, and both come out of the
same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from ahalab.errors import InputError
from ahalab.evaluate.backends import Batch
from ahalab.evaluate.protocol import batch_seed, require_same
from ahalab.plain_files import read_plain
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

Generate = Callable[[Batch], list[list[Completion]]]


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

    @property
    def lock(self) -> WriterLock:
        """Held by whoever writes."""
        return WriterLock(self.paths.lock(self.target.name))


def answers_finished(answers: AnswerSet) -> bool:
    """Say whether an answer set is complete under this very protocol.

    Raises:
        ProtocolError: It was begun under another one; the fields are named.
    """
    path = answers.target.protocol
    if not path.is_file():
        return False
    require_same(answers.protocol, decode_file(read_plain(path), Protocol, str(path)), path)
    return finished(answers.file)


def write_answers(
    round_: Sequence[AnswerSet],
    prompts: list[Prompt],
    generate: Generate,
    on_batch: Callable[[int], None],
) -> None:
    """Generate, score and commit the answer sets of a round, from the first batch that one lacks.

    Args:
        round_: The sets whose rows share each batch; their protocols differ in adapters alone.
        prompts: The evaluation prompts, in order.
        generate: From a batch to the completions of each set.
        on_batch: Called with the number of answers just committed.

    Raises:
        ProtocolError: One was begun under another protocol.
        LockedError: Another process writes one.
        InputError: There are answers, and no protocol that tells how they came about.
    """
    with ExitStack() as stack:
        for answers in round_:
            stack.enter_context(answers.lock)
        writers: dict[int, RowWriter[Answer]] = {}  # by place in the round; none for a finished set
        for place, answers in enumerate(round_):
            if not answers_finished(answers):
                _require_protocol(answers)
                replace_file(answers.target.protocol, encode_pretty(answers.protocol))
                writers[place] = stack.enter_context(RowWriter[Answer](answers.file))
        if not writers:
            return
        protocol = round_[0].protocol
        plan = batches(prompts, protocol.samples, protocol.batch_size)
        for number in range(min(len(w.state.batches) for w in writers.values()), len(plan)):
            asked = tuple(plan[number])
            completions = generate(Batch(asked, batch_seed(protocol.seed, number)))
            for place, writer in writers.items():
                if len(writer.state.batches) == number:
                    writer.append(score_pairs(round_[place], asked, completions[place]))
                    on_batch(len(asked))
        for writer in writers.values():
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
    answers: AnswerSet, pairs: Sequence[tuple[Prompt, int]], completions: list[Completion]
) -> list[Answer]:
    """Return the rows of one batch, each scored by the evaluation scorer."""
    asked = asked_of(answers.plan.task, answers.plan.answer_format)
    protocol = digest(answers.protocol)
    rows = []
    for (prompt, sample), completion in zip(pairs, completions, strict=True):
        fields = graded(completion, prompt, asked)
        rows.append(Answer(protocol=protocol, side=answers.side, sample=sample, **fields))
    return rows
