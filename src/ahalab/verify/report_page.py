"""Reads a report as a browser would: what it binds itself to, and every number that it prints."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

CLAIMS, ANSWERS = "ahalab-claims", "ahalab-answers"


@dataclass(slots=True)
class Printed:
    """An element that prints claims, or fields of a file; a table's number that names neither."""

    tag: str
    line: int
    claims: tuple[str, ...]
    file: str | None  # its own, or of the row it stands in
    fields: tuple[str, ...]
    text: str = ""
    depth: int = 1  # elements of its tag that are open within it


@dataclass(slots=True)
class Page:
    """What the page binds itself to."""

    blocks: dict[str, list[tuple[int, str]]] = field(
        default_factory=lambda: {CLAIMS: [], ANSWERS: []}
    )  # id -> (line, JSON text) of each script so named
    roots: list[tuple[int, str]] = field(default_factory=list)
    drawn_by: list[tuple[int, str]] = field(default_factory=list)  # digest of the code
    printed: list[Printed] = field(default_factory=list)


def read_page(html: str) -> Page:
    """Return what a page binds itself to and what it prints.

    Raises:
        ValueError: It is not what an HTML parser takes, as a character of 5,000 digits.
    """
    reader = _Reader()
    try:
        reader.feed(html)
        reader.close()
    except AssertionError as error:  # how the library refuses a malformed declaration
        raise ValueError(str(error)) from error
    return reader.page


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.page = Page()
        self._open: list[Printed] = []
        self._script: list[tuple[int, str]] | None = None
        self._file: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attrs}
        line = self.getpos()[0]
        for printed in self._open:
            printed.depth += printed.tag == tag
        if tag == "script" and named.get("id") in self.page.blocks:
            self._script = self.page.blocks[named["id"]]
            self._script.append((line, ""))
        elif tag == "meta" and named.get("name") == "ahalab-evidence-root":
            self.page.roots.append((line, named.get("content", "")))
        elif tag == "meta" and named.get("name") == "ahalab-drawing":
            self.page.drawn_by.append((line, named.get("content", "")))
        elif tag == "tr":
            self._file = named.get("data-file")
        claims, fields = (named.get(f"data-{kind}", "").split() for kind in ("claim", "field"))
        number = tag in ("td", "th") and "n" in named.get("class", "").split()
        if claims or fields or (number and tag == "td"):
            file = named.get("data-file", self._file)
            self._open.append(Printed(tag, line, tuple(claims), file, tuple(fields)))

    def handle_endtag(self, tag: str) -> None:
        if tag == "script":
            self._script = None
        elif tag == "tr":
            self._file = None
        for printed in self._open:
            printed.depth -= printed.tag == tag
        self.page.printed += [printed for printed in self._open if printed.depth == 0]
        self._open = [printed for printed in self._open if printed.depth > 0]

    def handle_data(self, data: str) -> None:
        if self._script is not None:
            line, text = self._script[-1]
            self._script[-1] = (line, text + data)
        for printed in self._open:
            printed.text += data
