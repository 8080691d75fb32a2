"""The model card of one adapter: README.md in the Hub's format, from the files of its study."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ahalab.errors import InputError
from ahalab.records.comparison import AdapterComparison, ArmComparison
from ahalab.report.card_lines import (
    asked_text,
    base_line,
    commands_text,
    digest_rows,
    license_line,
    limit_lines,
    lora_line,
    seeds_line,
    snippet_text,
)
from ahalab.report.card_metadata import benchmark_entry, front_matter, why_no_entry
from ahalab.report.markdown import code, digest_text, fenced, prose
from ahalab.report.provenance import evaluation_line, versions_line
from ahalab.report.sources import RunSource, Study
from ahalab.report.wording import count, percent, points, probability, span, weighted
from ahalab.store.layout import StudyPaths

TEMPLATES = Path(__file__).parent / "templates"
README, ENTRY = "README.md", ".eval_results/gsm8k.yaml"


@dataclass(frozen=True, slots=True)
class Card:
    """A card's files, by their names in the adapter's folder, and what it leaves out."""

    files: dict[str, str]
    no_entry: str | None  # why there is no entry for a leaderboard; None: there is one


def build_card(study: Study, paths: StudyPaths, arm: str, seed: int, root: str) -> Card:
    """Return the card of one adapter.

    Args:
        study: The study, read.
        paths: Where it lies.
        arm: The adapter's arm.
        seed: The adapter's seed.
        root: Evidence root, over every file of the study but what is made from them.

    Returns:
        README.md, and `.eval_results/NAME.yaml` where the study asked a whole benchmark of the Hub;
        the same files and the same root give the same text.

    Raises:
        InputError: The plan has no such adapter, or it was not trained and compared yet.
    """
    run = _run(study, arm, seed)
    verdicts = _verdicts(study, arm, seed)
    primary = verdicts[study.comparison.primary]
    files = {README: _readme(study, paths, run, verdicts, root)}
    no_entry = why_no_entry(study, primary)
    if no_entry is None:
        files[ENTRY] = benchmark_entry(study, run, primary)
    return Card(files, no_entry)


def _run(study: Study, arm: str, seed: int) -> RunSource:
    arms, seeds = [a.name for a in study.plan.arms], study.plan.seeds
    if arm not in arms:
        raise InputError(f"--arm: expected one of {', '.join(arms)}; found {arm!r}.")
    if seed not in seeds:
        raise InputError(f"--seed: expected one of {', '.join(map(str, seeds))}; found {seed}.")
    for run in study.runs:
        if (run.arm, run.seed) == (arm, seed):
            return run
    raise InputError(
        f"arms/{arm}/seed-{seed}: expected a finished run, found none. Train it first."
    )


def _verdicts(study: Study, arm: str, seed: int) -> dict[str, AdapterComparison]:
    """Return the adapter against its base by reading, the primary one first."""
    found = {a.metric: a for a in study.comparison.adapters if (a.arm, a.seed) == (arm, seed)}
    if len(found) < 2:
        raise InputError(
            f"arms/{arm}/seed-{seed}: expected it in the comparison, found it missing. "
            "`ahalab evaluate`, then `ahalab report`."
        )
    return dict(sorted(found.items(), key=lambda item: item[0] != study.comparison.primary))


def _readme(
    study: Study,
    paths: StudyPaths,
    run: RunSource,
    verdicts: dict[str, AdapterComparison],
    root: str,
) -> str:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=False,  # noqa: S701 - Markdown: foreign text goes through the filters below
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "prose": prose,
        "code": code,
        "fenced": fenced,
        "digest": digest_text,
        "base_line": base_line,
    }
    record, comparison = run.record, study.comparison
    return environment.get_template("card.md.j2").render(
        front_matter=front_matter(study, run, verdicts, root),
        plan=study.plan,
        run=run,
        verdicts=tuple(verdicts.values()),
        strict=verdicts["strict"],
        arms=_arms(study, run.arm),
        confidence=f"{100 * comparison.confidence:.4g} %",
        base=study.plan.model.id,
        reward=weighted(record.components),
        generations=record.effective_grpo.get("num_generations", "unknown size"),
        lora=lora_line(run),
        versions=versions_line(record),
        machine=f"{record.device}, {record.dtype}",
        asked=asked_text(study),
        evaluation=evaluation_line(study),
        seeds_limit=seeds_line(study),
        floor="not measured." if comparison.floor is None else comparison.floor.sentence,
        limits=tuple(limit_lines(study, run)),
        commands=commands_text(study, paths, root),
        digests=digest_rows(study, paths, run, root),
        snippet=snippet_text(study, run),
        license=license_line(study),
        share=lambda correct, n: percent(correct / n),
        points=points,
        span=span,
        count=count,
        percent=percent,
        probability=probability,
    )


def _arms(study: Study, arm: str) -> tuple[ArmComparison, ...]:
    return tuple(a for a in study.comparison.arms if a.arm == arm and a.primary)
