"""Tables on runs: what they did in training, how answers read, arms x seeds."""

from __future__ import annotations

from ahalab.records.comparison import Ablation, Comparison
from ahalab.records.terms import Outcome
from ahalab.report.sources import Study
from ahalab.report.tables import Cell, Table, once
from ahalab.report.wording import UNKNOWN, number, percent, points, trend, weighted

OUTCOMES: tuple[Outcome, ...] = ("correct", "wrong", "unparsed", "truncated", "error")
TRENDS = (  # column, field of the diagnostics, whether a share
    ("reward", "reward", False),
    ("right, strict", "strict", True),
    ("right, lenient", "lenient", True),
    ("right, training parser", "historical", True),
    ("truncated", "truncated", True),
    ("tokens", "length_tokens", False),
    ("entropy", "entropy", False),
    ("reflection", "reflection", True),
)
WHOLE = (
    ("groups with equal rewards", "zero_variance_fraction"),
    ("right for the parser alone", "paid_though_wrong_fraction"),
    ("right for the scorer alone", "unpaid_though_right_fraction"),
    ("positive advantage on wrong answers", "wrong_advantage_fraction"),
)


def reading_table(comparison: Comparison) -> Table:
    """Return how the answers of each set read, so that parsing and truncation are seen."""
    rows = []
    for at, rates in enumerate(comparison.rates):
        for metric, counts in (("strict", rates.strict), ("lenient", rates.lenient)):
            cells = (
                Cell(
                    f"{counts.get(outcome, 0):,}",
                    field=f"rates/{at}/{metric}/{outcome}",
                )
                for outcome in OUTCOMES
            )
            name = rates.answers.removesuffix(".jsonl").removesuffix("/answers")
            rows.append(
                (
                    Cell(name),
                    Cell(metric),
                    Cell(f"{rates.n:,}", field=f"rates/{at}/n"),
                    *cells,
                    Cell(number(rates.mean_tokens), field=f"rates/{at}/mean_tokens"),
                )
            )
    return Table(
        caption="How the answers read: outcomes per answer set, and the mean length in tokens.",
        columns=("answers", "reading", "n", *OUTCOMES, "tokens"),
        rows=once(tuple(rows)),
        heads=2,
        numbers=2,
        files=("analysis/comparison.json",) * len(rows),
    )


def diagnostics_table(study: Study) -> Table:
    """Return what the reward, the groups, the lengths and the parsers did in each run."""
    rows, files = [], []
    for run in study.runs:
        d = run.diagnostics
        if d is None:
            continue
        trends = ((getattr(d, field), field, share) for _, field, share in TRENDS)
        rows.append(
            (
                Cell(run.arm),
                Cell(str(run.seed)),
                *(
                    Cell(trend(t.first, t.last, share=share), field=f"{field}/first {field}/last")
                    for t, field, share in trends
                ),
                *(Cell(percent(getattr(d, field)), field=field) for _, field in WHOLE),
                Cell(number(d.adapter_effect_norm), field="adapter_effect_norm"),
            )
        )
        files.append(f"arms/{run.arm}/seed-{run.seed}/diagnostics.json")
    return Table(
        caption="Each training run. Arrows: mean of the first fifth of the steps → of the last. "
        "Adapter norm: size of what the adapter adds to the weights; 0 would be no change.",
        columns=(
            "arm", "seed", *(name for name, _, _ in TRENDS), *(name for name, _ in WHOLE),
            "adapter norm",
        ),
        rows=once(tuple(rows)),
        heads=2,
        numbers=2,
        files=tuple(files),
    )  # fmt: skip


def ablation_tables(study: Study) -> tuple[Table, ...]:
    """Return arms, and arms x seeds, with each arm's own score; empty when it was not made."""
    return () if study.ablation is None else (_arms(study.ablation), _cells(study.ablation))


def _arms(ablation: Ablation) -> Table:
    fields = (
        ("strict_difference_points", points), ("strict_seed_spread_points", number),
        ("lenient_difference_points", points), ("lenient_seed_spread_points", number),
        ("own_score_difference", number),
    )  # fmt: skip
    return Table(
        "Each reward design, mean over its seeds. Spread: standard deviation over seeds. "
        "Own score: the arm's own reward on the evaluation answers, adapter less base.",
        ("arm", "reward", "seeds", "strict, points", "spread", "lenient, points",
         "spread", "own score"),
        tuple(
            (
                Cell(f"{a.arm} (control)" if a.control else a.arm),
                Cell(weighted(a.components)),
                Cell(str(a.seeds), field=f"arms/{at}/seeds"),
                *(Cell(show(getattr(a, name)), field=f"arms/{at}/{name}") for name, show in fields),
            )
            for at, a in enumerate(ablation.arms)
        ),
        heads=1,
        numbers=2,
        files=("analysis/ablation.json",) * len(ablation.arms),
    )  # fmt: skip


def _cells(ablation: Ablation) -> Table:
    def cell(at: int, told: str, *names: str) -> Cell:
        return Cell(told, field=" ".join(f"cells/{at}/{name}" for name in names))

    rows = tuple(
        (
            Cell(c.arm),
            Cell(str(c.seed)),
            cell(at, trend(c.reward_first, c.reward_last), "reward_first", "reward_last"),
            cell(at, trend(c.own_score_base, c.own_score_adapter), "own_score_base",
                 "own_score_adapter"),
            cell(at, percent(c.strict_accuracy), "strict_accuracy"),
            cell(at, points(c.strict_difference_points), "strict_difference_points"),
            cell(at, percent(c.lenient_accuracy), "lenient_accuracy"),
            cell(at, points(c.lenient_difference_points), "lenient_difference_points"),
            Cell(", ".join(c.alarms) or UNKNOWN),
        )
        for at, c in enumerate(ablation.cells)
    )  # fmt: skip
    return Table(
        "Each arm and seed: what it was paid in training, and what it learned.",
        ("arm", "seed", "reward in training", "own score, base → adapter", "strict",
         "against base", "lenient", "against base", "alarms"),
        once(rows),
        heads=2,
        numbers=2,
        words=1,
        files=("analysis/ablation.json",) * len(rows),
    )  # fmt: skip
