"""What may happen to sound evidence on its way to a reader, and must never be flagged."""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zstandard

from ahalab.report.html import write_report
from ahalab.store.layout import StudyPaths
from ahalab.store.manifest import write_manifest
from ahalab.store.reading import sealed_path
from tampering import edit_rows, mend_journals, read_lines

LONG_AGO = "1999-12-31T23:59:59+00:00"


@dataclass(frozen=True, slots=True)
class Benign:
    """One change, and what the reader still has: the folder, wherever it lies now."""

    name: str
    change: Callable[[Path], Path]


def made_again(root: Path) -> Path:
    """Write report and manifest over changed rows and records, as their writer would have."""
    plan_digest = json.loads((root / "manifest.json").read_bytes())["plan_digest"]
    mend_journals(root)
    write_report(StudyPaths(root))
    write_manifest(StudyPaths(root), plan_digest)
    return root


def _times(root: Path) -> Path:
    for at, path in enumerate(root.rglob("*")):
        os.utime(path, (at, 10**9 - at))
    return root


def _modes(root: Path) -> Path:
    for path in root.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o444)
    return root


def _owners(root: Path) -> Path:
    user = 12345 if os.geteuid() == 0 else os.geteuid()
    for path in root.rglob("*"):
        os.chown(path, user, -1)
    return root


def _moved(root: Path) -> Path:
    target = root.parent / "somewhere else" / "\N{GREEK SMALL LETTER PI} (copy)"
    target.parent.mkdir()
    return Path(shutil.move(root, target))


def _through_a_link(root: Path) -> Path:
    link = root.parent / "link"
    link.symlink_to(root, target_is_directory=True)
    return link


def _in_another_order(root: Path) -> Path:
    """Copy the files last to first, under another umask: a folder lists them as they came."""
    target, before = root.parent / "ordered", os.umask(0o077)
    try:
        for path in sorted(root.rglob("*"), reverse=True):
            if path.is_file():
                copy = target / path.relative_to(root)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copy)
    finally:
        os.umask(before)
    return target


def _hard_links(root: Path) -> Path:
    return Path(shutil.copytree(root, root.parent / "linked", copy_function=os.link))


def _empty_folders(root: Path) -> Path:
    (root / "empty" / "below").mkdir(parents=True)
    (root / "arms" / "another" / "seed-7").mkdir(parents=True)
    (root / "rescored").mkdir(exist_ok=True)
    return root


def _a_clock_that_went_backwards(root: Path) -> Path:
    """Later steps and attempts bear earlier times; runs end before they begin."""
    for rows in root.glob("arms/*/*/timings.jsonl"):
        edit_rows(rows, lambda found: found[-1].update(utc=LONG_AGO))
    for path in root.glob("arms/*/*/run.json"):
        _edit(path, lambda tree: tree.update(finished_utc=LONG_AGO))
    for path in root.glob("arms/*/*/answers.journal.jsonl"):
        lines = [json.loads(line) for line in read_lines(path)]
        lines[1]["utc"] = LONG_AGO
        path.write_bytes(
            b"".join(json.dumps(e, separators=(",", ":")).encode() + b"\n" for e in lines)
        )
    return made_again(root)


def _last_digits(root: Path) -> Path:
    """Every float that a sum can leave in another last digit gets one."""
    for name in ("comparison", "ablation", "templates"):
        path = root / f"analysis/{name}.json"
        if path.exists():
            _edit(path, _nudge)
    _edit(root / "claims.json", _nudge)
    for path in root.glob("arms/*/*/diagnostics.json"):
        _edit(path, _nudge)
    for rows in root.glob("arms/*/*/steps.jsonl"):
        edit_rows(rows, lambda found: [_nudge(row) for row in found] and None)
    return made_again(root)


FIXED = {"alpha", "confidence", "margin_points", "components", "weight", "against_weight"}


def _nudge(tree: Any) -> Any:
    """Move every float but those of the plan to the next one above."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in list(items):
        if key in FIXED and tree is not None and not isinstance(value, list):
            continue
        if isinstance(value, float) and not (2_000 * value).is_integer():  # no tie of a rounding
            tree[key] = math.nextafter(value, math.inf)
        elif isinstance(value, dict | list):
            _nudge(value)
    return tree


def _compressed(root: Path) -> Path:
    """Sealed rows lie compressed, as they do from a megabyte on."""
    for rows in root.glob("arms/*/*/rollouts.jsonl"):
        sealed_path(rows).write_bytes(zstandard.ZstdCompressor().compress(rows.read_bytes()))
        rows.unlink()
    plan_digest = json.loads((root / "manifest.json").read_bytes())["plan_digest"]
    write_report(StudyPaths(root))
    write_manifest(StudyPaths(root), plan_digest)
    return root


def _edit(path: Path, change: Callable[[Any], Any]) -> None:
    tree = json.loads(path.read_bytes())
    change(tree)
    path.write_bytes((json.dumps(tree, indent=1) + "\n").encode())


BENIGN = (
    Benign("nothing at all", lambda root: root),
    Benign("other times", _times),
    Benign("other modes, read-only", _modes),
    Benign("other owners", _owners),
    Benign("moved to another name", _moved),
    Benign("named through a link", _through_a_link),
    Benign("copied in another order under another umask", _in_another_order),
    Benign("hard links", _hard_links),
    Benign("empty folders", _empty_folders),
    Benign("a clock that went backwards", _a_clock_that_went_backwards),
    Benign("last digits of floats", _last_digits),
    Benign("rows compressed", _compressed),
)
ENVIRONMENTS = (
    {"TZ": "Pacific/Kiritimati", "LC_ALL": "tr_TR.UTF-8", "PYTHONHASHSEED": "1"},
    {"TZ": "America/St_Johns", "LC_ALL": "C", "PYTHONHASHSEED": "2", "PYTHONUTF8": "0"},
)
"""Settings of the reader's machine under which the real command must say the same."""
