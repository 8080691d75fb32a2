"""How a comparison of two files is printed: sentences first, then the table."""

from __future__ import annotations

from collections.abc import Callable

from rich.text import Text

from ahalab.cli.output import harmless, points, results_console, results_table, short_probability
from ahalab.records.pair import PairComparison, PairReading

Show = Callable[[PairReading], str]


def print_pair(compared: PairComparison) -> None:
    """Print which files, the sentence of each reading, what to know, and the figures."""
    screen = results_console()
    screen.print(Text(f"A  {harmless(compared.base)}\nB  {harmless(compared.adapter)}\n"))
    readings = sorted((compared.strict, compared.lenient), key=lambda r: not r.primary)
    for reading in readings:
        screen.print(Text(f"{'' if reading.primary else 'Exploratory, '}{reading.sentence}\n"))
    for note in compared.notes:
        screen.print(Text(f"{harmless(note)}\n"))
    level = f"{100 * compared.confidence:.4g} % interval"
    columns = {
        **_shares(level), **(_FLIPS if any(r.gained is None for r in readings) else {}),
        **(_PAIRS if any(r.gained is not None for r in readings) else {}),
    }  # fmt: skip
    table = results_table(("reading",), tuple(columns))
    for reading in readings:
        name = reading.metric if reading.primary else f"({reading.metric})"
        table.add_row(name, *(show(reading) for show in columns.values()))
    screen.print(table)
    screen.print(Text("\nIn brackets: exploratory, not what the comparison decides by."))


def _shares(level: str) -> dict[str, Show]:
    """Return the columns that every reading has: heading, and what stands below it."""
    return {
        "A": lambda r: f"{100 * r.base_correct / r.n:.1f} %",
        "B": lambda r: f"{100 * r.adapter_correct / r.n:.1f} %",
        "B \N{MINUS SIGN} A": lambda r: points(r.difference_points),
        level: lambda r: " to ".join(points(bound) for bound in r.interval_points),
        "p": lambda r: _probability(r.p_value),
    }


# One answer to each question, or several.
_PAIRS: dict[str, Show] = {
    "exact p": lambda r: _probability(r.p_exact),
    "gained": lambda r: "-" if r.gained is None else str(r.gained),
    "lost": lambda r: "-" if r.lost is None else str(r.lost),
}
_FLIPS: dict[str, Show] = {"flip p": lambda r: _probability(r.p_sign_flip)}


def _probability(p_value: float | None) -> str:
    return "-" if p_value is None else short_probability(p_value)
