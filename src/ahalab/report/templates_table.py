"""The table of the base under several prompt templates."""

from __future__ import annotations

from ahalab.plan.templates import OWN
from ahalab.records.templates import TemplateResult
from ahalab.report.sources import Study
from ahalab.report.tables import Cell, Table
from ahalab.report.wording import number, percent

SPLITS = {"train": "training", "validation": "validation", "eval": "evaluation"}


def template_table(study: Study) -> Table | None:
    """Return the base under each template; None when they were not tried."""
    found = study.templates
    if found is None:
        return None
    known = {claim.id for claim in study.claims.claims}
    return Table(
        caption=(
            f"The base, greedily, on {found.questions:,} {SPLITS[found.split]} questions; none of "
            "the evaluation, on which nobody may choose. * the plan's own template. Unparsed: not "
            "in the asked format. Truncated: cut before an answer was stated."
        ),
        columns=("template", "system message", "user message", "n", "strict", "lenient",
                 "unparsed", "truncated", "tokens"),
        rows=tuple(_row(one, known, at) for at, one in enumerate(found.templates)),
        files=("analysis/templates.json",) * len(found.templates),
        heads=1,
        numbers=3,
    )  # fmt: skip


def _row(one: TemplateResult, known: set[str], at: int) -> tuple[Cell, ...]:
    def cell(text: str, field: str) -> Cell:
        claim = f"template.{one.name}.{field}"
        return Cell(text, claim if claim in known else None)

    return (
        Cell(f"{one.name} *" if one.name == OWN else one.name),
        Cell(one.system or ""),
        Cell(one.template),
        cell(f"{one.n:,}", "n"),
        cell(percent(one.strict_accuracy), "strict_accuracy"),
        cell(percent(one.lenient_accuracy), "lenient_accuracy"),
        Cell(f"{one.strict.get('unparsed', 0):,}", field=f"templates/{at}/strict/unparsed"),
        Cell(f"{one.lenient.get('truncated', 0):,}", field=f"templates/{at}/lenient/truncated"),
        cell(number(one.mean_tokens), "mean_tokens"),
    )
