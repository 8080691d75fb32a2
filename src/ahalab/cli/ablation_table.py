"""How an ablation is printed: arms x seeds, the arms ranked, and what single components did."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from ahalab.cli.output import (
    harmless,
    points,
    results_console,
    results_table,
    short_probability,
)
from ahalab.records.comparison import Ablation, RankedArm, StagedAblation

ABLATION_KEY = (
    "reward: in training, first to last fifth. own score: what the arm itself would pay for the "
    "evaluation answers, base to adapter. strict, lenient: change in accuracy, points; sd: over "
    "seeds."
)


def _signed_reward(value: float | None) -> str:
    return "-" if value is None else f"{value:+.2f}".replace("-", "\N{MINUS SIGN}")


def print_ablation(ablation: Ablation) -> None:
    """Print arms x seeds: own reward beside accuracy."""

    def number(value: float | None) -> str:
        return "-" if value is None else f"{value:.2f}"

    def spread(value: float | None) -> str:
        return "-" if value is None else f"{value:.1f}"

    table = results_table(("arm",), ("seed", "reward", "own score", "strict", "lenient"))
    for cell in ablation.cells:
        table.add_row(
            cell.arm,
            str(cell.seed),
            f"{number(cell.reward_first)} to {number(cell.reward_last)}",
            f"{number(cell.own_score_base)} to {number(cell.own_score_adapter)}",
            points(cell.strict_difference_points),
            points(cell.lenient_difference_points),
        )
    over = results_table(("over seeds",), ("seeds", "own score", "strict", "sd", "lenient", "sd"))
    for arm in ablation.arms:
        over.add_row(
            f"{arm.arm} (control)" if arm.control else arm.arm,
            str(arm.seeds),
            _signed_reward(arm.own_score_difference),
            points(arm.strict_difference_points),
            spread(arm.strict_seed_spread_points),
            points(arm.lenient_difference_points),
            spread(arm.lenient_seed_spread_points),
        )
    console = results_console()
    if ablation.allowed:
        fields = harmless(", ".join(ablation.allowed))
        told = f"EXCEPTION: the protocols differ in {fields}; `ahalab analyze` says for whom.\n"
        console.print(Text(told))
    console.print(table)
    console.print()
    console.print(over)
    console.print(Text(f"\n{ABLATION_KEY}"))
    _print_ranking(console, ablation.ranking)
    _print_components(console, ablation)
    for cell in ablation.cells:
        if cell.alarms:
            told = ", ".join(cell.alarms)
            console.print(Text(harmless(f"alarms of {cell.arm}, seed {cell.seed}: {told}")))
    for arm in ablation.arms:
        for alarm in arm.alarms:
            told = f"alarm {alarm.name} of {arm.arm}: {alarm.evidence}. Try: {alarm.remedy}."
            console.print(Text(harmless(told)))


def print_stages(stages: StagedAblation) -> None:
    """Print the ablation of each study, then all arms ranked together, or why they are not."""
    console = results_console()
    for stage in stages.stages:
        console.print(Text(f"{harmless(stage.study)}\n", style="bold"))
        print_ablation(stage.ablation)
        console.print()
    if stages.ranking is None:
        console.print(Text(f"Not ranked together. {harmless(stages.not_comparable or '')}"))
        return
    console.print(Text("All studies together", style="bold"))
    _print_ranking(console, stages.ranking)


def _print_ranking(console: Console, ranking: Sequence[RankedArm]) -> None:
    """Print where each arm stands, and how sure that is."""
    table = results_table(("ranking",), ("best in", "rank"))
    for place in ranking:
        low, high = place.rank_low, place.rank_high
        ranks = str(low) if low == high else f"{low} to {high}"
        table.add_row(place.arm, f"{100 * place.best_fraction:.1f} %", ranks)
    console.print()
    console.print(table)
    console.print(
        Text(
            "\nbest in: share of 2,000 resamples of questions and seeds in which no arm changed "
            "the primary metric more; one seed stands still. rank: interval over them."
        )
    )


def _print_components(console: Console, ablation: Ablation) -> None:
    """Print arms that differ in one component, compared directly."""
    if not ablation.components:
        return
    table = results_table(("component", "arms", "metric"), ("change", "interval", "p"))
    for effect in ablation.components:
        bounds = effect.interval_points
        told = "one seed" if bounds is None else f"{points(bounds[0])} to {points(bounds[1])}"
        table.add_row(
            f"{effect.component} {effect.against_weight:g} to {effect.weight:g}",
            f"{effect.arm} against {effect.against}",
            effect.metric,
            points(effect.difference_points),
            told,
            "-" if effect.p_value is None else short_probability(effect.p_value),
        )
    console.print()
    console.print(table)
    console.print(Text("\nExploratory: not planned, p uncorrected."))
