"""Answers that were cut before their markers: each once, at its marker, and finished soundly."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from msgspec.structs import replace

from ahalab.plan.cells import BASE, Cell, training_cells
from ahalab.records.base import digest, to_plain
from ahalab.records.prompt import Prompt
from ahalab.records.reflection import Continuation, Ending, ReflectionProtocol, Turn
from ahalab.scoring.answers import SCORER_VERSION
from ahalab.scoring.cuts import TURNS, Spellings, find_cut
from ahalab.scoring.reflection import MARKERS_VERSION, first_marker, reflection_markers
from ahalab.store.layout import AnswerPaths
from ahalab.store.manifest import files_below
from ahalab.store.reading import journal_path, sealed_path
from ahalab.verify.answers import AnswerSet, Reply, Sets
from ahalab.verify.completions import Placed, check_end, check_grade, count_version
from ahalab.verify.journals import JournalFacts
from ahalab.verify.protocols import MACHINE, protocol_of
from ahalab.verify.reading import Study, differences

CHECK = "reflection"


@dataclass(frozen=True, slots=True)
class CutSide:
    """One side whose answers with a marker were finished without it."""

    rows: list[Continuation]
    whole: bool
    known: bool  # its markers are those of this version


Cuts = dict[Cell, CutSide]


def check_continuations(study: Study, journals: Mapping[str, JournalFacts], answers: Sets) -> Cuts:
    """Check what lies under reflection/; return what is there, by side."""
    found: Cuts = {}
    plan, tally = study.plan, study.ledger[CHECK]
    if plan is None:
        return found
    cells = [BASE, *training_cells(plan)]
    _check_files(study, [study.paths.continuations(cell.name) for cell in cells])
    for cell in cells:
        target = study.paths.continuations(cell.name)
        if not (study.present(target.answers) or target.protocol.exists()):
            continue
        protocol = study.record(target.protocol, ReflectionProtocol)
        if protocol is None or cell not in answers:
            what = "their protocol" if protocol is None else "the answers that were cut"
            name = study.stored_name(target.answers)
            study.ledger["arms.all"].fail(name, None, f"continuations, and {what}", "none")
            continue
        facts = journals.get(study.relative(target.answers))
        found[cell] = _Side(study, cell, target, protocol, answers[cell], facts).check()
    if not found:
        tally.passed()
        tally.note("no answer was cut")
    study.ledger.close((CHECK,))
    return found


def _check_files(study: Study, targets: Sequence[AnswerPaths]) -> None:
    """Refuse files that belong to no side of the plan."""
    known = {
        path
        for target in targets
        for path in (
            target.protocol, journal_path(target.answers), target.answers,
            sealed_path(target.answers),
        )
    }  # fmt: skip
    for _, path, _ in files_below(study.paths.reflections):
        if path not in known:
            place = study.relative(path)
            study.ledger["arms.all"].fail(place, None, "a side of the plan", "another file")


@dataclass
class _Side:
    """One side while its rows are checked."""

    study: Study
    cell: Cell
    target: AnswerPaths
    protocol: ReflectionProtocol
    answers: AnswerSet
    facts: JournalFacts | None

    @cached_property
    def name(self) -> str:
        """Return the file of the rows."""
        return self.study.stored_name(self.target.answers)

    @cached_property
    def spellings(self) -> Spellings | None:
        """Return the vocabulary; None without a tokenizer."""
        decoder = self.study.decoder
        return None if decoder is None else Spellings(decoder.vocabulary)

    def text_of(self, ids: Sequence[int]) -> str:
        """Return the text of token ids; a decoder must be there."""
        decoder = self.study.decoder
        return (decoder.text(ids) if decoder else None) or ""

    def check(self) -> CutSide:
        """Check protocol and rows."""
        self._check_protocol()
        rows = list(self.study.rows(self.target.answers, Continuation))
        known = self.protocol.markers == MARKERS_VERSION
        if not known:
            self.study.ledger[CHECK].not_checked(
                f"{self.name}: cut by markers of version {self.protocol.markers}, here is "
                f"{MARKERS_VERSION} (install that version of ahalab to check)"
            )
        sealed = self.facts is not None and self.facts.sealed
        whole = self._check_cover(rows, sealed) if known else sealed
        self._check_batches()
        prompts = {p.prompt_id: p for _, p in self.study.prompts("eval")}
        changed = 0
        for line, row in rows:
            changed += self._check_row(line, row, prompts.get(row.prompt_id), known)
        versions = (self.protocol.answering.scorer_version, SCORER_VERSION)
        count_version(self.study, "continuations", versions, changed, 2 * len(rows))
        return CutSide([row for _, row in rows], whole and sealed, known)

    def _check_protocol(self) -> None:
        """Compare with the protocol of the answers: what generates alone may be another's."""
        name = self.study.relative(self.target.protocol)
        answered = protocol_of(self.study, self.cell)
        if answered is None:
            return
        tally = self.study.ledger[CHECK]
        tally.expect(name, None, "answers", digest(answered), self.protocol.answers)
        tally.expect(name, None, "turns", TURNS, self.protocol.turns)
        here = self.protocol.answering
        tally.expect(name, None, "backend", "transformers", here.backend)
        tally.expect(name, None, "decoder", "rows", here.decoder)
        expected = replace(answered, cells_per_batch=1, companions=())
        ours, theirs = to_plain(expected), to_plain(here)
        for field in ours:
            if field in MACHINE:
                if ours[field] != theirs[field]:
                    tally.note(f"{name}: continued under another {field}")
                continue
            for what, a, b in differences(ours[field], theirs[field], 0.0, field):
                tally.fail(name, None, f"{what} as in the answers' protocol: {a}", b)

    def _check_cover(self, rows: Sequence[tuple[int, Continuation]], sealed: bool) -> bool:
        """Compare keys and order with the answers that have a marker; say whether all are there."""
        tally = self.study.ledger[CHECK]
        wanted = [k for k, r in self.answers.replies.items() if first_marker(r.completion)]
        found = [(row.prompt_id, row.sample) for _, row in rows]
        for at, (line, row) in enumerate(rows):
            expected = wanted[at] if at < len(wanted) else "no more answers with a marker"
            key = (row.prompt_id, row.sample)
            if not tally.expect(self.name, line, "answer with a marker", expected, key):
                return False  # everything after it is shifted
        if len(found) < len(wanted):
            missing = wanted[len(found)]
            if sealed:
                what = f"a continuation of {missing[0]}, sample {missing[1]}"
                tally.fail(self.name, None, what, "none")
            else:
                tally.incomplete(f"{self.name}: not every answer with a marker was cut yet")
        return len(found) == len(wanted)

    def _check_batches(self) -> None:
        """Compare the committed batches with the protocol's batch size."""
        size = self.protocol.answering.batch_size
        for batch in self.facts.batches_other_than(size) if self.facts else ():
            found = f"{batch.rows} in batch {batch.sequence}"
            self.study.ledger[CHECK].fail(self.name, None, f"batches of {size} answers", found)

    def _check_row(self, line: int, row: Continuation, prompt: Prompt | None, known: bool) -> int:
        """Check one row; return how many outcomes another scorer would change."""
        tally, changed = self.study.ledger["pair.key"], 0
        made_under = digest(self.protocol)
        tally.expect(self.name, line, "digest of the protocol beside it", made_under, row.protocol)
        tally.expect(self.name, line, "side", self.cell.side, row.side)
        for which, ending in (("kept", row.kept), ("without", row.without)):
            what = f"{row.prompt_id} sample {row.sample}, {which}"
            changed += self._check_ending(Placed(self.name, line, what, ending), ending, prompt)
        reply = self.answers.replies.get((row.prompt_id, row.sample))
        if known and reply is not None:
            self._check_turns(line, row, reply)
        return changed

    def _check_ending(self, placed: Placed, ending: Ending, prompt: Prompt | None) -> bool:
        """Check one completion; say whether another scorer would change its outcomes."""
        answering = self.protocol.answering
        limit = answering.generation.get("max_new_tokens")
        ends = answering.generation.get("eos_token_id")
        if isinstance(limit, int) and isinstance(ends, list):
            known = frozenset(i for i in ends if type(i) is int)
            check_end(self.study.ledger, placed, known, limit)
        place = (placed.file, placed.line)
        self.study.check_text(place, ending.completion_ids, ending.completion)
        if prompt is None:
            return False
        return check_grade(self.study, placed, prompt, answering.scorer_version)

    def _check_turns(self, line: int, row: Continuation, reply: Reply) -> None:
        """Check where an answer was cut, what was forbidden there, and what was finished."""
        tally, name, most = self.study.ledger[CHECK], self.name, self.protocol.turns
        reflects = first_marker(row.without.completion) is not None
        tally.expect(name, line, "reflects", reflects, row.reflects)
        least = most if reflects else 1
        if not max(1, least) <= len(row.turns) <= most:
            tally.fail(name, line, f"{least} to {most} turns", len(row.turns))
            return
        written = tuple(array("I", reply.ids or b""))
        for what, ids, at in (
            ("kept", row.kept.completion_ids, row.turns[0].at),
            ("without", row.without.completion_ids, min(turn.at for turn in row.turns)),
        ):
            begins = 0 <= at < len(ids) and ids[:at] == written[:at]
            tally.expect(name, line, f"{what}: the answer's own ids before the cut", True, begins)
        if self.spellings is None:
            tally.not_checked(f"{name}: cuts can't be checked without the study's tokenizer")
            return
        cut = find_cut(written, reply.completion, self.text_of)
        expected = None if cut is None else (cut.at, cut.marker, written[cut.at : cut.end])
        first = row.turns[0]
        what = "the first marker: tokens before it, its text, its ids"
        tally.expect(name, line, what, expected, (first.at, first.marker, first.wrote))
        self._check_forbidden(line, row, self.spellings)
        for number, turn in enumerate(row.turns):
            if all(later.at >= turn.at for later in row.turns[number:]):
                self._check_turn(line, row, number, turn)

    def _check_forbidden(self, line: int, row: Continuation, spellings: Spellings) -> None:
        """Check what each turn forbids: what began its marker, and what earlier ones forbade."""
        tally = self.study.ledger[CHECK]
        standing: dict[int, set[int]] = {}
        for number, turn in enumerate(row.turns, start=1):
            standing = {at: ids for at, ids in standing.items() if at <= turn.at}
            here = standing.setdefault(turn.at, set())
            possible = bool(turn.wrote) and turn.wrote[0] not in here
            what = f"turn {number}: wrote what was not forbidden there yet"
            tally.expect(self.name, line, what, True, possible)
            here.update(spellings.of(turn.wrote[0]) if turn.wrote else ())
            what = f"turn {number}: forbidden"
            tally.expect(self.name, line, what, tuple(sorted(here)), turn.forbidden)
            found = reflection_markers(turn.marker)
            tally.expect(self.name, line, f"turn {number}: a marker", found, (turn.marker,))

    def _check_turn(self, line: int, row: Continuation, number: int, turn: Turn) -> None:
        """Check a turn that no later one took back: its marker, and what stands there instead."""
        tally, place = self.study.ledger[CHECK], f"turn {number + 1}"
        ids = row.without.completion_ids
        wrote = (*ids[: turn.at], *turn.wrote)
        cut = find_cut(wrote, self.text_of(wrote), self.text_of)
        found = None if cut is None else (cut.at, cut.end, cut.marker)
        expected = (turn.at, len(wrote), turn.marker)
        tally.expect(self.name, line, f"{place}: its marker, and where", expected, found)
        begins = len(ids) > turn.at and ids[turn.at] not in turn.forbidden
        tally.expect(self.name, line, f"{place}: nothing forbidden at the cut", True, begins)
