"""Tables of the page: what they hold, made from the records, ready to print."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from ahalab.records.comparison import AdapterComparison, ArmComparison, Comparison
from ahalab.records.terms import Metric, Outcome
from ahalab.report.sources import Study
from ahalab.report.wording import (
    UNKNOWN,
    count,
    number,
    percent,
    points,
    probability,
    span,
    trend,
    weighted,
)

OUTCOMES: tuple[Outcome, ...] = ("correct", "wrong", "unparsed", "truncated", "error")


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: its text, and what it is bound to."""

    text: str
    claim: str | None = None  # ids of the claims that it prints, a space between
    href: str | None = None
    style: str = ""  # class names


@dataclass(frozen=True, slots=True)
class Table:
    """A table; the first `heads` columns name the row."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    heads: int = 1
    numbers: int = 1  # columns from this one on are numbers ...
    words: int = 0  # ... but for so many last ones


def metric_order(primary: Metric) -> tuple[Metric, Metric]:
    """Return the two readings, the primary one first."""
    return ("strict", "lenient") if primary == "strict" else ("lenient", "strict")


def ordered_arms(study: Study) -> list[ArmComparison]:
    """Return the arm comparisons: in plan order, against base first, the primary reading first."""
    arms = [arm.name for arm in study.plan.arms]
    metrics = metric_order(study.comparison.primary)
    return sorted(
        (c for c in study.comparison.arms if c.arm in arms),
        key=lambda c: (arms.index(c.arm), c.against != "base", metrics.index(c.metric)),
    )


def change_link(arm: str, seed: int, metric: Metric, change: str) -> str:
    """Return the address, within the page, of the changed responses of one cell."""
    return f"#changed?arm={arm}&seed={seed}&metric={metric}&change={change}"


def verdict_table(study: Study) -> Table:
    """Return the arms against the base and against the control arm, strict and lenient."""
    comparison = study.comparison
    known = {claim.id for claim in study.claims.claims}
    covers = sorted({c.interval_covers for c in comparison.arms if c.interval_points})
    return Table(
        caption=(
            f"Arms against the base and against the control arm, {_counted(study)}. Intervals cover "
            f"{' or '.join(covers) or 'nothing'}. * planned, on the primary reading "
            f"({comparison.primary}); the rest is exploratory."
        ),
        columns=(
            "arm", "against", "reading", "accuracy of reference", "accuracy of arm", "gained per seed",
            "lost per seed", "difference, points", f"{100 * comparison.confidence:g} % interval", "p",
            "p, Holm", "verdict",
        ),
        rows=_once(tuple(_verdict_row(c, known, study) for c in ordered_arms(study))),
        heads=3,
        numbers=3,
        words=1,
    )  # fmt: skip


def _verdict_row(c: ArmComparison, known: set[str], study: Study) -> tuple[Cell, ...]:
    cell = partial(_bound, f"arm.{c.arm}.{c.against}.{c.metric}", known)
    uncovered = "" if c.interval_points else ", covers nothing"
    return (
        Cell(_arm_label(c.arm, study)),
        Cell(c.against),
        Cell(c.metric + (" *" if c.primary else "")),
        cell(percent(c.reference_accuracy), "reference_accuracy"),
        cell(percent(c.accuracy), "accuracy"),
        cell(count(c.gained_mean), "gained_mean"),
        cell(count(c.lost_mean), "lost_mean"),
        cell(points(c.difference_points), "difference_points"),
        cell(span(c.interval_points) + uncovered, "interval_low_points", "interval_high_points"),
        cell(probability(c.p_value), "p_value"),
        cell(probability(c.p_holm), "p_holm"),
        cell(c.verdict, "verdict"),
    )


def _once(rows: tuple[tuple[Cell, ...], ...]) -> tuple[tuple[Cell, ...], ...]:
    """Show the first heading of a row only where it changes; it stays there for who cannot see."""
    shown = []
    previous = ""
    for first, *rest in rows:
        shown.append((replace(first, style="again" if first.text == previous else ""), *rest))
        previous = first.text
    return tuple(shown)


def _bound(stem: str, known: set[str], text: str, *fields: str, href: str | None = None) -> Cell:
    """Return a cell that names the claims it prints, of those that claims.json holds."""
    ids = [f"{stem}.{field}" for field in fields if f"{stem}.{field}" in known]
    return Cell(text, " ".join(ids) or None, href)


def _arm_label(arm: str, study: Study) -> str:
    return f"{arm} (control)" if arm == study.plan.control else arm


def _counted(study: Study) -> str:
    counts = sorted({c.n for c in study.comparison.arms} | {c.n for c in study.comparison.adapters})
    return f"{' or '.join(f'{n:,}' for n in counts)} questions" if counts else "no questions"


def adapter_table(study: Study) -> Table:
    """Return every adapter against the base, one line per seed and reading."""
    comparison = study.comparison
    known = {claim.id for claim in study.claims.claims}
    rows = _once(tuple(_adapter_row(c, known) for c in _ordered_adapters(study)))
    return Table(
        caption="Each adapter alone against the base. It speaks of that adapter, not of its reward.",
        columns=(
            "arm", "seed", "reading", "base correct", "adapter correct", "of", "gained", "lost",
            "difference, points", f"{100 * comparison.confidence:g} % interval", "mid-p", "exact p",
            "verdict",
        ),
        rows=rows,
        heads=3,
        numbers=3,
        words=1,
    )  # fmt: skip


def _ordered_adapters(study: Study) -> list[AdapterComparison]:
    arms = [arm.name for arm in study.plan.arms]
    metrics = metric_order(study.comparison.primary)
    return sorted(
        (c for c in study.comparison.adapters if c.arm in arms),
        key=lambda c: (arms.index(c.arm), c.seed, metrics.index(c.metric)),
    )


def _adapter_row(c: AdapterComparison, known: set[str]) -> tuple[Cell, ...]:
    cell = partial(_bound, f"adapter.{c.arm}.{c.seed}.{c.metric}", known)
    links = {
        change: change_link(c.arm, c.seed, c.metric, change) if count else None
        for change, count in (("gained", c.gained), ("lost", c.lost))
    }
    return (
        Cell(c.arm),
        Cell(str(c.seed)),
        Cell(c.metric),
        cell(count(c.base_correct), "base_correct"),
        cell(count(c.adapter_correct), "adapter_correct"),
        cell(f"{c.n:,}", "n"),
        cell(number(c.gained), "gained", href=links["gained"]),
        cell(number(c.lost), "lost", href=links["lost"]),
        cell(points(c.difference_points), "difference_points"),
        cell(span(c.interval_points), "interval_low_points", "interval_high_points"),
        cell(probability(c.p_value), "p_value"),
        cell(probability(c.p_exact), "p_exact"),
        cell(c.verdict, "verdict"),
    )


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
        rows=_once(tuple(rows)),
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
                Cell(percent(d.reflection_fraction)),
                Cell(number(d.adapter_effect_norm)),
            )
        )
    return Table(
        caption="Each training run. Arrows: mean over the first fifth of the steps → over the last fifth.",
        columns=(
            "arm", "seed", "reward", "strict", "lenient", "historical", "truncated", "tokens", "entropy",
            "dead groups", "paid though wrong", "unpaid though right", "advantage on wrong",
            "reflection", "adapter norm",
        ),
        rows=_once(tuple(rows)),
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
            ("arm", "reward", "seeds", "strict, points", "spread", "lenient, points", "spread", "own score"),
            arms,
            heads=1,
            numbers=2,
        ),
        Table(
            "Each arm and seed: what it was paid in training, and what it learned.",
            ("arm", "seed", "reward in training", "own score, base → adapter", "strict",
             "against base", "lenient", "against base", "alarms"),
            _once(cells),
            heads=2,
            numbers=2,
            words=1,
        ),
    )  # fmt: skip
