"""Tables on runs: what they did in training, how answers read, arms x seeds."""

from __future__ import annotations

from ahalab.records.comparison import Comparison
from ahalab.records.terms import Outcome
from ahalab.report.sources import Study
from ahalab.report.tables import Cell, Table, once
from ahalab.report.wording import UNKNOWN, number, percent, points, trend, weighted

OUTCOMES: tuple[Outcome, ...] = ("correct", "wrong", "unparsed", "truncated", "error")


def reading_table(comparison: Comparison) -> Table:
    """Return how the answers of each set read, so that parsing and truncation are seen."""
    rows = []
    for rates in comparison.rates:
        for metric, counts in (("strict", rates.strict), ("lenient", rates.lenient)):
            cells = (Cell(f"{counts.get(outcome, 0):,}") for outcome in OUTCOMES)
            name = rates.answers.removesuffix(".jsonl").removesuffix("/answers")
            length = number(rates.mean_tokens)
            rows.append((Cell(name), Cell(metric), Cell(f"{rates.n:,}"), *cells, Cell(length)))
    return Table(
        caption="How the answers read: outcomes per answer set, and the mean length in tokens.",
        columns=("answers", "reading", "n", *OUTCOMES, "tokens"),
        rows=once(tuple(rows)),
        heads=2,
        numbers=2,
    )


def diagnostics_table(study: Study) -> Table:
    """Return what the reward, the groups, the lengths and the parsers did in each run."""
    rows = []
    for run in study.runs:
        d = run.diagnostics
        if d is None:
            continue
        shares = (d.strict, d.lenient, d.historical, d.truncated)
        rows.append(
            (
                Cell(run.arm),
                Cell(str(run.seed)),
                Cell(trend(d.reward.first, d.reward.last)),
                *(Cell(trend(t.first, t.last, share=True)) for t in shares),
                Cell(trend(d.length_tokens.first, d.length_tokens.last)),
                Cell(trend(d.entropy.first, d.entropy.last)),
                Cell(percent(d.zero_variance_fraction)),
                Cell(percent(d.paid_though_wrong_fraction)),
                Cell(percent(d.unpaid_though_right_fraction)),
                Cell(percent(d.wrong_advantage_fraction)),
                Cell(trend(d.reflection.first, d.reflection.last, share=True)),
                Cell(number(d.adapter_effect_norm)),
            )
        )
    return Table(
        caption="Each training run. Arrows: mean of the first fifth of the steps → of the last.",
        columns=(
            "arm", "seed", "reward", "strict", "lenient", "historical", "truncated", "tokens",
            "entropy", "dead groups", "paid though wrong", "unpaid though right",
            "advantage on wrong", "reflection", "adapter norm",
        ),
        rows=once(tuple(rows)),
        heads=2,
        numbers=2,
    )  # fmt: skip


def ablation_tables(study: Study) -> tuple[Table, ...]:
    """Return arms, and arms x seeds, with each arm's own score; empty when it was not made."""
    ablation = study.ablation
    if ablation is None:
        return ()
    arms = tuple(
        (
            Cell(f"{a.arm} (control)" if a.control else a.arm),
            Cell(weighted(a.components)),
            Cell(str(a.seeds)),
            Cell(points(a.strict_difference_points)),
            Cell(number(a.strict_seed_spread_points)),
            Cell(points(a.lenient_difference_points)),
            Cell(number(a.lenient_seed_spread_points)),
            Cell(number(a.own_score_difference)),
        )
        for a in ablation.arms
    )
    cells = tuple(
        (
            Cell(c.arm),
            Cell(str(c.seed)),
            Cell(trend(c.reward_first, c.reward_last)),
            Cell(trend(c.own_score_base, c.own_score_adapter)),
            Cell(percent(c.strict_accuracy)),
            Cell(points(c.strict_difference_points)),
            Cell(percent(c.lenient_accuracy)),
            Cell(points(c.lenient_difference_points)),
            Cell(", ".join(c.alarms) or UNKNOWN),
        )
        for c in ablation.cells
    )
    return (
        Table(
            "Each reward design, mean over its seeds. Spread: standard deviation over seeds. "
            "Own score: the arm's own reward on the evaluation answers, adapter less base.",
            ("arm", "reward", "seeds", "strict, points", "spread", "lenient, points",
             "spread", "own score"),
            arms,
            heads=1,
            numbers=2,
        ),
        Table(
            "Each arm and seed: what it was paid in training, and what it learned.",
            ("arm", "seed", "reward in training", "own score, base → adapter", "strict",
             "against base", "lenient", "against base", "alarms"),
            once(cells),
            heads=2,
            numbers=2,
            words=1,
        ),
    )  # fmt: skip
