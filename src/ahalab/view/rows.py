"""Rows of a study to rows of its index, and the removal of those that a resume took back."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from ahalab.errors import RecordError
from ahalab.plan.cells import Cell
from ahalab.records.prompt import Prompt
from ahalab.records.rollout import Rollout
from ahalab.records.step import Step, Timing
from ahalab.view.answer_rows import READERS, Written
from ahalab.view.database import KINDS, MAX_COMPONENTS
from ahalab.view.sets import AnswerFile, AnswerSet
from ahalab.view.sources import Source

R = TypeVar("R")
DECODERS: dict[str, msgspec.json.Decoder[Any]] = {  # answers: `answer_rows.READERS`
    "prompt": msgspec.json.Decoder(Prompt),
    "step": msgspec.json.Decoder(Step),
    "timing": msgspec.json.Decoder(Timing),
    "rollout": msgspec.json.Decoder(Rollout),
}


class Rows:
    """Writes the rows of a study's files into its index, within the caller's transaction."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._prompts: dict[tuple[str, str], int] = {
            (split, name): number
            for number, split, name in database.execute("SELECT id, split, name FROM prompt")
        }
        self._components: dict[str, int] = dict(
            database.execute("SELECT name, position FROM component")
        )
        self._sets: dict[str, int] = dict(database.execute("SELECT name, id FROM answer_set"))
        self._next: dict[str, int] = {}
        self._add: dict[str, Callable[[int, int, Sequence[Any]], None]] = {
            "prompt": self._prompt_rows,
            "step": self._step_rows,
            "timing": self._timing_rows,
            "rollout": self._rollout_rows,
        }

    def add(self, source: Source, payload: bytes) -> tuple[int, int]:
        """Add the rows of one committed batch.

        Args:
            source: The file they stand in.
            payload: Their bytes, whose digest the caller has checked.

        Returns:
            The id of the first and of the last row; `first - 1` for the last where there is none.

        Raises:
            RecordError: A row is not what this version reads.
        """
        read = _reader(source)
        lines = payload.split(b"\n")[:-1]
        try:
            rows = [read(line) for line in lines]
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise RecordError(
                f"{source.path}: expected {source.kind} rows, found: {error}. `ahalab verify` "
                "names the line."
            ) from error
        first = self._first(source.kind)
        self._next[source.kind] = first + len(rows)
        if source.answers is not None:
            self._answer_rows(first, source.answers, rows)
        else:
            self._add[source.kind](first, self.run(source.cell), rows)
        return first, first + len(rows) - 1

    def remove(self, source: Source, first: int, last: int) -> None:
        """Remove rows by their ids."""
        table = source.kind
        span = (first, last)
        if table in KINDS:
            self._database.execute(
                f"INSERT INTO {table}_words({table}_words, rowid, completion) "  # noqa: S608
                f"SELECT 'delete', id, completion FROM {table}_text WHERE id BETWEEN ? AND ?",
                span,
            )
            self._database.execute(f"DELETE FROM {table}_text WHERE id BETWEEN ? AND ?", span)  # noqa: S608
        if table == "prompt":  # rows may name it; the batch that follows fills it again
            return
        self._database.execute(f"DELETE FROM {table} WHERE id BETWEEN ? AND ?", span)  # noqa: S608

    def run(self, cell: Cell | None) -> int:
        """Return the number of a cell, new or known; 0 for none."""
        if cell is None:
            return 0
        known = self._database.execute("SELECT id FROM run WHERE name = ?", (cell.name,)).fetchone()
        if known is not None:
            return int(known[0])
        made = self._database.execute(
            "INSERT INTO run(name, arm, seed) VALUES (?, ?, ?)", (cell.name, cell.arm, cell.seed)
        )
        return int(made.lastrowid or 0)

    def _set(self, file: AnswerFile, step: int | None) -> int:
        """Return the number of a set of answers, new or known."""
        name = AnswerSet(file, step).name
        if name not in self._sets:
            made = self._database.execute(
                "INSERT INTO answer_set(name, file, kind, arm, seed, step) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                (name, file.name, file.kind, file.cell.arm, file.cell.seed, step),
            )
            self._sets[name] = int(made.lastrowid or 0)
        return self._sets[name]

    def _first(self, table: str) -> int:
        if table not in self._next:
            (last,) = self._database.execute(f"SELECT max(id) FROM {table}").fetchone()  # noqa: S608
            self._next[table] = (last or 0) + 1
        return self._next[table]

    def _prompt_rows(self, first: int, run: int, rows: Sequence[Prompt]) -> None:
        for row in rows:
            number = self._prompt(row.split, row.prompt_id)
            self._database.execute(
                "UPDATE prompt SET question = ?, gold = ? WHERE id = ?",
                (_text(row.question), _text(row.gold), number),
            )

    def _prompt(self, split: str, name: str) -> int:
        """Return the number of a prompt, which may not have been read yet."""
        key = (split, name)
        if key not in self._prompts:
            made = self._database.execute(
                "INSERT INTO prompt(split, name) VALUES (?, ?)", (split, _text(name))
            )
            self._prompts[key] = int(made.lastrowid or 0)
        return self._prompts[key]

    def _step_rows(self, first: int, run: int, rows: Sequence[Step]) -> None:
        self._database.executemany(
            "INSERT INTO step VALUES (?, ?, ?, ?)",
            (
                (number, run, row.step, msgspec.json.encode(row).decode())
                for number, row in enumerate(rows, first)
            ),
        )

    def _timing_rows(self, first: int, run: int, rows: Sequence[Timing]) -> None:
        self._database.executemany(
            "INSERT INTO timing VALUES (?, ?, ?, ?)",
            ((number, run, row.step, row.seconds) for number, row in enumerate(rows, first)),
        )

    def _answer_rows(self, first: int, file: AnswerFile, rows: Sequence[Written]) -> None:
        self._database.executemany(
            "INSERT INTO answer VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                (
                    number, self._set(file, one.step), self._prompt(file.split, one.prompt_id),
                    one.sample,
                    None if one.row.completion_ids is None else len(one.row.completion_ids),
                    one.row.finish, one.row.rule, one.row.strict, one.row.lenient,
                )
                for number, one in enumerate(rows, first)
            ),
        )  # fmt: skip
        texts = [
            (
                number, _text(one.row.completion), _text(one.row.extracted), one.row.status,
                one.content, one.cuts,
            )
            for number, one in enumerate(rows, first)
        ]  # fmt: skip
        self._database.executemany("INSERT INTO answer_text VALUES (?, ?, ?, ?, ?, ?)", texts)
        self._words("answer", texts)

    def _rollout_rows(self, first: int, run: int, rows: Sequence[Rollout]) -> None:
        names = {name for row in rows for name in row.components}
        for name in sorted(names - self._components.keys()):
            self._component(name)
        filled = [
            (name, self._components[name]) for name in sorted(names & self._components.keys())
        ]
        columns = "".join(f", c{position}" for _, position in filled)
        marks = ", ".join("?" * (17 + len(filled)))
        self._database.executemany(
            "INSERT INTO rollout(id, run, step, grp, prompt, sample, tokens, finish, reward, "  # noqa: S608
            "advantage, historical, strict, lenient, formatted, repetition, reflections, extracted"
            f"{columns}) VALUES ({marks})",
            (
                (
                    number, run, row.step, row.group, self._prompt("train", row.prompt_id),
                    row.sample, len(row.completion_ids), row.finish, row.reward, row.advantage,
                    row.historical, row.strict, row.lenient, row.formatted, row.repetition,
                    len(row.reflection), _text(row.extracted),
                    *(_value(row, name) for name, _ in filled),
                )
                for number, row in enumerate(rows, first)
            ),
        )  # fmt: skip
        texts = [
            (
                number, _text(row.completion), row.status,
                msgspec.json.encode(row.components).decode(),
                json.dumps(row.reflection) if row.reflection else "[]",
            )
            for number, row in enumerate(rows, first)
        ]  # fmt: skip
        self._database.executemany("INSERT INTO rollout_text VALUES (?, ?, ?, ?, ?)", texts)
        self._words("rollout", texts)

    def _words(self, table: str, texts: Sequence[tuple[Any, ...]]) -> None:
        self._database.executemany(
            f"INSERT INTO {table}_words(rowid, completion) VALUES (?, ?)",  # noqa: S608
            ((text[0], text[1]) for text in texts),
        )

    def _component(self, name: str) -> None:
        """Give a component a column, as long as there are some left."""
        position = len(self._components)
        if position >= MAX_COMPONENTS:
            return
        self._database.execute("INSERT INTO component VALUES (?, ?)", (position, name))
        self._database.execute(f"ALTER TABLE rollout ADD COLUMN c{position} REAL")
        self._components[name] = position


def _reader(source: Source) -> Callable[[bytes], Any]:
    if source.answers is not None:
        return READERS[source.answers.kind].read
    return DECODERS[source.kind].decode


def _value(row: Rollout, name: str) -> float | None:
    component = row.components.get(name)
    return None if component is None else component.value


def _text(text: str | None) -> str | None:
    """Return a text that SQLite takes: half a surrogate pair is kept as its escape."""
    if text is None or text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode()
