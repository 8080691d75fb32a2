"""Reads a study without trusting it: what is malformed becomes a failure with its place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ahalab.errors import AhaLabError, RecordError
from ahalab.plain_files import read_plain
from ahalab.plan.load import load_plan
from ahalab.records.answer import Protocol
from ahalab.records.base import Record, decode_file, decode_row, digest
from ahalab.records.foreign import MAX_LINE_BYTES
from ahalab.records.plan import Plan
from ahalab.records.prompt import Prompt
from ahalab.records.terms import Split
from ahalab.store.layout import StudyPaths
from ahalab.store.reading import open_rows, sealed_path
from ahalab.tasks.questions import asked_of
from ahalab.verify.checks import ABSENT, Ledger
from ahalab.verify.grading import Grader
from ahalab.verify.texts import Decoder, decoder_for

R = TypeVar("R", bound=Record)

MAX_RECORD_BYTES = 256 << 20
_NOT_FINITE = re.compile(rb"[:\[,]\s*-?(?:NaN|Infinity|inf|nan)\b")


# Rows that other scorers judged, by kind and versions: files, outcomes that change, rows.
JudgedElsewhere = dict[tuple[str, tuple[str, str]], tuple[int, int, int]]


@dataclass(frozen=True, slots=True)
class Known:
    """What was read of a study, and its faults told: other processes begin with it."""

    plan: Plan | None
    records: dict[Path, Record | None]
    prompts: dict[Split, list[tuple[int, Prompt]]]


class Study:
    """A study under verification: what was read of it is kept, faults go to the ledger."""

    def __init__(
        self, root: Path, ledger: Ledger, *, trust_rewards: bool = False, known: Known | None = None
    ) -> None:
        self.root = root
        self.trust_rewards = trust_rewards
        self.paths = StudyPaths(root)
        self.ledger = ledger
        self.judged_elsewhere: JudgedElsewhere = {}
        # What was worked out again, by the id of the claim on it; see claims.py.
        self.recomputed: dict[str, object] = {}
        self.row_counts: dict[str, int] = {}  # committed rows, by the rows' plain name
        self._records = known.records if known else {}
        self._prompts = known.prompts if known else {}
        self.plan = known.plan if known else self._read_plan()
        self.plan_digest = None if self.plan is None else digest(self.plan)
        self.grader = (
            None if self.plan is None else Grader(asked_of(self.plan.task, self.plan.answer_format))
        )

    @property
    def known(self) -> Known:
        """What was read so far."""
        return Known(self.plan, self._records, self._prompts)

    @cached_property
    def decoder(self) -> Decoder | None:
        """What decodes token ids; None where the study's tokenizer is not at hand (told once)."""
        found = None
        protocol = self.record(self.paths.base_answers().protocol, Protocol)
        if self.plan is not None and protocol is not None:
            found = decoder_for(self.plan, protocol.tokenizer_digest)
        if found is None:
            self.ledger["tokens.text"].not_checked(
                "the tokenizer is not part of the study, and not at hand here"
            )
        return found

    def judge_elsewhere(self, found: JudgedElsewhere) -> None:
        """Count rows that other scorers judged: files, outcomes that change, rows."""
        for key, counted in found.items():
            before = self.judged_elsewhere.get(key, (0, 0, 0))
            files, changed, rows = (a + b for a, b in zip(before, counted, strict=True))
            self.judged_elsewhere[key] = files, changed, rows

    def recompute(self, stem: str, fields: Mapping[str, Any]) -> None:
        """Keep what was worked out again, under the ids that claims on it have."""
        for name, value in fields.items():
            if name.endswith("interval_points"):
                part = f"{stem}.{name.removesuffix('interval_points').rstrip('_')}".rstrip(".")
                for side, bound in zip(("low", "high"), value or (None, None), strict=True):
                    self.recomputed[f"{part}.interval_{side}_points"] = bound
            else:
                self.recomputed[f"{stem}.{name}"] = value

    def check_text(self, place: tuple[str, int], ids: Sequence[int] | None, text: str) -> None:
        """Compare a completion with the text of its token ids; `place` is file and line."""
        file, line = place
        if ids is None:
            self.ledger["tokens.text"].not_checked(f"{file}: the endpoint told no token ids")
        elif self.decoder is not None:
            expected = self.decoder.text(ids)
            self.ledger["tokens.text"].expect(file, line, "text of the token ids", expected, text)

    def relative(self, path: Path) -> str:
        """Return a path as it is named in failures."""
        return path.relative_to(self.root).as_posix()

    def _read_plan(self) -> Plan | None:
        tally = self.ledger["plan.match"]
        if not self.paths.plan.is_file():
            tally.fail("study.yaml", None, "the frozen plan", "none")
            return None
        try:
            return load_plan(self.paths.plan)
        except AhaLabError as error:
            line, found = _place_of(str(error), self.paths.plan)
            tally.fail("study.yaml", line, "a sound plan", found)
            return None

    def match_plan(self, path: Path, found: str, line: int | None = None) -> None:
        """Check that a record names this plan."""
        if self.plan_digest is not None:
            tally = self.ledger["plan.match"]
            tally.expect(self.relative(path), line, "plan digest", self.plan_digest, found)

    def record(self, path: Path, kind: type[R]) -> R | None:
        """Return a single-record file; None when it is missing, or malformed (told once)."""
        if path not in self._records:
            self._records[path] = self._decode(path, kind)
        found = self._records[path]
        return found if isinstance(found, kind) else None

    def _decode(self, path: Path, kind: type[R]) -> R | None:
        try:
            if not path.is_file():
                return None
            if path.stat().st_size > MAX_RECORD_BYTES:
                self.ledger["json.strict"].fail(
                    self.relative(path),
                    None,
                    f"a record up to {MAX_RECORD_BYTES} bytes",
                    "a longer one",
                )
                return None
            payload = read_plain(path)
        except OSError as error:
            self.ledger["json.strict"].fail(
                self.relative(path), None, "a readable file", error.strerror
            )
            return None
        try:
            record = decode_file(payload, kind, str(path))
        except RecordError as error:
            self.fault(path, None, payload, error)
            return None
        self._sound(1)
        return record

    def rows(self, path: Path, kind: type[R]) -> Iterator[tuple[int, R]]:
        """Yield (line, row) of every sound row; each malformed one is a failure."""
        sound = 0
        for number, line in self.lines(path):
            if not line.endswith(b"\n"):  # what a kill leaves; whether it may be there, `seal` says
                if len(line) == MAX_LINE_BYTES:
                    name = self.stored_name(path)
                    self.ledger["json.strict"].fail(
                        name, number, "a line up to 16 MB", "a longer one"
                    )
                    return
                continue
            try:
                row = decode_row(line[:-1], kind, "row")
            except RecordError as error:
                self.fault(path, number, line, error)
                continue
            sound += 1
            yield number, row
        self._sound(sound)

    def lines(self, path: Path) -> Iterator[tuple[int, bytes]]:
        """Yield (line number from 1, bytes with their newline) of a row file, compressed or not."""
        stored = path if path.is_file() else sealed_path(path)
        number = 0
        try:
            if not stored.is_file():
                return
            with open_rows(stored) as stream:
                while line := stream.readline(MAX_LINE_BYTES):
                    number += 1
                    yield number, line
        except (OSError, RecordError) as error:
            told = str(error).removeprefix(f"{stored}: ")
            self.ledger["json.strict"].fail(
                self.relative(stored), number + 1, "readable rows", told
            )

    def stored_name(self, path: Path) -> str:
        """Return the name under which a row file lies: compressed or not."""
        return self.relative(
            path if path.is_file() or not sealed_path(path).is_file() else sealed_path(path)
        )

    def present(self, path: Path) -> bool:
        """Say whether a row file is there, compressed or not."""
        return path.is_file() or sealed_path(path).is_file()

    def prompts(self, split: Split) -> list[tuple[int, Prompt]]:
        """Return (line, prompt) of a split."""
        if split not in self._prompts:
            self._prompts[split] = list(self.rows(self.paths.prompts(split), Prompt))
        return self._prompts[split]

    def fault(self, path: Path, line: int | None, payload: bytes, error: RecordError) -> None:
        """Book a malformed row or record under the check that it breaks."""
        cause = error.__cause__
        name = "json.strict"
        if isinstance(cause, msgspec.ValidationError):
            name = "json.finite" if "out of range" in str(cause) else "schema.type"
        elif cause is not None and _NOT_FINITE.search(payload):
            name = "json.finite"
        message = str(error).partition(": ")[2]
        expected, _, found = message.partition(", found")
        self.ledger[name].fail(
            self.stored_name(path), line, expected.removeprefix("expected "), found.lstrip(": ")
        )

    def _sound(self, count: int) -> None:
        for name in ("json.strict", "json.finite", "schema.type"):
            self.ledger[name].passed(count)


def _place_of(message: str, path: Path) -> tuple[int | None, str]:
    """Split `path:line:column: text` into line and text."""
    rest = message.removeprefix(str(path)).lstrip(":")
    match = re.match(r"(\d+)(?::\d+)?: ", rest)
    return (int(match.group(1)), rest[match.end() :]) if match else (None, rest.strip())


def differences(
    expected: object, found: object, tolerance: float = 1e-9, path: str = ""
) -> Iterator[tuple[str, object, object]]:
    """Yield (path, expected, found) for every place in which two plain trees differ.

    Args:
        expected: Dicts, lists, tuples and scalars.
        found: The same.
        tolerance: Relative, for floats; integers, texts and None must be equal.
        path: Name of the tree.
    """
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in [*expected, *(k for k in found if k not in expected)]:
            here = f"{path}.{key}" if path else str(key)
            if key not in expected or key not in found:
                yield here, expected.get(key, ABSENT), found.get(key, ABSENT)
            else:
                yield from differences(expected[key], found[key], tolerance, here)
    elif isinstance(expected, list | tuple) and isinstance(found, list | tuple):
        if len(expected) != len(found):
            yield f"{path} (length)", len(expected), len(found)
        for at, (ours, theirs) in enumerate(zip(expected, found, strict=False)):
            yield from differences(ours, theirs, tolerance, f"{path}[{at}]")
    elif not close(expected, found, tolerance):
        yield path, expected, found


def close(expected: object, found: object, tolerance: float) -> bool:
    """Say whether two scalars are equal, floats to a relative tolerance (absolute below 1)."""
    if (
        isinstance(expected, float)
        and isinstance(found, int | float)
        and not isinstance(found, bool)
    ):
        try:
            return abs(expected - found) <= tolerance * max(1.0, abs(expected))
        except OverflowError:  # of a page: a whole number that no float holds
            return False
    return type(expected) is type(found) and expected == found
