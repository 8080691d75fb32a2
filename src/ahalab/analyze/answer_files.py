"""Reads one file of answers, in a study or alone: our own rows, or those of `ahalab score`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from ahalab.analyze.answers import read_record
from ahalab.errors import IncompleteError, InputError, ProtocolError, RecordError
from ahalab.records.answer import Answer, Protocol
from ahalab.records.base import decode_file, decode_row, digest
from ahalab.records.foreign import read_json
from ahalab.records.pair import ScoredRow
from ahalab.records.terms import Outcome, Side
from ahalab.store.journal import read_journal
from ahalab.store.layout import AnswerPaths
from ahalab.store.reading import journal_path, read_lines, sealed_path

Kind = Literal["answers", "scores"]


@dataclass(frozen=True, slots=True)
class Row:
    """What a comparison needs of one answer."""

    place: str  # file:line
    strict: Outcome
    lenient: Outcome


@dataclass(frozen=True, slots=True)
class AnswerFile:
    """One file of answers, keyed by (prompt id, sample)."""

    name: str  # the path, as it was given
    kind: Kind
    protocol: Protocol | None  # None: none lies beside the file
    side: Side | None  # which weights answered, where the rows say
    rows: dict[tuple[str, int], Row]


def read_answer_file(given: Path) -> AnswerFile:
    """Read a file of answers, plain or compressed (`.zst`), with the protocol beside it if any.

    Raises:
        InputError: There is no such file, or the plain and the compressed form are both there.
        RecordError: A row is malformed or stands there twice, with `file:line`.
        ProtocolError: Rows were made under another protocol than the one beside them.
        IncompleteError: The journal beside the file says that it is not finished.
    """
    path = _row_path(given)
    journal = read_journal(journal_path(path))
    if journal.head is not None and journal.seal is None:
        raise IncompleteError(
            f"{given}: expected finished answers, found {journal.rows} of an evaluation that goes "
            "on. Finish it: ahalab evaluate STUDY"
        )
    beside = AnswerPaths(path, str(given)).protocol
    protocol = None
    if beside.is_file():
        protocol = decode_file(read_record(beside), Protocol, str(beside))
    kind: Kind | None = None
    rows: dict[tuple[str, int], Row] = {}
    made_under, side = None if protocol is None else digest(protocol), None
    for number, line in read_lines(path):
        place = f"{given}:{number}"
        kind = kind or _kind(line)
        if kind == "answers":
            answer = decode_row(line, Answer, place)
            made_under, side = made_under or answer.protocol, side or answer.side
            _same_origin(place, answer, made_under, side)
            row = Row(place, answer.strict, answer.lenient)
            _add(rows, (answer.prompt_id, answer.sample), row)
        else:
            scored = _scored(line, place)
            row = Row(place, scored.strict, scored.lenient)
            _add(rows, (str(scored.id), scored.sample), row)
    if kind is None:
        raise RecordError(f"{given}: expected rows of answers, found an empty file.")
    return AnswerFile(str(given), kind, protocol, side, rows)


def _row_path(given: Path) -> Path:
    """Return the plain path of a row file, whichever form was named."""
    if given.suffix == ".zst":
        if not given.is_file():
            raise InputError(f"{given}: expected a file of answers, found none.")
        plain = given.with_suffix("")
        if plain.exists():
            raise InputError(
                f"{given}: expected one form of the file, found {plain.name} beside it. Name that "
                "one, or move it away."
            )
        return plain
    if given.is_dir():
        raise InputError(
            f"{given}: expected a file of answers (JSONL), found a folder. Name a study's "
            "answers.jsonl, or what `ahalab score --format json` printed."
        )
    if not given.is_file() and not sealed_path(given).is_file():
        raise InputError(
            f"{given}: expected a file of answers (JSONL), found none. Name a study's "
            "answers.jsonl, or what `ahalab score --format json` printed."
        )
    return given


def _kind(line: bytes) -> Kind:
    """Tell our own rows from those of `ahalab score` by the first row's first field."""
    return "answers" if line.startswith(b'{"schema":') else "scores"


def _same_origin(place: str, answer: Answer, made_under: str, side: Side) -> None:
    if answer.protocol != made_under:
        raise ProtocolError(
            f"{place}: expected an answer under {made_under}, found one under {answer.protocol}. "
            "A file of answers holds one evaluation of one model."
        )
    if answer.side != side:
        raise RecordError(
            f"{place}: expected an answer of the {side}, found one of the {answer.side}."
        )


def _add(rows: dict[tuple[str, int], Row], key: tuple[str, int], row: Row) -> None:
    if (before := rows.get(key)) is not None:
        prompt, sample = key
        raise RecordError(
            f"{row.place}: expected each answer once, found sample {sample} of {prompt!r} again "
            f"(first at line {before.place.rpartition(':')[2]}). Rows pair by id and sample; give "
            "several answers to a question different `sample` numbers."
        )
    rows[key] = row


def _scored(line: bytes, place: str) -> ScoredRow:
    """Decode a row of `ahalab score`; its fields may stand in any order."""
    try:
        return msgspec.convert(read_json(line), ScoredRow)
    except (ValueError, RecursionError) as error:  # msgspec's is a ValueError
        raise RecordError(
            f"{place}: expected a row of `ahalab score --format json` (id, strict, lenient) or an "
            f"answer of an evaluation, found: {error}."
        ) from error
