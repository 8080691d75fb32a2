"""Debian's Chromium, as the report's and the viewer's tests drive it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium")
AXE = Path(__file__).with_name("axe.min.js")

needed = pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium")


@contextmanager
def launched() -> Iterator[Any]:
    """A browser; not for a whole session, since it holds the thread's event loop."""
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


def serious_faults(page: Any, **options: Any) -> list[tuple[str, list[str]]]:
    """Return what axe-core finds serious or critical on a page: rule, and up to three elements."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    options = {"resultTypes": ["violations"], **options}
    found = page.evaluate("(options) => axe.run(document, options)", options)
    return [
        (fault["id"], [node["html"][:120] for node in fault["nodes"]][:3])
        for fault in found["violations"]
        if fault["impact"] in ("serious", "critical")
    ]
