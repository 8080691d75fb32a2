"""What a table of the page holds, and the two tables of verdicts: per arm, per adapter."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from urllib.parse import urlencode

from ahalab.records.comparison import AdapterComparison, ArmComparison
from ahalab.records.terms import Metric
from ahalab.report.sources import Study
from ahalab.report.wording import (
    count,
    number,
    percent,
    points,
    probability,
    span,
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: its text, and what it is bound to."""

    text: str
    claim: str | None = None  # ids of the claims that it prints, a space between
    href: str | None = None
    field: str | None = None  # places in the row's file that it prints, a space between
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
    files: tuple[str, ...] = ()  # one per row: what the `field`s of its cells are places in


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
    """Return the address, within the page, of the answers behind one count."""
    wanted = {"arm": arm, "seed": seed, "metric": metric, "change": change}
    return f"#answers?{urlencode(wanted)}"


def verdict_table(study: Study) -> Table:
    """Return the arms against the base and against the control arm, strict and lenient."""
    comparison = study.comparison
    known = {claim.id for claim in study.claims.claims}
    covers = sorted({c.interval_covers for c in comparison.arms if c.interval_points})
    return Table(
        caption=(
            f"Arms against the base and against the control arm, {_counted(study)}. Intervals "
            f"cover {' or '.join(covers) or 'nothing'}. * planned, on the primary reading "
            f"({comparison.primary}); the rest is exploratory."
        ),
        columns=(
            "arm", "against", "reading", "reference", "with arm", "gained per seed",
            "lost per seed", "difference, points", f"{100 * comparison.confidence:g} % interval",
            "p", "p, Holm", "verdict",
        ),
        rows=once(tuple(_verdict_row(c, known, study) for c in ordered_arms(study))),
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


def once(rows: tuple[tuple[Cell, ...], ...]) -> tuple[tuple[Cell, ...], ...]:
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
    rows = once(tuple(_adapter_row(c, known) for c in _ordered_adapters(study)))
    return Table(
        caption="Each adapter alone against the base: it speaks of the adapter, not of its reward.",
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
