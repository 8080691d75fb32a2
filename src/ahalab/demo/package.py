"""Writes the packaged run from a study: `python -m ahalab.demo.package STUDY CELL COUNT`."""

from __future__ import annotations

import sys
from itertools import islice
from pathlib import Path

from ahalab.demo.pairs import study_pairs
from ahalab.records.base import encode
from ahalab.store.durable import replace_file


def main(study: str, cell: str, count: str) -> None:
    """Write the first `count` pairs of a cell, in prompt order, which a seed has drawn already."""
    pairs = islice(study_pairs(Path(study), cell), int(count))
    payload = b"".join(encode(pair) + b"\n" for pair in pairs)
    replace_file(Path(__file__).parent / "saved_run.jsonl", payload)


if __name__ == "__main__":
    main(*sys.argv[1:])
