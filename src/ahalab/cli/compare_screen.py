"""How a comparison of two files is printed: sentences first, then the table."""

from __future__ import annotations

from rich.text import Text

from ahalab.cli.output import harmless, points, results_console, results_table, short_probability
from ahalab.records.pair import PairComparison, PairReading


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
    table = results_table(
        ("reading",), ("A", "B", "B \N{MINUS SIGN} A", level, "p", "exact p", "gained", "lost")
    )
    for reading in readings:
        table.add_row(*_row(reading))
    screen.print(table)
    screen.print(Text("\nIn brackets: exploratory, not what the comparison decides by."))


def _row(reading: PairReading) -> tuple[str, ...]:
    r = reading
    low, high = r.interval_points
    return (
        r.metric if r.primary else f"({r.metric})",
        f"{100 * r.base_correct / r.n:.1f} %",
        f"{100 * r.adapter_correct / r.n:.1f} %",
        points(r.difference_points),
        f"{points(low)} to {points(high)}",
        "-" if r.p_value is None else short_probability(r.p_value),
        "-" if r.p_exact is None else short_probability(r.p_exact),
        "-" if r.gained is None else str(r.gained),
        "-" if r.lost is None else str(r.lost),
    )
