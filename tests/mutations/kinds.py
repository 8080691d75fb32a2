"""What a mutation is, and the kinds of tampering that the catalogue is made of."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ahalab.store.fingerprint import ADAPTER_WEIGHTS
from ahalab.store.reading import journal_path
from study_builder import write_tensors
from tampering import Row, chain, edit_json, edit_row, edit_rows, read_lines

RUN = "arms/historical/seed-1"
OTHER = "arms/additive_format/seed-1"
ROLLOUTS = f"{RUN}/rollouts.jsonl"
RANDOM = "arms/random/seed-2/rollouts.jsonl"
STEPS = f"{RUN}/steps.jsonl"
ANSWERS = f"{RUN}/answers.jsonl"
BASE = "base/answers.jsonl"
COMPARISON = "analysis/comparison.json"
CHANGED = "analysis/changed_responses.json"
ANY_LINE = 0  # some line, which one depends on the page's or the batch's length
Tamper = Callable[[Path], None]


@dataclass(frozen=True, slots=True)
class Mutation:
    """One way to tamper, and who must notice."""

    name: str
    tamper: Tamper
    check: str
    file: str
    line: int | None = None


def row(file: str, line: int, **fields: Any) -> Tamper:
    """Change fields of one row."""
    return lambda root: edit_row(root / file, line, **fields)


def rows(file: str, edit: Callable[[list[Row]], list[Row] | None]) -> Tamper:
    """Change a row file as a whole."""
    return lambda root: edit_rows(root / file, edit)


def record(file: str, *path: str | int, to: Any) -> Tamper:
    """Set one field of a single-record file."""

    def edit(tree: Any) -> None:
        for step in path[:-1]:
            tree = tree[step]
        tree[path[-1]] = to(tree[path[-1]]) if callable(to) else to

    return lambda root: edit_json(root / file, edit)


def text(file: str, old: str, new: str) -> Tamper:
    """Replace the first occurrence of a text."""

    def tamper(root: Path) -> None:
        content = (root / file).read_text(encoding="utf-8")
        assert old in content
        (root / file).write_text(content.replace(old, new, 1), encoding="utf-8")

    return tamper


def raw(file: str, line: int, old: bytes, new: bytes) -> Tamper:
    """Replace bytes within one line."""

    def tamper(root: Path) -> None:
        lines = read_lines(root / file)
        assert old in lines[line - 1]
        lines[line - 1] = lines[line - 1].replace(old, new, 1)
        (root / file).write_bytes(b"".join(lines))

    return tamper


def journal(
    file: str, edit: Callable[[list[Row]], list[Row] | None], *, chained: bool = True
) -> Tamper:
    """Change the journal of a row file, with the chain mended or not."""

    def tamper(root: Path) -> None:
        path = journal_path(root / file)
        entries = [json.loads(line) for line in read_lines(path)]
        changed = edit(entries)
        entries = entries if changed is None else changed
        if chained:
            chain(path, entries)
        else:
            path.write_bytes(
                b"".join(json.dumps(e, separators=(",", ":")).encode() + b"\n" for e in entries)
            )

    return tamper


def flip(file: str) -> Tamper:
    """Flip the lowest bit of a byte in the middle."""

    def tamper(root: Path) -> None:
        payload = bytearray((root / file).read_bytes())
        payload[len(payload) // 2] ^= 1
        (root / file).write_bytes(payload)

    return tamper


def swap(rows_: list[Row]) -> None:
    rows_[2], rows_[3] = rows_[3], rows_[2]


def symlink(root: Path) -> None:
    moved = root.parent / "elsewhere.jsonl"
    shutil.move(root / ROLLOUTS, moved)
    (root / ROLLOUTS).symlink_to(moved)


def manifest_entry(root: Path, **fields: Any) -> None:
    def edit(tree: Row) -> None:
        tree["evidence"].append({**tree["evidence"][0], **fields})

    edit_json(root / "manifest.json", edit)


def swap_adapters(root: Path) -> None:
    ours, theirs = root / RUN / "adapter", root / OTHER / "adapter"
    ours.rename(root / "spare")
    theirs.rename(ours)
    (root / "spare").rename(theirs)


def swap_runs(root: Path) -> None:
    for under in (root, root / "replay"):
        (under / RUN).rename(root / "spare")
        (under / OTHER).rename(under / RUN)
        (root / "spare").rename(under / OTHER)


def tensors(root: Path, change: Callable[[np.ndarray[Any, Any]], None], rank: int = 2) -> None:
    stem = "base_model.model.layers.0.self_attn.q_proj"
    values = {
        f"{stem}.lora_A.weight": np.ones((rank, 6), "<f4"),
        f"{stem}.lora_B.weight": np.ones((6, rank), "<f4"),
    }
    change(values[f"{stem}.lora_B.weight"])
    write_tensors(root / RUN / "adapter" / ADAPTER_WEIGHTS, values)


def zeros(weights: np.ndarray[Any, Any]) -> None:
    weights[:] = 0


def nan(weights: np.ndarray[Any, Any]) -> None:
    weights[0, 0] = np.nan


def copy_set(root: Path, folder: str) -> None:
    """Copy a run's answers, as if they were those of another adapter, with a journal of their own.

    Nothing but their place tells: run, rows and chain are sound.
    """
    target = root / folder / "answers.jsonl"
    target.parent.mkdir(parents=True)
    for suffix in ("jsonl", "protocol.json"):
        shutil.copyfile(root / RUN / f"answers.{suffix}", target.with_suffix(f".{suffix}"))
    entries = [json.loads(line) for line in read_lines(journal_path(root / ANSWERS))]
    entries[0]["run"] = f"{folder}/answers"
    chain(journal_path(target), entries)


def remove(*names: str) -> Tamper:
    def tamper(root: Path) -> None:
        for name in names:
            path = root / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    return tamper


def shift(rows_: list[Row]) -> None:
    ids = [r["prompt_id"] for r in rows_]
    for entry, prompt in zip(rows_, ids[1:] + ids[:1], strict=True):
        entry["prompt_id"] = prompt


def without_last_batch(root: Path) -> None:
    """Take the last batch out of rows and journal, the chain mended, the seal as it was."""
    path = journal_path(root / ROLLOUTS)
    entries = [json.loads(line) for line in read_lines(path)]
    last = max(i for i, e in enumerate(entries) if e["kind"] == "batch")
    gone = entries.pop(last)["rows"]
    chain(path, entries)
    edit_rows(root / ROLLOUTS, lambda found: found[:-gone])


def no_longer_correct(found: list[Row]) -> None:
    """Edit the first completion that is correct."""
    first = next(entry for entry in found if entry["strict"] == "correct")
    first["completion"] = "I add the parts.\n#### 1000000"


def erase_attempt(entries: list[Row]) -> list[Row]:
    last = max(i for i, e in enumerate(entries) if e["kind"] == "attempt")
    return entries[:last] + entries[last + 1 :]


def half(value: float) -> float:
    return value / 2


def half_or_one(points: float | None) -> float:
    return 1.0 if points is None else points / 2


def turn_alarms(alarms: list[Row]) -> list[Row]:
    return [] if alarms else [{"name": "dead_run", "evidence": "none", "remedy": "none"}]


def torn(root: Path) -> None:
    path = root / STEPS
    path.write_bytes(path.read_bytes() + b'{"schema":"step/1","st')
