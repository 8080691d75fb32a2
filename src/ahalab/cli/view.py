"""`ahalab view`: a local page over studies, also while they run."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ahalab.view.index import Extent
    from ahalab.view.sources import Study

LINE_SECONDS = 2.0


def view(
    folders: Annotated[
        list[Path], typer.Argument(help="Studies, or folders of studies.", metavar="DIR...")
    ],
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1; 0: any free one.")
    ] = 0,
    browser: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Show studies on a local page: curves, rollouts, pairs."""
    from ahalab.cli.output import say
    from ahalab.view.serve import serve

    def announce(address: str) -> None:
        typer.echo(address)
        say("Open this address; it holds a token. Ctrl-C stops the viewer.")
        if browser:
            typer.launch(address)

    try:
        serve(folders, port, announce, IndexLines().report)
    except KeyboardInterrupt:  # the way to stop it
        say("stopped")


class IndexLines:
    """Tells on stderr how far an index is, when making it takes a while."""

    def __init__(self) -> None:
        self._began: dict[str, tuple[float, int]] = {}  # study -> when, and rows then
        self._told: dict[str, float] = {}

    def report(self, study: Study, extent: Extent) -> None:
        """Take in how far an index is; write a line now and then."""
        from ahalab.cli.output import harmless, say

        now = time.monotonic()
        began, before = self._began.setdefault(study.id, (now, extent.rows))
        last = self._told.setdefault(study.id, began)
        finished = extent.rows >= extent.total
        if now - last > LINE_SECONDS or (finished and last > began):
            rate = (extent.rows - before) / max(now - began, 1e-9)
            left = f", {(extent.total - extent.rows) / rate:.0f} s left" if rate else ""
            say(
                f"index of {harmless(study.plan.name)}: {extent.rows:,} of {extent.total:,} rows, "
                f"{rate:,.0f}/s{'' if finished else left}"
            )
            self._told[study.id] = now
        if finished:
            self._began.pop(study.id, None)
            self._told.pop(study.id, None)
