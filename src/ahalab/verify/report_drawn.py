"""The report as a drawing: drawn again from the records, every byte of it is the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import zip_longest

from ahalab.errors import InputError
from ahalab.records.manifest import Manifest
from ahalab.store.layout import StudyPaths
from ahalab.store.manifest import root_digest
from ahalab.verify.reading import Study

FILE = "report.html"
AROUND = 30  # characters told before the first one that differs


@dataclass(frozen=True, slots=True)
class Drawing:
    """The reader's own code that draws a report."""

    digest: str  # of that code
    draw: Callable[[StudyPaths, str], str]  # a study and its evidence root to the page


def check_drawn(
    study: Study, page: bytes, drawn_by: list[tuple[int, str]], drawing: Drawing | None
) -> None:
    """Draw the report again where the same code drew it, and compare every byte.

    What the page prints is read and compared by `report.bind`; this tells of all the rest, as the
    curves, and needs the code that drew them and records that are sound.
    """
    tally = study.ledger["report.drawn"]
    manifest = study.record(study.paths.manifest, Manifest)
    code = {digest for _, digest in drawn_by}
    if drawing is None:
        tally.not_checked("nothing here draws it again")
    elif code != {drawing.digest}:
        tally.not_checked(
            "other code drew the page than what is installed, so only what it prints was compared "
            f"(report.bind); `ahalab report {study.root.name}` draws it again"
        )
    elif manifest is None:
        tally.incomplete("no manifest.json with the root that the page names")
    else:
        root = root_digest(manifest.plan_digest, manifest.evidence)
        try:
            again = drawing.draw(study.paths, root).encode()
        except InputError as error:
            tally.fail(FILE, None, "records that can be drawn", str(error))
            return
        if again == page:
            tally.passed()
        else:
            tally.fail(FILE, *_first_difference(again, page))


def _first_difference(expected: bytes, found: bytes) -> tuple[int, str, str]:
    """Return the first line that differs, from 1, and what stands there in either page."""
    lines = zip_longest(expected.splitlines(True), found.splitlines(True), fillvalue=b"")
    line, one, other = next((n, a, b) for n, (a, b) in enumerate(lines, 1) if a != b)
    pairs = zip(one, other, strict=False)
    at = next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
    start = max(0, at - AROUND)
    return line, _shown(one[start:]), _shown(other[start:])


def _shown(text: bytes) -> str:
    return text.decode("utf-8", errors="replace") or "the end of the page"
