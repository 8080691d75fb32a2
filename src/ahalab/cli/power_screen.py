"""How a power table is printed, within 80 columns."""

from __future__ import annotations

from rich.text import Text

from ahalab.cli.output import harmless, points, results_console, results_table
from ahalab.records.power import PowerDesign, PowerNeed, PowerTable

MOST_COLUMNS = 5  # numbers of questions side by side


def print_power(table: PowerTable) -> None:
    """Print the power, the smallest effects, and what all of it assumes."""
    screen = results_console()
    level = f"{100 * table.wanted_power:.4g} %"
    sizes = sorted({d.questions for d in table.designs})
    shown = sizes[:MOST_COLUMNS]
    heads = tuple(f"{n:,}" for n in shown)
    screen.print(
        Text(f"Chance of finding a change of {points(table.effect_points)} points, by questions:\n")
    )
    power = results_table(("claim on",), ("seeds", "k", *heads, f"N for {level}", "answers"))
    effects = results_table(("claim on",), ("seeds", "k", *heads))
    for need in table.needs:
        row = [d for n in shown for d in table.designs if _same(d, need) and d.questions == n]
        who = ("this adapter" if need.claim == "adapter" else "the reward", str(need.seeds))
        chances = (_chance(d) for d in row)
        power.add_row(
            *who, str(need.samples), *chances, _count(need.questions), _count(need.answers)
        )
        effects.add_row(*who, str(need.samples), *(_smallest(d) for d in row))
    screen.print(power)
    screen.print(Text(f"\nSmallest change found with {level} chance, points:\n"))
    screen.print(effects)
    if len(sizes) > len(shown):
        screen.print(Text(f"\nOf {len(sizes)} numbers of questions {len(shown)} are shown."))
    screen.print(
        Text(
            "\nk: answers a question. N: questions. answers: to generate for them, the base's "
            "included.\nnone: not with 1,000,000 questions. -: no such claim, or no such change.\n"
        )
    )
    screen.print(Text(f"What this rests on ({harmless(table.assumptions.source)}):"))
    for told in table.assumptions.told:
        screen.print(Text(f"- {harmless(told)}"))


def _same(design: PowerDesign, need: PowerNeed) -> bool:
    return (design.claim, design.seeds, design.samples) == (need.claim, need.seeds, need.samples)


def _chance(design: PowerDesign) -> str:
    return "-" if design.power == 0.0 else f"{100 * design.power:.0f} %"


def _smallest(design: PowerDesign) -> str:
    return "-" if design.detectable_points is None else f"{design.detectable_points:.1f}"


def _count(value: int | None) -> str:
    return "none" if value is None else f"{value:,}"
