"""One pair as a page: question, two answers side by side, what the scorer took and why."""

from __future__ import annotations

from dataclasses import dataclass

from rich.columns import Columns
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.panel import Panel
from rich.segment import Segment
from rich.text import Text

from ahalab.cli.demo_lines import ASKED
from ahalab.cli.output import harmless
from ahalab.demo.pairs import READINGS, ScoredPair
from ahalab.records.terms import Metric
from ahalab.scoring.answers import Score

COLOURS = {"correct": "green", "wrong": "red"}
GAP = 3
NARROW = 60
MEANING = {
    "gained": "right only after training",
    "lost": "right only before training",
    "both right": "before and after training",
    "both wrong": "before and after training",
}
HELP = """\
A model answered each question before training (base) and after it (the adapter). Both answers are \
scored now, by this installation's scorer, and compared with what was recorded.

strict   the answer counts only in the format that was asked for
lenient  the answer counts wherever it is clearly stated
marked   the characters taken as the answer; `rule` names how they were found

space  scroll down, then the next pair   p, left  the pair before
j k    scroll                            m    sort by the other reading
g l    gained or lost pairs only         c a  all changed pairs, all pairs
t      answer yourself, and be scored    q    quit

`ahalab demo --run DIR` shows any study, `--plain` prints lines, `--type` asks you."""


@dataclass(frozen=True, slots=True)
class Own:
    """An answer that was typed here."""

    text: str
    score: Score


class Window:
    """A page behind a window: a title, as many lines as fit from `top` on, and the keys."""

    def __init__(self, title: Text, body: RenderableType, keys: Text, top: int) -> None:
        self.title, self.body, self.keys, self.top = title, body, keys, top
        self.hidden = 0  # lines below the window, once it was drawn
        self.rows = 1  # lines that a page turns by

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw exactly the terminal's height."""
        width, height = options.max_width, options.height or console.height
        lines = console.render_lines(self.body, options.update(height=None))
        title = console.render_lines(self.title, options.update(height=None))[:2]
        keys = console.render_lines(self.keys, options.update(height=None))[:3]
        rows = max(1, height - len(title) - len(keys))
        self.rows = max(1, rows - 1)
        self.top = max(0, min(self.top, len(lines) - rows))
        shown = lines[self.top : self.top + rows]
        self.hidden = len(lines) - self.top - len(shown)
        if self.hidden and rows > 1:  # at the cost of a line, which scrolling shows
            shown[-1] = [Segment(f"… {self.hidden + 1} more lines: space".ljust(width)[:width])]
        shown += [[Segment(" " * width)]] * (rows - len(shown))
        for at, line in enumerate([*title, *shown, *keys][:height]):
            if at:
                yield Segment.line()
            yield from line


def title_of(scored: ScoredPair, number: int, metric: Metric, only: str) -> Text:
    """Return the first line: which pair, and what training did to it."""
    change = scored.change(metric)
    showing = f"{metric} reading, showing {only}"
    return Text(f"{number}  {change}: {MEANING[change]}  ({showing})", style="bold")


def page(scored: ScoredPair, own: Own | None, width: int) -> Group:
    """Return one pair, its answers in two columns where there is room."""
    pair = scored.pair
    narrow = width < NARROW
    each = width if narrow else (width - GAP) // 2
    panels = [
        _panel(f"base of {pair.study}", pair.base_completion, scored.base, each),
        _panel(f"{pair.arm}, seed {pair.seed}", pair.adapter_completion, scored.adapter, each),
    ]
    parts: list[RenderableType] = [
        Text(harmless(pair.question)),
        Text(f"gold: {harmless(pair.gold)}", style="dim"),
        Group(*panels) if narrow else Columns(panels, padding=(0, 1)),
    ]
    if own is not None:
        parts.append(_panel("your answer", own.text, own.score, width))
    form = harmless(ASKED.get(pair.answer_format, pair.answer_format))
    parts.append(Text(f"strict: in the asked format, {form}; lenient: wherever stated", "dim"))
    differing = scored.differing()
    if differing:
        listed = f"recorded otherwise by scorer {pair.scorer_version}: {'; '.join(differing)}"
        parts.append(Text(harmless(listed), "yellow"))
    else:
        parts.append(Text(f"scored now; as scorer {pair.scorer_version} had recorded it", "dim"))
    return Group(*parts)


def _panel(title: str, completion: str, score: Score, width: int) -> Panel:
    body = Text(overflow="fold")
    start, end = score.lenient.span or (0, 0)
    body.append(harmless(completion[:start]))
    body.append(harmless(completion[start:end]), style="reverse")
    body.append(harmless(completion[end:]))
    body.append("\n\n")
    for metric in READINGS:
        outcome = getattr(score, metric).outcome
        body.append(f"{metric} ")
        body.append(f"{outcome}\n", style=COLOURS.get(outcome, "yellow"))
    taken = "" if score.lenient.span is None else f", at {start}-{end}"
    body.append(f"rule: {score.lenient.rule}{taken}", style="dim")
    return Panel(body, title=Text(harmless(title)), title_align="left", width=width)
