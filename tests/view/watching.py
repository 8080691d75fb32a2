"""The viewer in a browser: a page that is watched, and one page's accessibility."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from viewer_server import Running

import chromium

playwright = chromium.playwright


class Watched:
    """A page that must ask nobody else, run nothing foreign, and raise nothing."""

    def __init__(self, page: playwright.Page, running: Running) -> None:
        self.page = page
        self.running = running
        self.foreign: list[str] = []
        self.faults: list[str] = []
        page.on("request", self._asked)
        page.on("console", self._told)
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("dialog", lambda dialog: self.faults.append(f"dialog: {dialog.message}"))
        page.set_default_timeout(10_000)

    def _asked(self, request: playwright.Request) -> None:
        if not request.url.startswith(self.running.base + "/"):
            self.foreign.append(request.url)

    def _told(self, message: playwright.ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(message.text)

    def open(self, study: str, path: str, ready: str) -> playwright.Page:
        self.page.goto(f"{self.running.base}/study/{study}/{path}")
        self.page.wait_for_selector(ready)
        return self.page


@contextmanager
def watching(browser: playwright.Browser, running: Running) -> Iterator[Watched]:
    """Open the viewer's first page; at the end nothing foreign was asked, and nothing failed."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    watched = Watched(context.new_page(), running)
    watched.page.goto(running.address)
    watched.page.wait_for_selector("table")
    yield watched
    assert watched.foreign == []
    assert watched.faults == []
    context.close()


def assert_accessible(
    browser: playwright.Browser, running: Running, path: str, width: int, scheme: str
) -> None:
    """Find no serious fault of accessibility on a page, and nothing wider than the window.

    Args:
        browser: The browser.
        running: The viewer.
        path: As `study/ID/curves`; empty for the first page.
        width: Of the window, in CSS pixels.
        scheme: `light` or `dark`.
    """
    context = browser.new_context(
        viewport={"width": width, "height": 800}, color_scheme=scheme, bypass_csp=True
    )
    page = context.new_page()
    page.goto(running.address)
    page.wait_for_selector("table")
    if path:
        page.goto(f"{running.base}/{path}")
        page.wait_for_selector(".card, canvas")
    assert chromium.serious_faults(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    context.close()


def current(page: playwright.Page) -> str:
    """Return the line chosen in the list."""
    return page.locator("#list a[aria-current]").inner_text()
