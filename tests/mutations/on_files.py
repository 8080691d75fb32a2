"""Tampering with files, left as it is: digests tell."""

from __future__ import annotations

import os

from ahalab.store.fingerprint import ADAPTER_WEIGHTS
from mutations.kinds import (
    ANY_LINE,
    ROLLOUTS,
    RUN,
    STEPS,
    Mutation,
    flip,
    journal,
    manifest_entry,
    record,
    remove,
    rows,
    swap,
    symlink,
    torn,
    without_last_batch,
)
from tampering import edit_json

# Left as they are: digests tell.
PLAIN = [
    Mutation("a byte of a row file is flipped", flip(ROLLOUTS), "file.hash", ROLLOUTS),
    Mutation(
        "a byte of a row file is flipped, seen by the chain",
        flip(ROLLOUTS),
        "chain",
        ROLLOUTS,
        ANY_LINE,
    ),
    Mutation(
        "a byte of the adapter is flipped",
        flip(f"{RUN}/adapter/{ADAPTER_WEIGHTS}"),
        "file.hash",
        f"{RUN}/adapter/{ADAPTER_WEIGHTS}",
    ),
    Mutation("a byte of the report is flipped", flip("report.html"), "file.hash", "report.html"),
    Mutation(
        "a file is added", lambda r: (r / "more.txt").write_text("x"), "file.extra", "more.txt"
    ),
    Mutation(
        "a file is removed", remove(f"{RUN}/timings.jsonl"), "file.missing", f"{RUN}/timings.jsonl"
    ),
    Mutation(
        "a file is renamed", lambda r: (r / STEPS).rename(r / RUN / "old.jsonl"), "file.path", STEPS
    ),
    Mutation("a row file becomes a link to the same content", symlink, "file.type", ROLLOUTS),
    Mutation("a file becomes a pipe", lambda r: os.mkfifo(r / "pipe"), "file.type", "pipe"),
    Mutation(
        "the manifest leaves the folder",
        lambda r: manifest_entry(r, path="../x"),
        "path.safe",
        "manifest.json",
    ),
    Mutation("a manifest entry stands twice", manifest_entry, "manifest.unique", "manifest.json"),
    Mutation(
        "an ignore list is added",
        lambda r: edit_json(r / "manifest.json", lambda t: t.update(ignore=["x"])),
        "manifest.closed",
        "manifest.json",
    ),
    Mutation(
        "an unknown field is added",
        lambda r: edit_json(r / "manifest.json", lambda t: t.update(by="me")),
        "manifest.schema",
        "manifest.json",
    ),
    Mutation(
        "the root is edited",
        record("manifest.json", "root", to="sha256:" + "0" * 64),
        "root",
        "manifest.json",
    ),
    Mutation("a row is deleted", rows(ROLLOUTS, lambda x: x[:4] + x[5:]), "chain", ROLLOUTS, 1),
    Mutation("rows are reordered", rows(ROLLOUTS, swap), "chain", ROLLOUTS, 1),
    Mutation(
        "a row is appended after the seal",
        rows(ROLLOUTS, lambda x: [*x, x[-1]]),
        "seal",
        ROLLOUTS,
        33,
    ),
    Mutation(
        "the last batch is dropped",
        without_last_batch,
        "seal",
        f"{RUN}/rollouts.journal.jsonl",
        7,
    ),
    Mutation("a torn tail is called complete", torn, "seal", STEPS, 5),
    Mutation(
        "a journal is removed",
        remove(f"{RUN}/rollouts.journal.jsonl"),
        "chain",
        f"{RUN}/rollouts.journal.jsonl",
    ),
    Mutation(
        "a line of a journal is removed",
        journal(ROLLOUTS, lambda e: e[:2] + e[3:], chained=False),
        "chain",
        f"{RUN}/rollouts.journal.jsonl",
        3,
    ),
]
