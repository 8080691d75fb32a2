"""Answers with a reflection marker, finished without it: the causal check of `ahalab reflect`.

Each answer is cut just before its first marker, and the side that wrote it finishes it from there,
twice: freely, which shows how far a continuation repeats an answer at all; and with every spelling
of the token that began the marker forbidden at the cut. Where that reflects again, it is cut before
the new marker, which may stand earlier, and so on, up to `TURNS` cuts. Nothing else is forbidden
anywhere, so no word is broken off in its middle. Rows are committed by the batch, as by
`resume.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ahalab.errors import IncompleteError, InputError, ProtocolError
from ahalab.evaluate.backends import Opening
from ahalab.evaluate.pair import Evaluation, OnBatch
from ahalab.evaluate.protocol import batch_seed, beyond_machine, require_same
from ahalab.plain_files import read_plain
from ahalab.plan.cells import Cell, rounds
from ahalab.plan.endpoint import backend_name
from ahalab.records.answer import Answer, Protocol
from ahalab.records.base import decode_file, digest, encode_pretty
from ahalab.records.plan import Plan
from ahalab.records.prompt import Prompt
from ahalab.records.reflection import Continuation, Ending, ReflectionProtocol, Turn
from ahalab.scoring.answers import Asked as Format
from ahalab.scoring.cuts import TURNS, Spellings, find_cut
from ahalab.scoring.reflection import MARKERS_VERSION, first_marker
from ahalab.store.durable import replace_file
from ahalab.store.journal import read_journal
from ahalab.store.layout import AnswerPaths, StudyPaths
from ahalab.store.lock import WriterLock
from ahalab.store.reading import journal_path, read_rows
from ahalab.store.rows import RowFile, RowWriter, finished
from ahalab.tasks.generation import Completion, graded
from ahalab.tasks.places import answer_paths
from ahalab.tasks.questions import asked_of

if TYPE_CHECKING:
    from ahalab.evaluate.backends.transformers import TransformersBackend

Finish = Callable[[Sequence[Opening], int], list[Completion]]


def continuations_file(plan: Plan, paths: StudyPaths, target: AnswerPaths) -> RowFile:
    """Return what the row file of one side's continuations is and belongs to."""
    broken = paths.broken / target.name
    return RowFile(target.answers, "continuation/1", digest(plan), target.name, broken)


def marked_answers(paths: StudyPaths, cell: Cell) -> list[Answer]:
    """Return the answers of a side that have a marker, in their order.

    Raises:
        IncompleteError: The side's answers are not finished.
    """
    target = answer_paths(paths, cell)
    if read_journal(journal_path(target.answers)).seal is None:
        raise IncompleteError(
            f"{target.answers}: expected whole answers of {cell.name} to cut, found none. Run: "
            "ahalab evaluate"
        )
    rows = [row for _, row in read_rows(target.answers, Answer)]
    return [row for row in rows if first_marker(row.completion) is not None]


class ReflectionCheck:
    """The base loaded once, for every side."""

    def __init__(self, plan: Plan, paths: StudyPaths) -> None:
        if backend_name(plan) != "transformers":
            raise InputError(
                "reflect --causal: expected evaluation.backend transformers, which can go on from "
                f"token ids with some of them forbidden, found {backend_name(plan)}. Without "
                "--causal it needs no model."
            )
        self.plan = plan
        self.paths = paths
        self.stage = Evaluation(plan, paths)
        self.prompts = {prompt.prompt_id: prompt for prompt in self.stage.prompts}

    @cached_property
    def backend(self) -> TransformersBackend:
        """What continues.

        Raises:
            InputError: The model's rows can't leave a batch.
        """
        from ahalab.evaluate.backends.transformers import TransformersBackend

        backend = self.stage.backend
        if not isinstance(backend, TransformersBackend) or backend.facts.decoder != "rows":
            raise InputError(
                f"reflect --causal: expected a model whose memory is a cache of keys and values, "
                f"found {self.plan.model.id}, which keeps a state of its own. Without --causal it "
                "needs no model."
            )
        return backend

    @cached_property
    def spellings(self) -> Spellings:
        """The vocabulary by what its tokens say."""
        tokenizer = self.stage.tokenizer
        return Spellings([self.text_of([token]) for token in range(len(tokenizer))])

    def text_of(self, ids: Sequence[int]) -> str:
        """Return the text of token ids, as in the answers."""
        text: str = self.stage.tokenizer.decode(list(ids), skip_special_tokens=True)
        return text

    def finish_answers(self, cells: Sequence[Cell], on_batch: OnBatch) -> None:
        """Bring the continuations of these sides to completion.

        Args:
            cells: Base and adapters.
            on_batch: Called with the number of continuations just committed.

        Raises:
            IncompleteError: A side's answers are not finished.
            InputError: Base or adapter are not those that answered.
            LockedError: Another process writes them.
            ProtocolError: The answers, or continuations that were begun, are of another protocol.
        """
        for cell in cells:
            marked = marked_answers(self.paths, cell)
            protocol = self._protocol(cell)
            target = self.paths.continuations(cell.name)
            with WriterLock(self.paths.lock(target.name)):
                if not self._begin(target, protocol):
                    self.backend.serve([self.stage.side_of(cell)])
                    self._write(target, protocol, marked, on_batch)
        self.stage.check_base()

    def _protocol(self, cell: Cell) -> ReflectionProtocol:
        """Return the protocol of one side's continuations.

        Raises:
            ProtocolError: The answers were made with other files than those at hand.
        """
        path = answer_paths(self.paths, cell).protocol
        answered = decode_file(read_plain(path), Protocol, str(path))
        (together,) = rounds(self.plan, [cell])
        here = self.stage.protocols(together)[together.index(cell)]
        differing = beyond_machine(answered, here)
        if differing:
            raise ProtocolError(
                f"{path}: expected answers of this plan and these files, found others: "
                f"{'; '.join(differing)}. Continue with the ahalab and the files that evaluated."
            )
        return ReflectionProtocol(
            answers=digest(answered),
            answering=replace(here, cells_per_batch=1, companions=()),
            markers=MARKERS_VERSION,
            turns=TURNS,
        )

    def _begin(self, target: AnswerPaths, protocol: ReflectionProtocol) -> bool:
        """Write the protocol, unless it stands there; say whether the rows are complete."""
        path = target.protocol
        if path.is_file():
            found = decode_file(read_plain(path), ReflectionProtocol, str(path))
            require_same(protocol.answering, found.answering, path)
            if found != protocol:
                raise ProtocolError(
                    f"{path}: expected continuations of the answers that lie there, by markers "
                    f"{protocol.markers}, found those of others (markers {found.markers}). Remove "
                    f"{path.parent} to generate them again."
                )
        elif read_journal(journal_path(target.answers)).batches:
            raise InputError(
                f"{path}: expected the protocol of the continuations that lie beside it, found "
                f"none. Restore it, or remove {path.parent} to generate them again."
            )
        else:
            replace_file(path, encode_pretty(protocol))
        return finished(continuations_file(self.plan, self.paths, target))

    def _write(
        self,
        target: AnswerPaths,
        protocol: ReflectionProtocol,
        marked: Sequence[Answer],
        on_batch: OnBatch,
    ) -> None:
        size, seed = protocol.answering.batch_size, protocol.answering.seed
        batches = [marked[at : at + size] for at in range(0, len(marked), size)]
        file = continuations_file(self.plan, self.paths, target)
        with RowWriter[Continuation](file) as writer:
            for number in range(len(writer.state.batches), len(batches)):
                writer.append(self._continue(protocol, batches[number], batch_seed(seed, number)))
                on_batch(len(batches[number]))
            writer.seal()

    def _continue(
        self, protocol: ReflectionProtocol, batch: Sequence[Answer], seed: int
    ) -> list[Continuation]:
        """Return the rows of one batch: continued freely, then cut until nothing reflects."""
        cuts = [
            _Cutting(self, place, answer, self.prompts[answer.prompt_id])
            for place, answer in enumerate(batch)
        ]
        for cut in cuts:
            cut.turn()
        kept = self.backend.finish([cut.opening(free=True) for cut in cuts], seed)
        left = cuts
        for _ in range(protocol.turns):
            done = self.backend.finish([cut.opening() for cut in left], seed)
            for cut, completion in zip(left, done, strict=True):
                cut.now = completion
            left = [cut for cut in left if first_marker(cut.now.text) is not None]
            if not left or len(left[0].turns) == protocol.turns:
                break
            for cut in left:
                cut.turn()
        asked, made_under = asked_of(self.plan.task, self.plan.answer_format), digest(protocol)
        return [
            Continuation(
                protocol=made_under,
                side=cut.answer.side,
                prompt_id=cut.answer.prompt_id,
                sample=cut.answer.sample,
                turns=tuple(cut.turns),
                kept=_ending(free, cut.prompt, asked),
                without=_ending(cut.now, cut.prompt, asked),
                reflects=first_marker(cut.now.text) is not None,
            )
            for cut, free in zip(cuts, kept, strict=True)
        ]


@dataclass(slots=True)
class _Cutting:
    """One answer on its way to a completion without a marker."""

    check: ReflectionCheck
    place: int  # in its batch
    answer: Answer
    prompt: Prompt
    turns: list[Turn] = field(default_factory=list)
    now: Completion = field(init=False)
    _forbidden: dict[int, set[int]] = field(default_factory=dict)  # by where they may not stand

    def __post_init__(self) -> None:
        """Begin with the answer as it was written."""
        self.now = Completion(
            self.answer.completion, self.answer.completion_ids, self.answer.finish
        )

    def turn(self) -> None:
        """Cut before the first marker of what stands now."""
        ids = self.now.ids or ()
        cut = find_cut(ids, self.now.text, self.check.text_of)
        if cut is None or cut.at >= len(ids):
            raise InputError(
                f"{self.answer.prompt_id} sample {self.answer.sample}: expected the text of its "
                "token ids, found another. `ahalab verify` tells more."
            )
        self._forbidden = {at: ids for at, ids in self._forbidden.items() if at <= cut.at}
        here = self._forbidden.setdefault(cut.at, set())
        here.update(self.check.spellings.of(ids[cut.at]))
        wrote = tuple(ids[cut.at : cut.end])
        forbidden = tuple(sorted(here))
        self.turns.append(Turn(at=cut.at, marker=cut.marker, wrote=wrote, forbidden=forbidden))

    def opening(self, *, free: bool = False) -> Opening:
        """Return what is finished next: from the first cut freely, or from the last one."""
        turn = self.turns[-1]
        ids = (self.now.ids or ())[: turn.at]
        return Opening(self.prompt.prompt_ids, ids, () if free else turn.forbidden, self.place)


def _ending(completion: Completion, prompt: Prompt, asked: Format) -> Ending:
    """Return a completion with its outcomes."""
    fields: dict[str, Any] = graded(completion, prompt, asked)
    del fields["prompt_id"]
    return Ending(**fields)
