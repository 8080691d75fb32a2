"""Journals: each a chain of lines, over rows that are to the byte what was committed."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ahalab.errors import RecordError
from ahalab.records.base import decode_row
from ahalab.records.journal import JournalAttempt, JournalBatch, JournalHead, JournalLine
from ahalab.store.journal import JournalState
from ahalab.store.manifest import files_below
from ahalab.store.reading import journal_path
from ahalab.verify.reading import Study

NAMES = ("chain", "chain.run", "plan.first", "seal")
JOURNAL = ".journal.jsonl"
PROMPTS = "prompts"  # the folder; its files are named by their split
ROWS = {
    "answers": "answer/1",
    "floor": "answer/1",
    "rollouts": "rollout/1",
    "steps": "step/1",
    "timings": "timing/1",
    "validation": "validation/1",
    "prompts": "prompt/1",  # of a template
    "continuations": "continuation/1",
}
RESCORED = re.compile(r"^rescored/scorer-[^/]+/")
CLOCKS = ("timings",)  # no two clocks repeat
# The others are named by their folder.
NAMED_BY_FILE = ("answers", "floor", "prompts", "continuations")


@dataclass(slots=True)
class JournalFacts:
    """What other checks need of a journal."""

    state: JournalState
    attempts: list[JournalAttempt] = field(default_factory=list)

    @property
    def sealed(self) -> bool:
        """Whether no row may follow."""
        return self.state.seal is not None

    def batches_other_than(self, size: int) -> Iterator[JournalBatch]:
        """Yield the committed batches that do not hold so many rows; the last one may hold less."""
        batches = self.state.batches
        for batch in batches:
            last = batch is batches[-1] and self.sealed
            if not (1 <= batch.rows <= size if last else batch.rows == size):
                yield batch


def check_journals(study: Study) -> dict[str, JournalFacts]:
    """Check every row file that is there; return the journals by their rows' path (`x/y.jsonl`)."""
    facts = {}
    for rows in _row_files(study):
        name = study.relative(rows)
        journal = journal_path(rows)
        if not journal.is_file():
            study.ledger["chain"].fail(
                study.relative(journal), None, f"the journal of {name}", "none"
            )
            continue
        found = _read(study, journal)
        facts[name] = found
        _check_head(study, rows, found.state.head)
        _tell_changed(study, rows, found.state)
        if study.present(rows):
            _check_rows(study, rows, found.state)
        else:
            study.ledger["chain"].fail(name, None, "the rows that the journal commits", "no file")
    study.ledger.close(NAMES)
    return facts


def _row_files(study: Study) -> list[Path]:
    """Return the plain path of every row file, or of the rows that a journal speaks of."""
    found = set()
    for name, _, _ in files_below(study.root):
        plain = name.removesuffix(".zst")
        if plain.endswith(JOURNAL):
            found.add(plain.removesuffix(JOURNAL) + ".jsonl")
        elif plain.endswith(".jsonl"):
            found.add(plain)
    return [study.root / name for name in sorted(found)]


def _read(study: Study, path: Path) -> JournalFacts:
    """Read a journal as far as it is sound; the first fault ends it."""
    facts = JournalFacts(JournalState())
    name, ledger = study.relative(path), study.ledger
    for number, line in study.lines(path):
        if not line.endswith(b"\n"):
            facts.state.torn = line
            ledger["seal"].incomplete(f"{name}:{number}: a torn line, as a kill leaves it")
            break
        try:
            record: JournalLine = decode_row(line[:-1], JournalLine, "line")  # type: ignore[arg-type]
        except RecordError as error:
            study.fault(path, number, line, error)
            ledger["chain"].fail(name, number, "a journal line", "something else")
            break
        if isinstance(record, JournalAttempt):
            _check_attempt(study, (name, number), record, facts)
        try:
            facts.state.apply(record, "line")
        except RecordError as error:
            expected, _, found = str(error).removeprefix("line: expected ").partition(", found ")
            ledger["seal" if "seal" in str(error) else "chain"].fail(name, number, expected, found)
            break
        ledger["chain"].passed()
    return facts


def _check_attempt(
    study: Study, place: tuple[str, int], line: JournalAttempt, facts: JournalFacts
) -> None:
    expected = (len(facts.attempts) + 1, facts.state.rows, facts.state.end)
    found = (line.number, line.rows, line.bytes)
    study.ledger["attempts"].expect(*place, "attempt, rows and bytes", expected, found)
    facts.attempts.append(line)


def _tell_changed(study: Study, rows: Path, state: JournalState) -> None:
    """Say where rows that a resume cut came out otherwise: declared, no fault, and to be known."""
    if state.changed and rows.stem not in CLOCKS:
        study.ledger["attempts"].note(
            f"{study.relative(rows)}: {len(state.changed)} batches came out otherwise when they "
            f"were generated again after a resume, the first is batch {state.changed[0]}"
        )


def _check_head(study: Study, rows: Path, head: JournalHead | None) -> None:
    path = journal_path(rows)
    name, tally = study.relative(path), study.ledger["chain.run"]
    if head is None:
        study.ledger["seal"].incomplete(f"{name}: an empty journal")
        return
    if study.plan_digest is not None:  # the head is written before the first row
        study.ledger["plan.first"].expect(
            name, 1, "plan digest before the first row", study.plan_digest, head.plan_digest
        )
    stem = rows.name.removesuffix(".jsonl")
    folder = RESCORED.sub("", study.relative(rows.parent))  # kept copies bear their first names
    run = f"{folder}/{stem}" if folder == PROMPTS or stem in NAMED_BY_FILE else folder
    tally.expect(name, 1, "run", run, head.run)
    kind = "prompt/1" if folder == PROMPTS else ROWS.get(stem, "a known row file")
    tally.expect(name, 1, "schema of the rows", kind, head.rows_schema)


def _check_rows(study: Study, rows: Path, state: JournalState) -> None:
    """Compare the bytes of the rows with every committed batch and with the seal."""
    ledger, name = study.ledger, study.stored_name(rows)
    lines = _counted(study, rows)
    whole, at, number = hashlib.sha256(), 0, 0
    for batch in state.batches:
        part, first, count, size = hashlib.sha256(), number + 1, 0, batch.end - batch.start
        while size > 0 and (line := next(lines, None)) is not None:
            part.update(line)
            whole.update(line)
            size -= len(line)
            at, number, count = at + len(line), number + 1, count + 1
        if size != 0 or part.hexdigest() != batch.sha256 or count != batch.rows:
            ledger["chain"].fail(
                name, first, f"the {batch.rows} rows of batch {batch.sequence} as committed",
                f"{count} rows, other bytes" if count else "no rows",
            )  # fmt: skip
            return
        ledger["chain"].passed()
    tail = next(lines, None)
    if state.seal is None:
        ledger["seal"].incomplete(f"{name}: not sealed, the stage that writes it is not finished")
    elif tail is not None:
        ledger["seal"].fail(
            name, number + 1, "nothing after the seal", f"{len(tail)} bytes or more"
        )
    else:
        ledger["seal"].expect(
            name, None, "sha256 of the sealed rows", state.seal.sha256, whole.hexdigest()
        )


def _counted(study: Study, rows: Path) -> Iterator[bytes]:
    return (line for _, line in study.lines(rows))
