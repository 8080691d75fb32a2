"""Row files cut short at every byte and trashed by sectors: resumed to the byte, or refused?

Run as `python -m benchmarks.damage [STUDY] [--sectors 100] [--every 1]`. Of each kind of row file
of a study (without one, a small one is trained and evaluated first) the first batches are written
again. These are cut at every byte of the last two: the rows alone (lost after they were
committed), the rows with what the journal said by then (torn by a kill), the journal alone. Then
sectors of 512 bytes are overwritten in the middle, with zeros, noise, or another part of the file.
What follows is a stage's own way back: open, recover, write what is missing, read. The end must be
the bytes of the whole file, or one line that names the file; never other rows.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from ahalab.errors import InputError, PlanError, RecordError
from ahalab.records.answer import Answer
from ahalab.records.base import Record, decode_row
from ahalab.records.prompt import Prompt
from ahalab.records.rollout import Rollout
from ahalab.records.step import Step, Timing
from ahalab.store.journal import read_journal
from ahalab.store.reading import journal_path, read_bytes, read_rows
from ahalab.store.rows import RowFile, RowWriter
from benchmarks import at_least_one
from benchmarks.kills import CELLS, PLAN, STUDY, TRAIN, start, wait

SECTOR = 512
BATCHES = 4  # of each file: what precedes the last two only costs time
KINDS: dict[str, type[Record]] = {
    "prompt/1": Prompt,
    "rollout/1": Rollout,
    "step/1": Step,
    "timing/1": Timing,
    "answer/1": Answer,
}


@dataclass(frozen=True, slots=True)
class Whole:
    """A row file before its seal."""

    name: str
    file: RowFile
    batches: list[list[Any]]  # rows, decoded
    ends: list[int]  # bytes after each batch
    rows: bytes
    journal: bytes  # head, attempt, a line per batch


def whole_of(path: Path, root: Path, folder: Path) -> Whole | None:
    """Write the first batches of a row file again; None for one that has no rows."""
    rows, state = read_bytes(path), read_journal(journal_path(path))
    head, parts = state.head, [b for b in state.batches if b.rows][:BATCHES]
    if head is None or not parts:
        return None
    kind, name = KINDS[head.rows_schema], path.relative_to(root).as_posix()
    again = folder / "rows.jsonl"
    file = RowFile(again, head.rows_schema, head.plan_digest, head.run, folder / "tails")
    batches = [
        [decode_row(line, kind, name) for line in rows[b.start : b.end].split(b"\n")[:-1]]
        for b in parts
    ]
    for old in (again, journal_path(again)):
        old.unlink(missing_ok=True)
    with RowWriter[Any](file) as writer:
        for batch in batches:
            writer.append(batch)
        ends = [b.end for b in writer.state.batches]
    written, journal = again.read_bytes(), journal_path(again).read_bytes()
    return Whole(name, file, batches, ends, written, journal)


def one_of_each_kind(root: Path) -> list[Path]:
    """Return the plain path of one row file of each kind."""
    found: dict[str, Path] = {}
    for journal in sorted(root.rglob("*.journal.jsonl")):
        head = read_journal(journal).head
        if head is not None:
            rows = journal.with_name(journal.name.replace(".journal.jsonl", ".jsonl"))
            found.setdefault(head.rows_schema, rows)
    return [found[kind] for kind in sorted(found)]


def way_back(whole: Whole, rows: bytes, journal: bytes) -> str:
    """Put damaged files in place and resume; return `resumed`, `refused`, or what is wrong."""
    file = whole.file
    file.path.write_bytes(rows)
    journal_path(file.path).write_bytes(journal)
    try:
        with RowWriter[Any](file) as writer:
            for batch in whole.batches[len(writer.state.batches) :]:
                writer.append(batch)
        found = [row for _, row in read_rows(file.path, KINDS[file.rows_schema])]
    except (RecordError, PlanError, InputError) as error:
        told = str(error)
        plain = told.startswith(str(file.path.parent)) and "\n" not in told
        return "refused" if plain else f"said {told}"
    finally:
        shutil.rmtree(file.broken, ignore_errors=True)
    same = file.path.read_bytes() == whole.rows and found == [*chain(*whole.batches)]
    return "resumed" if same else "resumed to other rows"


def cuts(whole: Whole, every: int) -> Iterator[tuple[str, bytes, bytes]]:
    """Yield (what, rows, journal) of every cut within the last two batches."""
    lines = [line + b"\n" for line in whole.journal.split(b"\n")[:-1]]
    last = max(0, len(whole.ends) - 2)
    for size in range(whole.ends[last - 1] if last else 0, len(whole.rows), every):
        yield f"rows lost at {size}", whole.rows[:size], whole.journal
        committed = sum(end <= size for end in whole.ends)
        yield f"torn at {size}", whole.rows[:size], b"".join(lines[: 2 + committed])
    start = sum(map(len, lines[: 2 + last]))
    for size in range(start, len(whole.journal), every):
        yield f"journal cut at {size}", whole.rows, whole.journal[:size]


def trash(payload: bytes, at: int, how: str, dice: random.Random) -> bytes:
    """Overwrite one sector."""
    size = len(payload[at : at + SECTOR])
    other = {
        "zeros": bytes(size),
        "noise": dice.randbytes(size),
        "another part": (payload[at // 2 + 100 :] + payload)[:size],
    }[how]
    return payload[:at] + other + payload[at + SECTOR :]


def sectors(whole: Whole, count: int) -> Iterator[tuple[str, bytes, bytes]]:
    """Yield (what, rows, journal) of every trashed sector."""
    dice = random.Random(whole.name)  # noqa: S311 - which sectors, no secret
    for how in ("zeros", "noise", "another part"):
        for _ in range(count):
            at = dice.randrange(0, max(1, len(whole.rows) - SECTOR), SECTOR)
            yield f"{how} in rows at {at}", trash(whole.rows, at, how, dice), whole.journal
        for _ in range(max(1, count // 4)):
            at = dice.randrange(0, max(1, len(whole.journal) - SECTOR), SECTOR)
            yield f"{how} in journal at {at}", whole.rows, trash(whole.journal, at, how, dice)


def main(arguments: list[str] | None = None) -> int:
    """Damage, resume, compare and print; return 1 when an end is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("study", nargs="?", type=Path)
    parser.add_argument("--sectors", type=at_least_one, default=100, help="of each sort, per file")
    parser.add_argument("--every", type=at_least_one, default=1, help="cut at each N-th byte only")
    options = parser.parse_args(arguments)
    ends: Counter[str] = Counter()
    wrong: list[str] = []
    files = 0
    with tempfile.TemporaryDirectory() as name:
        study = options.study or small_study(Path(name))
        os.fsync = lambda _: None  # type: ignore[assignment] # nothing here loses power
        for path in one_of_each_kind(study):
            whole = whole_of(path, study, Path(name))
            if whole is None:
                continue
            files += 1
            for what, rows, journal in (
                *cuts(whole, options.every),
                *sectors(whole, options.sectors),
            ):
                end = way_back(whole, rows, journal)
                sound = end in ("resumed", "refused")
                ends[f"{what.rpartition(' at ')[0]}: {end if sound else 'WRONG'}"] += 1
                wrong += [] if sound else [f"{whole.name}: {what}: {end}"]
            print(f"{whole.name}: {sum(ends.values())} in all", file=sys.stderr, flush=True)
    for kind, count in sorted(ends.items()):
        print(f"{count:8} {kind}")
    for line in wrong[:40]:
        print(line)
    print(
        f"{len(wrong)} ends that are wrong, of {sum(ends.values())}, on {files} kinds of row file"
    )
    print(json.dumps({"files": files, "ends": dict(ends), "wrong": len(wrong)}))
    return 1 if wrong else 0


def small_study(folder: Path) -> Path:
    """Train and evaluate the small study that `benchmarks.kills` kills; return its results."""
    (folder / "study.yaml").write_text(PLAN % "", "utf-8")
    for arguments in (TRAIN, ("evaluate", STUDY, *CELLS, "--quiet")):
        if wait(start(folder, arguments)) != 0:
            raise SystemExit((folder / "log").read_text("utf-8"))
    return folder / STUDY


if __name__ == "__main__":
    raise SystemExit(main())
