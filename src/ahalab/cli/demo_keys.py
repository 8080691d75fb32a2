"""The demo on a terminal: a full screen, driven by keys, redrawn when the terminal is resized."""

from __future__ import annotations

import os
import re
import select as polling
import sys
import termios
import time
import tty
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice

import typer
from rich.console import Console
from rich.control import Control
from rich.text import Text

from ahalab.cli.demo import WANTED, Only
from ahalab.cli.demo_lines import again, typed_line
from ahalab.cli.demo_screen import HELP, Own, Window, page, title_of
from ahalab.cli.output import harmless
from ahalab.demo.pairs import Deck, ScoredPair, score_text, select
from ahalab.records.demo import SavedPair
from ahalab.records.terms import Metric

FILTERS = {"a": Only.all, "c": Only.changed, "g": Only.gained, "l": Only.lost}
FORWARD, BACK = {" ", "n", "\r", "\n", "\x1b[C"}, {"p", "\x7f", "\b", "\x1b[D"}
DOWN, UP = {"j", "\x1b[B", "\x1b[6~"}, {"k", "\x1b[A", "\x1b[5~"}
QUIT = {"q", "\x1b", "\x04", ""}  # "" is the end of the input
KEYS = "space next  p back  g gained  l lost  c changed  a all  t type  ? help  q quit"
TELL_SECONDS = 0.5  # between two words on how far a search is
LOOK_SECONDS = 0.2  # between two looks at the terminal's size, while no key comes
ONE_KEY = re.compile(r"\x1b\[[0-9;]*[A-Za-z~]|\x1bO[A-Z]|.", re.DOTALL)


class Keyboard:
    """Keys as they are pressed, one at a time; the terminal is as before afterwards."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._waiting: list[str] = []

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Hand keys on without a line end and without an echo; Ctrl-C still interrupts."""
        before = termios.tcgetattr(self._descriptor)
        tty.setcbreak(self._descriptor)
        try:
            yield
        finally:
            termios.tcsetattr(self._descriptor, termios.TCSADRAIN, before)

    def key(self, console: Console, drawn: tuple[int, int]) -> str | None:
        """Wait for a key; "" is the end of the input, None: the size is not the drawn one."""
        while not self._waiting:
            ready, _, _ = polling.select([self._descriptor], [], [], LOOK_SECONDS)
            if not ready:
                if console.size != drawn:
                    return None
                continue
            try:
                typed = os.read(self._descriptor, 1024)
            except OSError:  # the terminal is gone
                typed = b""
            if not typed:
                return ""
            self._waiting = ONE_KEY.findall(typed.decode("latin-1"))
        return self._waiting.pop(0)


class Browser:
    """What is shown, and what the keys make of it."""

    def __init__(
        self, pairs: Sequence[SavedPair], only: Only, metric: Metric, limit: int | None
    ) -> None:
        self._pairs, self._limit = pairs, limit
        self._only, self._metric = only, metric
        self._told = time.monotonic()
        self._deck = self._sorted()
        self._number = self._top = 0
        self._own: Own | None = None
        self._help = False
        self._console = Console(highlight=False)
        self._keyboard = Keyboard(sys.stdin.fileno())

    def show(self) -> None:
        """Show pairs until the person quits; then say what was seen, on the ordinary screen."""
        wanted = self._browse()
        while wanted == "t":
            self._type()
            wanted = self._browse()
        seen = self._deck.seen
        if seen:
            differing = sum(len(scored.differing()) for scored in seen)
            told = again(4 * len(seen), differing, {s.pair.scorer_version for s in seen})
            typer.echo(f"Scored {len(seen)} pair{'' if len(seen) == 1 else 's'}. {told}")

    def _sorted(self) -> Deck:
        chosen = select(self._counted(), WANTED[self._only], self._metric)
        return Deck(islice(chosen, self._limit))

    def _counted(self) -> Iterator[SavedPair]:
        """Yield every pair; tell how far a search is that takes its time, as mathematics may."""
        for number, pair in enumerate(self._pairs, start=1):
            if time.monotonic() - self._told > TELL_SECONDS:
                self._console.control(Control.home())
                told = f"scoring pair {number} of {len(self._pairs)} …"
                self._console.print(Text(told.ljust(self._console.width), "reverse"), end="")
                self._told = time.monotonic()
            yield pair

    def _browse(self) -> str:
        """Return the key that needs the ordinary screen: `t` or a quitting one."""
        with self._console.screen() as screen, self._keyboard.at_once():
            while True:
                self._told = time.monotonic()
                scored = self._deck.at(self._number)
                drawn, window = self._console.size, self._window(scored)
                self._console.control(Control.home())  # where `update` begins
                screen.update(window)
                self._top = window.top
                key = self._keyboard.key(self._console, drawn)
                if key is None:
                    continue
                if key == "\x1b" and (self._help or self._own):
                    self._help, self._own = False, None
                elif key.lower() in QUIT or (key == "t" and scored is not None):
                    return key
                else:
                    self._obey(key if key.startswith("\x1b") else key.lower(), window, scored)

    def _window(self, scored: ScoredPair | None) -> Window:
        keys = Text(KEYS, "dim")
        if self._help:
            return Window(Text("ahalab demo", "bold"), Text(HELP), keys, self._top)
        if scored is None:
            count = len(self._deck.seen)
            end = f"End of the {count} pair{'' if count == 1 else 's'}" if count else "No such pair"
            chosen = "" if self._only is Only.all else f"{self._only.value}, "
            title = Text(f"{end} ({chosen}by the {self._metric} reading).", "bold")
            changes = Counter(seen.change(self._metric) for seen in self._deck.seen)
            told = "\n".join(f"{count:>5} {change}" for change, count in changes.most_common())
            return Window(title, Text(told), keys, 0)
        title = title_of(scored, self._number + 1, self._metric, self._only.value)
        body = page(scored, self._own, self._console.width)
        return Window(title, body, keys, self._top)

    def _obey(self, key: str, window: Window, scored: ScoredPair | None) -> None:
        if key in DOWN or (key == " " and window.hidden):
            self._top += 1 if key in DOWN and "~" not in key else window.rows
        elif key in UP:
            self._top -= 1 if "~" not in key else window.rows
        elif key == "?":
            self._help, self._top = not self._help, 0
        elif key in FORWARD and scored is not None:
            self._turn(self._number + 1)
        elif key in BACK and self._number:
            self._turn(self._number - 1)
        elif key in FILTERS or key == "m":
            self._only = FILTERS.get(key, self._only)
            if key == "m":
                self._metric = "lenient" if self._metric == "strict" else "strict"
            self._deck = self._sorted()
            self._turn(0)

    def _turn(self, number: int) -> None:
        self._number, self._top, self._own, self._help = number, 0, None, False

    def _type(self) -> None:
        """Read one answer to the question that is shown, and score it; the end of input: none."""
        scored = self._deck.at(self._number)
        if scored is None:
            return
        self._console.print(Text(harmless(scored.pair.question), "bold"))
        text = typed_line()
        if text is not None:
            self._own = Own(text, score_text(scored.pair, text))
            self._top = sys.maxsize  # the page's end, where the typed answer stands
