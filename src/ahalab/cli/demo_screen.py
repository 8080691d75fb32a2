"""One pair on the screen: question, two answers side by side, what the scorer took and why."""

from __future__ import annotations

from rich.columns import Columns
from rich.console import Console, Group
from rich.panel import Panel
from rich.text import Text

from ahalab.cli.output import harmless
from ahalab.demo.pairs import ScoredPair
from ahalab.records.terms import Metric
from ahalab.scoring.answers import Score

COLOURS = {"correct": "green", "wrong": "red"}
GAP = 3


def show_pair(scored: ScoredPair, number: int, metric: Metric, only: str) -> None:
    """Print one pair to the terminal, in two columns where there is room."""
    console = Console()
    pair = scored.pair
    change = scored.change(metric)
    console.clear()
    console.print(
        Text(f"{number}  {change}  (by the {metric} reading; showing {only})", style="bold")
    )
    console.print(Text(harmless(pair.question)))
    console.print(Text(f"gold: {harmless(pair.gold)}\n", style="dim"))
    narrow = console.width < 60
    width = console.width if narrow else (console.width - GAP) // 2
    panels = [
        _panel("base", pair.base_completion, scored.base, width),
        _panel(f"{pair.arm}, seed {pair.seed}", pair.adapter_completion, scored.adapter, width),
    ]
    console.print(Group(*panels) if narrow else Columns(panels, padding=(0, 1)))


def _panel(title: str, completion: str, score: Score, width: int) -> Panel:
    body = Text()
    span = score.lenient.span
    if span is None:
        body.append(harmless(completion))
    else:
        start, end = span
        body.append(harmless(completion[:start]))
        body.append(harmless(completion[start:end]), style="reverse")
        body.append(harmless(completion[end:]))
    body.append("\n\n")
    for metric, reading in (("strict", score.strict), ("lenient", score.lenient)):
        body.append(f"{metric} ")
        body.append(f"{reading.outcome}\n", style=COLOURS.get(reading.outcome, "yellow"))
    body.append(f"rule: {score.lenient.rule}", style="dim")
    return Panel(body, title=Text(title), title_align="left", width=width)
