"""The report: bound to the evidence root, and printing the values of claims and records."""

from __future__ import annotations

import json
from typing import Any

from ahalab.plain_files import read_plain
from ahalab.records.manifest import Claims, Manifest
from ahalab.store.manifest import root_digest
from ahalab.verify.reading import Study, close
from ahalab.verify.report_answers import check_page_answers
from ahalab.verify.report_drawn import Drawing, check_drawn
from ahalab.verify.report_page import ANSWERS, CLAIMS, Page, read_page
from ahalab.verify.report_printed import check_printed

FILE = "report.html"
NAMES = ("report.bind", "report.drawn", "report.root")
MAX_REPORT_BYTES = 64 << 20


def check_report(study: Study, claims: Claims | None, drawing: Drawing | None = None) -> None:
    """Check report.html against claims.json, the manifest, and the page that its records give."""
    path, ledger = study.paths.report, study.ledger
    if not path.is_file():
        for name in NAMES:
            ledger[name].incomplete(f"{FILE}: not written yet")
    elif path.stat().st_size > MAX_REPORT_BYTES:
        ledger["report.bind"].fail(
            FILE, None, f"a page up to {MAX_REPORT_BYTES} bytes", "a longer one"
        )
    else:
        _check_bytes(study, read_plain(path), claims, drawing)
    ledger.close(NAMES)


def _check_bytes(
    study: Study, payload: bytes, claims: Claims | None, drawing: Drawing | None
) -> None:
    ledger = study.ledger
    sound = not ledger.failing()
    try:
        page = read_page(payload.decode("utf-8", errors="replace"))
    except ValueError as error:
        ledger["report.bind"].fail(FILE, None, "a page of HTML", str(error))
        page = Page()
    else:
        _check_page(study, page, claims)
    if sound:
        check_drawn(study, payload, page.drawn_by, drawing)
    else:
        ledger["report.drawn"].not_checked(
            "drawn again only from records that pass every check before"
        )


def _check_page(study: Study, page: Page, claims: Claims | None) -> None:
    bound = _block(study, page, CLAIMS, "root, plan_digest and claims")
    if bound is None:
        return
    line, found = bound
    tally = study.ledger["report.bind"]
    if study.plan_digest is not None:
        tally.expect(FILE, line, "plan_digest", study.plan_digest, found.get("plan_digest"))
    _check_root(study, [(line, str(found.get("root"))), *page.roots])
    if claims is not None:
        _check_values(study, line, found.get("claims"), claims)
        check_printed(study, page.printed, {claim.id: claim for claim in claims.claims})
    if study.present(study.paths.base_answers().answers):
        answers = _block(study, page, ANSWERS, "questions and answers")
        if answers is not None:
            check_page_answers(study, *answers)


def _block(study: Study, page: Page, name: str, holds: str) -> tuple[int, dict[str, Any]] | None:
    """Return the one JSON object under a name with its line; None: it is not there as it must."""
    tally = study.ledger["report.bind"]
    found = page.blocks[name]
    if len(found) != 1:
        tally.fail(FILE, None, f"one script with id {name}", f"{len(found)} of them")
        return None
    line, text = found[0]
    try:
        block = json.loads(text)
    except (ValueError, RecursionError) as error:
        tally.fail(FILE, line, f"{name} as JSON", str(error))
        return None
    if not isinstance(block, dict):
        tally.fail(FILE, line, f"an object of {holds}", block)
        return None
    return line, block


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
