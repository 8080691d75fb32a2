"""The report: bound to the evidence root, and printing the values of the claims."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

from ahalab.records.manifest import Claim, Claims, Manifest
from ahalab.store.manifest import root_digest
from ahalab.verify.reading import Study, close

FILE = "report.html"
NAMES = ("report.bind", "report.root")
BOUND = "ahalab-claims"
MAX_REPORT_BYTES = 64 << 20
_FIGURE = re.compile(r"[+\u2212-]?(?:\d[\d,]*(?:\.\d+)?|\.\d+)")
_POWER = re.compile(r"(\d(?:\.\d+)?) × 10([⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)")
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")


@dataclass(slots=True)
class _Cell:
    """A table cell that prints claims."""

    claims: list[str]
    line: int
    text: str = ""


@dataclass(slots=True)
class _Page:
    """What the page binds itself to."""

    bound: list[tuple[int, str]] = field(default_factory=list)  # (line, JSON text)
    roots: list[tuple[int, str]] = field(default_factory=list)
    cells: list[_Cell] = field(default_factory=list)


class _Reader(HTMLParser):
    """Collects the bound claims, the evidence root and the cells that name a claim."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.page = _Page()
        self._cell: _Cell | None = None
        self._script = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open a bound script, the root's meta, or a bound cell."""
        named = dict(attrs)
        line = self.getpos()[0]
        if tag == "script" and named.get("id") == BOUND:
            self._script = True
            self.page.bound.append((line, ""))
        elif tag == "meta" and named.get("name") == "ahalab-evidence-root":
            self.page.roots.append((line, named.get("content") or ""))
        elif tag in ("td", "th"):
            claims = named.get("data-claim")
            self._cell = _Cell(claims.split(), line) if claims else None

    def handle_endtag(self, tag: str) -> None:
        """Close what is open."""
        if tag == "script":
            self._script = False
        elif tag in ("td", "th") and self._cell is not None:
            self.page.cells.append(self._cell)
            self._cell = None

    def handle_data(self, data: str) -> None:
        """Take text in where it belongs."""
        if self._script:
            line, text = self.page.bound[-1]
            self.page.bound[-1] = (line, text + data)
        elif self._cell is not None:
            self._cell.text += data


def check_report(study: Study, claims: Claims | None) -> None:
    """Check report.html against claims.json and the manifest."""
    path, ledger = study.paths.report, study.ledger
    if not path.is_file():
        for name in NAMES:
            ledger[name].incomplete(f"{FILE}: not written yet")
    elif path.stat().st_size > MAX_REPORT_BYTES:
        ledger["report.bind"].fail(
            FILE, None, f"a page up to {MAX_REPORT_BYTES} bytes", "a longer one"
        )
    else:
        reader = _Reader()
        reader.feed(path.read_text(encoding="utf-8", errors="replace"))
        reader.close()
        _check_page(study, reader.page, claims)
    ledger.close(NAMES)


def _check_page(study: Study, page: _Page, claims: Claims | None) -> None:
    tally = study.ledger["report.bind"]
    if len(page.bound) != 1:
        tally.fail(FILE, None, f"one script with id {BOUND}", f"{len(page.bound)} of them")
        return
    line, text = page.bound[0]
    try:
        bound = json.loads(text)
    except (ValueError, RecursionError) as error:
        tally.fail(FILE, line, "the claims as JSON", str(error))
        return
    if not isinstance(bound, dict):
        tally.fail(FILE, line, "an object of root, plan_digest and claims", bound)
        return
    if study.plan_digest is not None:
        tally.expect(FILE, line, "plan_digest", study.plan_digest, bound.get("plan_digest"))
    _check_root(study, [(line, str(bound.get("root"))), *page.roots])
    if claims is not None:
        _check_values(study, line, bound.get("claims"), claims)
        _check_cells(study, page.cells, {claim.id: claim for claim in claims.claims})


def _check_root(study: Study, found: list[tuple[int, str]]) -> None:
    """Compare the roots that the page names with that of the evidence."""
    tally = study.ledger["report.root"]
    manifest = study.record(study.paths.manifest, Manifest)
    if manifest is None:
        tally.incomplete("no manifest.json with a root to compare with")
        return
    root = root_digest(manifest.plan_digest, manifest.evidence)
    for line, value in found:
        tally.expect(FILE, line, "root of the evidence", root, value)


def _check_values(study: Study, line: int, found: Any, claims: Claims) -> None:
    tally = study.ledger["report.bind"]
    if not isinstance(found, list) or len(found) != len(claims.claims):
        count = len(found) if isinstance(found, list) else "none"
        tally.fail(FILE, line, f"{len(claims.claims)} claims", count)
        return
    for claim, entry in zip(claims.claims, found, strict=True):
        expected = {"id": claim.id, "value": claim.value}
        same = isinstance(entry, dict) and entry.keys() == expected.keys()
        if same and entry["id"] == claim.id and close(claim.value, entry["value"], 0.0):
            tally.passed()
        else:
            tally.fail(FILE, line, f"{claim.id}: {claim.value!r}", entry)


def _check_cells(study: Study, cells: list[_Cell], claims: dict[str, Claim]) -> None:
    """Compare what a reader sees in the tables with the claims that the cells name."""
    tally = study.ledger["report.bind"]
    for cell in cells:
        known = [claims[name] for name in cell.claims if name in claims]
        if len(known) != len(cell.claims):
            tally.fail(
                FILE, cell.line, "cells that name claims of claims.json", " ".join(cell.claims)
            )
            continue
        figures = figures_in(cell.text)
        values = [claim for claim in known if isinstance(claim.value, int | float)]
        if len(figures) == len(values) and all(
            _rounds(claim, figure) for claim, figure in zip(values, figures, strict=True)
        ):
            tally.passed()
        else:
            expected = ", ".join(f"{claim.id} = {claim.value!r}" for claim in known)
            tally.fail(FILE, cell.line, expected, cell.text)


def figures_in(text: str) -> list[tuple[float, float]]:
    """Return (value, rounding error) of every number that a table's cell prints."""
    found = []
    power = _POWER.search(text)
    if power:
        digits = len(power.group(1).partition(".")[2])
        scale = 10.0 ** int(power.group(2).translate(_SUPERSCRIPTS))
        return [(float(power.group(1)) * scale, 0.51 * 10.0**-digits * scale)]
    for match in _FIGURE.finditer(text):
        written = match.group().replace(",", "").replace("\u2212", "-")
        found.append((float(written), 0.51 * 10.0 ** -len(written.partition(".")[2])))
    return found


def _rounds(claim: Claim, figure: tuple[float, float]) -> bool:
    """Say whether a printed number is the claim's value, rounded (fractions are in percent)."""
    value, error = figure
    if not isinstance(claim.value, int | float):
        return False
    scale = 100.0 if claim.unit == "fraction" else 1.0
    return abs(scale * claim.value - value) <= error
