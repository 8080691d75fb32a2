"""The 34 tamperings that were measured on the closest peers, each on a study of two arms.

Each edits rows or records and mends what hangs on them only where its name says so; the runner
(tampering.py) mends digests, or has the owner rebuild everything.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ahalab.store.reading import journal_path
from benchmarks import invented  # noqa: F401 - before what lies in tests/
from tampering import Row, chain, edit_json, edit_row, edit_rows, read_lines

RUN, CONTROL = "arms/correctness/seed-1", "arms/random/seed-1"
ANSWERS, BASE, PROMPTS = f"{RUN}/answers.jsonl", "base/answers.jsonl", "prompts/eval.jsonl"
ROLLOUTS = f"{RUN}/rollouts.jsonl"
COMPARISON = "analysis/comparison.json"
Edit = Callable[[Path], None]


@dataclass(frozen=True, slots=True)
class Tampering:
    """One of the 34."""

    number: int
    name: str
    check: str  # that says best what was done
    edit: Edit
    mend: bool = True  # journals and manifest afterwards; False: left as it is
    owner: str = "all"  # what an owner makes again: `all`, `analysis` (all but the scores, which
    # would undo it), `report` (and not the analysis), `seal` (nor the report), or nothing


def _flip(root: Path) -> None:
    """Flip the lowest bit of a digit in a completion."""
    lines = read_lines(root / ANSWERS)
    at = next(n for n, line in enumerate(lines) if b"#### " in line)
    start = lines[at].index(b"#### ") + 5
    lines[at] = lines[at][:start] + bytes([lines[at][start] ^ 1]) + lines[at][start + 1 :]
    (root / ANSWERS).write_bytes(b"".join(lines))


def _rows(file: str, edit: Callable[[list[Row]], list[Row] | None]) -> Edit:
    return lambda root: edit_rows(root / file, edit)


def _record(file: str, *path: str | int, to: Any) -> Edit:
    def edit(tree: Any) -> None:
        for step in path[:-1]:
            tree = tree[step]
        tree[path[-1]] = to(tree[path[-1]]) if callable(to) else to

    return lambda root: edit_json(root / file, edit)


def _link(root: Path) -> None:
    outside = root.parent / "outside.jsonl"
    shutil.move(root / ANSWERS, outside)
    (root / ANSWERS).symlink_to(outside)


def _swap(rows: list[Row]) -> None:
    rows[4], rows[5] = rows[5], rows[4]


def _without_last_batch(root: Path) -> None:
    """Drop the last batch from the rows and from their journal."""
    journal = journal_path(root / ANSWERS)
    entries = [json.loads(line) for line in read_lines(journal)]
    last = max(at for at, entry in enumerate(entries) if entry["kind"] == "batch")
    gone = entries.pop(last)["rows"]
    chain(journal, entries)
    edit_rows(root / ANSWERS, lambda rows: rows[:-gone])


def _line(root: Path, file: str, old: bytes, new: bytes) -> None:
    """Replace bytes in the first line that holds them."""
    lines = read_lines(root / file)
    at = next(n for n, line in enumerate(lines) if old in line)
    lines[at] = lines[at].replace(old, new, 1)
    (root / file).write_bytes(b"".join(lines))


def _first(root: Path, file: str, **having: str) -> int:
    """Return the line of the first row with these values."""
    rows = [json.loads(line) for line in read_lines(root / file)]
    return next(n for n, row in enumerate(rows, 1) if having.items() <= row.items())


def _raise_score(root: Path) -> None:
    line = _first(root, ANSWERS, strict="wrong")
    edit_row(root / ANSWERS, line, strict="correct", lenient="correct")


def _edit_completion(root: Path) -> None:
    line = _first(root, ANSWERS, strict="wrong", finish="eos")
    edit_row(root / ANSWERS, line, completion="I add the parts.\n#### 1")


def answer_files(root: Path) -> list[Path]:
    """Return every set of answers to the evaluation."""
    return [*root.glob("base/*.jsonl"), *root.glob("arms/*/*/answers.jsonl")]


def _answer_rows(root: Path) -> list[Path]:
    return [path for path in answer_files(root) if not path.name.endswith(".journal.jsonl")]


def _drop_question(root: Path) -> None:
    """Drop a question from the prompts and from every answer set."""
    gone = json.loads(read_lines(root / PROMPTS)[7])["prompt_id"]
    for path in (root / PROMPTS, *_answer_rows(root)):
        edit_rows(path, lambda rows: [row for row in rows if row["prompt_id"] != gone])


def _add_question(root: Path) -> None:
    """Add a question, which everybody answers as they answer the last one."""
    last = json.loads(read_lines(root / PROMPTS)[-1])
    new = {**last, "prompt_id": f"00200-{last['prompt_id'].partition('-')[2]}"}
    edit_rows(root / PROMPTS, lambda rows: [*rows, new])
    for path in _answer_rows(root):
        edit_rows(path, lambda rows: [
            row for found in rows
            for row in ([found, {**found, "prompt_id": new["prompt_id"]}]
                        if found["prompt_id"] == last["prompt_id"] else [found])
        ])  # fmt: skip


def _plan(old: str, new: str) -> Edit:
    def edit(root: Path) -> None:
        text = (root / "study.yaml").read_text(encoding="utf-8")
        assert old in text  # noqa: S101 - a benchmark of its own plan
        (root / "study.yaml").write_text(text.replace(old, new, 1), encoding="utf-8")

    return edit


def _without_strict(root: Path) -> None:
    """Leave the planned metric out of the comparison."""

    def edit(tree: Row) -> None:
        for part in ("arms", "adapters"):
            tree[part] = [entry for entry in tree[part] if entry["metric"] != "strict"]

    edit_json(root / COMPARISON, edit)


def _without_arm(root: Path) -> None:
    shutil.rmtree(root / "arms" / "correctness")


def _other_adapter(root: Path) -> None:
    """Put other weights in place, and their digest into every record that names the old ones."""
    from ahalab.store.fingerprint import ADAPTER_WEIGHTS, adapter_fingerprint

    before = adapter_fingerprint(root / RUN / "adapter")
    weights = root / RUN / "adapter" / ADAPTER_WEIGHTS
    payload = bytearray(weights.read_bytes())
    payload[-4] ^= 1  # the last bit of the last weight
    weights.write_bytes(payload)
    rename(root, before, adapter_fingerprint(root / RUN / "adapter"))


def rename(root: Path, old: str, new: str) -> None:
    """Replace a text in every record, row and journal of a study."""
    for path in root.rglob("*.json*"):
        payload = path.read_bytes()
        if path.is_file() and old.encode() in payload:
            path.write_bytes(payload.replace(old.encode(), new.encode()))


def _swap_labels(root: Path) -> None:
    """Exchange the folders of two arms, and what their records call them."""
    ours, theirs, spare = root / RUN, root / CONTROL, root / "spare"
    ours.rename(spare)
    theirs.rename(ours)
    spare.rename(theirs)
    for one in (ours, theirs):
        other = CONTROL if one == ours else RUN
        for path in one.glob("*.journal.jsonl"):
            lines = [json.loads(line) for line in read_lines(path)]
            lines[0]["run"] = lines[0]["run"].replace(other, RUN if one == ours else CONTROL)
            chain(path, lines)


def _stale_report(root: Path) -> None:
    """Change the evidence after the report was made; the report stays."""
    edit_row(root / f"{RUN}/timings.jsonl", 1, seconds=9.0)


def _page(root: Path) -> None:
    text = (root / "report.html").read_text(encoding="utf-8")
    at = text.index('"value":"no evidence"')
    changed = text[:at] + '"value":"improved"' + text[at + len('"value":"no evidence"') :]
    (root / "report.html").write_text(changed, encoding="utf-8")


def _nothing(root: Path) -> None:
    """Leave it: what lies there is another study altogether (the runner puts it there)."""


def _gold(root: Path) -> None:
    edit_row(root / PROMPTS, 3, gold="1")


TAMPERINGS = (
    Tampering(1, "1 byte flipped in a row file", "file.hash", _flip, mend=False, owner=""),
    Tampering(2, "the same with digests mended", "extract", _flip, owner=""),
    Tampering(
        3,
        "file added",
        "file.extra",
        lambda r: (r / "more.txt").write_text("x") and None,
        False,
        "",
    ),
    Tampering(4, "file removed", "file.missing", lambda r: (r / ANSWERS).unlink(), False, ""),
    Tampering(
        5,
        "file renamed",
        "file.path",
        lambda r: (r / ANSWERS).rename(r / RUN / "a.jsonl") and None,
        False,
        "",
    ),
    Tampering(6, "symlink to the same content", "file.type", _link, False, ""),
    Tampering(7, "row deleted", "cover", _rows(ANSWERS, lambda rows: rows[:4] + rows[5:])),
    Tampering(
        8, "row doubled", "row.unique", _rows(ANSWERS, lambda rows: [*rows[:5], rows[4], *rows[5:]])
    ),
    Tampering(9, "rows reordered", "pair.key", _rows(ANSWERS, _swap)),
    Tampering(10, "last batch dropped", "cover", _without_last_batch),
    Tampering(
        11, "row appended", "cover", _rows(ANSWERS, lambda rows: [*rows, {**rows[0], "sample": 1}])
    ),
    Tampering(
        12,
        "NaN score",
        "json.finite",
        lambda r: _line(r, ROLLOUTS, b'"reward":1.0', b'"reward":NaN'),
    ),
    Tampering(
        13,
        "`true` for 1",
        "schema.type",
        lambda r: _line(r, ROLLOUTS, b'"sample":1', b'"sample":true'),
    ),
    Tampering(14, "score 0 to 1", "regrade", _raise_score, owner="analysis"),
    Tampering(15, "completion edited", "tokens.text", _edit_completion),
    Tampering(16, "gold edited", "dataset.source", _gold),
    Tampering(
        17,
        "extracted answer changed",
        "extract",
        lambda r: edit_row(r / ANSWERS, 4, extracted="77"),
        owner="analysis",
    ),
    Tampering(18, "question dropped", "cover", _drop_question),
    Tampering(19, "question added", "cover", _add_question),
    Tampering(
        20,
        "prompt template changed",
        "plan.match",
        _plan("template: '{question}'", "template: 'Think. {question}'"),
    ),
    Tampering(21, "seed changed", "plan.match", _plan("- 1\n- 2\n", "- 1\n- 3\n")),
    Tampering(
        22,
        "temperature differs between sides",
        "protocol",
        _record(f"{RUN}/answers.protocol.json", "generation", "temperature", to=0.7),
    ),
    Tampering(23, "planned metric absent", "outcome.missing", _without_strict, owner="report"),
    Tampering(24, "an arm omitted", "arms.all", _without_arm),
    Tampering(25, "adapter digest changed", "diagnostics", _other_adapter),
    Tampering(26, "labels of arms exchanged", "adapter.arm", _swap_labels),
    Tampering(
        27,
        "p-value or interval edited",
        "stat.recompute",
        _record(COMPARISON, "adapters", 0, "p_value", to=lambda p: p / 9),
        owner="report",
    ),
    Tampering(
        28,
        "denominator edited",
        "stat.n",
        _record(COMPARISON, "adapters", 0, "n", to=190),
        owner="report",
    ),
    Tampering(29, "HTML and JSON differ", "report.bind", _page, owner="seal"),
    Tampering(30, "stale report", "report.root", _stale_report, owner="seal"),
    Tampering(31, "whole chain rebuilt by the owner", "root.anchor", _nothing, False),
    Tampering(32, "signature removed", "sig.missing", _nothing, False, ""),
    Tampering(33, "wrong key", "sig.key", _nothing, False, ""),
    Tampering(34, "older valid bundle", "root.anchor", _nothing, False),
)
