"""The answers: every planned one once, in the batch plan's order, scored again."""

from __future__ import annotations

import dataclasses
import hashlib
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, zip_longest
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ahalab.plan.cells import BASE, FLOOR, Cell, answer_cells, training_cells
from ahalab.records.answer import Answer, Protocol
from ahalab.records.base import digest
from ahalab.records.plan import Plan
from ahalab.records.prompt import Prompt
from ahalab.records.terms import Finish, Metric, Outcome
from ahalab.scoring.answers import SCORER_VERSION
from ahalab.tasks.places import answer_paths
from ahalab.verify.checks import LISTED
from ahalab.verify.completions import (
    Placed,
    check_end,
    check_grade,
    count_version,
    tell_versions,
)
from ahalab.verify.journals import JournalFacts
from ahalab.verify.payments import paid
from ahalab.verify.protocols import REPLAY, end_ids_in, protocol_of, tells_ids
from ahalab.verify.reading import Study
from ahalab.verify.shares import Share

NAMES = (
    "arms.all",
    "cover",
    "row.unique",
    "regrade",
    "extract",
    "grade.status",
    "finish",
    "tokens",
    "tokens.text",
    "pair.key",
)
Key = tuple[str, int]


class Reply(msgspec.Struct, frozen=True, gc=False):  # light: there is one for every answer
    """What later checks need of one answer."""

    completion: str
    finish: Finish
    extracted: str | None
    strict: Outcome
    lenient: Outcome
    tokens: int | None  # None: an endpoint that tells no token ids
    ids: bytes | None  # token ids, four bytes each
    rule: str
    row: bytes  # digest of the whole row but for the digest of its protocol

    def outcome(self, metric: Metric) -> Outcome:
        """Return the outcome under one reading."""
        return self.strict if metric == "strict" else self.lenient


@dataclass(frozen=True, slots=True)
class AnswerSet:
    """One answer set: whole when every planned answer is there."""

    name: str  # as `arms/random/seed-0/answers`
    replies: dict[Key, Reply]
    whole: bool
    # What a cell's arm would pay for these answers, on average; None where that is not known.
    paid: dict[Cell, float | None] = field(default_factory=dict)

    @property
    def mean_tokens(self) -> float | None:
        """Tokens per answer; None where an endpoint tells no token ids."""
        counts = [reply.tokens for reply in self.replies.values()]
        known = [count for count in counts if count is not None]
        return sum(known) / len(known) if len(known) == len(counts) else None


@dataclass(slots=True)
class Rows:
    """One answer set while its rows are checked."""

    cell: Cell
    file: str
    plan: Plan
    prompts: list[Prompt]  # that were asked, in order
    protocol: Protocol
    rows: list[tuple[int, Answer]]


Sets = dict[Cell, AnswerSet]


def answers_to_check(
    study: Study, journals: Mapping[str, JournalFacts]
) -> tuple[list[Share], set[Cell]]:
    """Return the answer sets whose rows are to be checked, and the replays that need not be.

    Those are, to the byte and under the same protocol, what was evaluated.
    """
    shares: list[Share] = []
    same: set[Cell] = set()
    for cell in answer_cells(study.plan) if study.plan is not None else ():
        for under in ("",) if cell == FLOOR else ("", REPLAY):
            rows = answer_paths(study.paths, cell, under).answers
            if not study.present(rows):
                if not under:
                    name = study.stored_name(rows)
                    study.ledger["arms.all"].incomplete(f"{name}: not evaluated yet")
            elif under and _same_bytes(study, cell, journals):
                same.add(cell)
            elif _has_protocol(study, cell, under):
                shares.append(Share("answers", cell, under, journals.get(study.relative(rows))))
    return shares, same


def _has_protocol(study: Study, cell: Cell, under: str) -> bool:
    tally, path = study.ledger["arms.all"], answer_paths(study.paths, cell, under).protocol
    if protocol_of(study, cell, under) is not None:
        tally.passed()
        return True
    if not path.exists():
        tally.fail(study.relative(path), None, "the protocol of the answers", "none")
    return False


def check_answers(
    study: Study,
    journals: Mapping[str, JournalFacts],
    checked: Mapping[tuple[Cell, str], AnswerSet],
    same: Collection[Cell],
) -> tuple[Sets, Sets]:
    """Return every answer set that is there, and what was generated again.

    Args:
        study: The study.
        journals: By the rows' path.
        checked: The sets whose rows were checked, by cell, and `""` or `replay/`.
        same: Replays that are the evaluation's, to the byte.
    """
    found = {cell: answers for (cell, under), answers in checked.items() if not under}
    again = {cell: answers for (cell, under), answers in checked.items() if under}
    for cell in same:
        paths, first = answer_paths(study.paths, cell, REPLAY), found[cell]
        whole = first.whole and _sealed(study, journals, paths.answers)
        again[cell] = AnswerSet(paths.name, first.replies, whole)
    return found, again


def finish_answers(study: Study) -> None:
    """Close the checks of answers, once what was made of them is checked too."""
    tell_versions(study)
    study.ledger.close(NAMES)


def check_set(study: Study, share: Share) -> AnswerSet | None:
    """Check the rows of one answer set; needs nothing of the others."""
    cell, under, plan = share.cell, share.under, study.plan
    paths, protocol = answer_paths(study.paths, cell, under), protocol_of(study, cell, under)
    if protocol is None or plan is None:
        return None
    prompts = [prompt for _, prompt in study.prompts("eval")]
    name, listed = study.stored_name(paths.answers), list(study.rows(paths.answers, Answer))
    rows = Rows(cell, name, plan, prompts, protocol, listed)
    answers = check_rows(study, rows, paths.name, share.journal)
    if under or not answers.whole or cell == FLOOR or study.grader is None:
        return answers
    cells = training_cells(plan) if cell == BASE else [cell]
    replies = [(key, (reply.completion, reply.finish)) for key, reply in answers.replies.items()]
    return dataclasses.replace(answers, paid=paid(study.grader, plan, prompts, replies, cells))


def check_rows(study: Study, rows: Rows, name: str, facts: JournalFacts | None) -> AnswerSet:
    """Check the rows of an answer set against its prompts, its protocol and its journal."""
    sealed = facts is not None and facts.sealed
    whole = _check_cover(study, rows, sealed)
    if facts is not None:
        _check_batches(study, rows, facts)
    _check_each(study, rows)
    replies = {(row.prompt_id, row.sample): _reply(row) for _, row in rows.rows}
    return AnswerSet(name, replies, whole and sealed)


def _sealed(study: Study, journals: Mapping[str, JournalFacts], rows: Path) -> bool:
    facts = journals.get(study.relative(rows))
    return facts is not None and facts.sealed


def _reply(row: Answer) -> Reply:
    return Reply(
        completion=row.completion,
        finish=row.finish,
        extracted=row.extracted,
        strict=row.strict,
        lenient=row.lenient,
        tokens=None if row.completion_ids is None else len(row.completion_ids),
        ids=_packed(row.completion_ids) if row.completion_ids is not None else None,
        rule=row.rule,
        row=hashlib.blake2b(
            msgspec.json.encode(replace(row, protocol="")), digest_size=16
        ).digest(),
    )


def _packed(ids: tuple[int, ...]) -> bytes | None:
    """Return token ids as bytes, four each; None for numbers no token has, told by `tokens`."""
    try:
        return array("I", ids).tobytes()
    except OverflowError:
        return None


def _check_cover(study: Study, answers: Rows, sealed: bool) -> bool:
    """Compare keys and their order with the batch plan; say whether all are there."""
    ledger, samples = study.ledger, answers.plan.evaluation.samples
    order = sorted(answers.prompts, key=lambda prompt: prompt.prompt_tokens)
    asked, seen, planned = {prompt.prompt_id for prompt in order}, set(), 0
    for line, row in answers.rows:
        key = (row.prompt_id, row.sample)
        wanted = row.prompt_id in asked and 0 <= row.sample < samples
        if key in seen:
            ledger["row.unique"].fail(answers.file, line, "each answer once", key)
        elif not wanted:
            ledger["cover"].fail(answers.file, line, "a planned prompt and sample", key)
        planned += wanted and key not in seen
        seen.add(key)
    ledger["row.unique"].passed(len(seen))
    ledger["cover"].passed(planned)
    whole = planned == len(asked) * samples
    if not whole and sealed:
        absent = (key for key in _planned(order, samples) if key not in seen)
        for prompt_id, sample in islice(absent, LISTED):
            what = f"an answer to {prompt_id}, sample {sample}"
            ledger["cover"].fail(answers.file, None, what, "none")
    elif not whole:
        ledger["cover"].incomplete(f"{answers.file}: not every answer is there yet")
    places = _planned(order, samples)
    for line, row in answers.rows:
        expected, found = next(places, None), (row.prompt_id, row.sample)
        if not ledger["pair.key"].expect(answers.file, line, "prompt and sample", expected, found):
            break  # everything after it is shifted
    return whole and len(answers.rows) == planned


def _planned(order: Sequence[Prompt], samples: int) -> Iterator[Key]:
    """Yield prompt and sample of every answer, in order."""
    return ((prompt.prompt_id, sample) for prompt in order for sample in range(samples))


def _check_batches(study: Study, answers: Rows, facts: JournalFacts) -> None:
    """Compare the committed batches with the protocol's batch size."""
    size = answers.protocol.batch_size
    study.ledger["protocol"].passed(len(facts.state.batches))
    for batch in facts.batches_other_than(size):
        found = f"{batch.rows} in batch {batch.sequence}"
        study.ledger["pair.key"].fail(answers.file, None, f"batches of {size} answers", found)


def _check_each(study: Study, answers: Rows) -> None:
    ledger, name = study.ledger, answers.file
    protocol, version = digest(answers.protocol), answers.protocol.scorer_version
    prompts = {p.prompt_id: p for p in answers.prompts}
    generation, would_change = answers.protocol.generation, 0
    limit = generation.get("max_new_tokens", generation.get("max_tokens"))
    known_ends, told = end_ids_in(answers.protocol), tells_ids(answers.plan)
    for line, row in answers.rows:
        placed = Placed(name, line, f"{row.prompt_id} sample {row.sample}", row)
        ledger["pair.key"].expect(
            name, line, "digest of the protocol beside it", protocol, row.protocol
        )
        ledger["pair.key"].expect(name, line, "side", answers.cell.side, row.side)
        if told != (row.completion_ids is not None):
            ledger["tokens"].fail(
                name, line, "completion ids" if told else "no completion ids", row.completion_ids
            )
        elif isinstance(limit, int) and known_ends is not None:  # else told by `protocol`
            check_end(ledger, placed, known_ends, limit)
        study.check_text((name, line), row.completion_ids, row.completion)
        prompt = prompts.get(row.prompt_id)
        if prompt is not None:
            would_change += check_grade(study, placed, prompt, version)
    versions = (version, SCORER_VERSION)
    count_version(study, "answers", versions, would_change, len(answers.rows))


def _same_bytes(study: Study, cell: Cell, journals: Mapping[str, JournalFacts]) -> bool:
    """Compare a replay with the first answers, byte by byte, where both have one protocol."""
    first, again = (answer_paths(study.paths, cell, under).answers for under in ("", REPLAY))
    protocol = protocol_of(study, cell)
    if protocol is None or protocol != protocol_of(study, cell, REPLAY):
        return False
    equal = _equal_bytes(study, cell, sealed=_sealed(study, journals, again))
    return equal and study.present(first)


def _equal_bytes(study: Study, cell: Cell, *, sealed: bool) -> bool:
    """Compare the rows of a replay with the evaluation's; what is not sealed may end earlier."""
    first, again = (answer_paths(study.paths, cell, under).answers for under in ("", REPLAY))
    tally, name = study.ledger["replay"], study.stored_name(again)
    pairs = zip_longest(study.lines(first), study.lines(again))
    for number, (ours, theirs) in enumerate(pairs, start=1):
        if ours != theirs:
            if theirs is None and not sealed:
                return False
            expected = f"line {number} of {study.stored_name(first)}"
            tally.fail(
                name,
                number,
                expected,
                "other bytes" if ours and theirs else "another number of rows",
            )
            return False
        tally.passed()
    return True
