"""The analysis stage: reads answers, writes verdicts, ablation, changed responses and claims."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import UNSET

from ahalab.analyze.ablation import summarise
from ahalab.analyze.adapters import compare_adapters, noise_floor
from ahalab.analyze.answers import StudyAnswers, load_study_answers
from ahalab.analyze.arms import compare_arms
from ahalab.analyze.changed import changed_responses
from ahalab.analyze.claims import collect_claims
from ahalab.analyze.reflection import reflect
from ahalab.analyze.replay import compare_replay
from ahalab.analyze.templates import compare_templates
from ahalab.plain_files import read_plain
from ahalab.records.answer import comparable_digest
from ahalab.records.base import Record, digest, encode_pretty
from ahalab.records.comparison import Ablation, Comparison
from ahalab.records.plan import Plan
from ahalab.store.durable import replace_file
from ahalab.store.layout import StudyPaths


def compare(study: StudyAnswers) -> Comparison:
    """Return the verdicts of a study, from its answers alone."""
    plan = study.plan
    adapters = compare_adapters(study)
    sets = [study.base, *([study.floor] if study.floor else []), *study.adapters.values()]
    ks = plan.analysis.ks(plan.evaluation.samples)
    return Comparison(
        plan_digest=digest(plan),
        protocol_digest=comparable_digest(study.base.protocol),
        control=plan.control,
        primary=plan.analysis.primary,
        alpha=plan.analysis.alpha,
        confidence=plan.analysis.confidence,
        margin_points=plan.analysis.margin_points,
        missing=study.missing,
        unplanned=study.unplanned or UNSET,
        allowed=study.allowed or UNSET,
        adapters=tuple(adapters),
        arms=tuple(compare_arms(study, adapters)),
        floor=noise_floor(study),
        rates=tuple(s.rates(ks) for s in sets),
    )


def analyze(
    plan: Plan, paths: StudyPaths, allow: Sequence[str] = ()
) -> tuple[Comparison, Ablation]:
    """Compare base and adapters and write what was found. The same answers give the same bytes.

    Args:
        plan: The plan.
        paths: The study.
        allow: Fields in which the protocols may differ; what does differ is recorded.

    Raises:
        IncompleteError: There is nothing to compare yet.
        ProtocolError: Answers were made under different protocols.
        InputError: An exception that cannot be made is asked for.
        RecordError: A row is malformed.
    """
    study = load_study_answers(plan, paths, allow)
    comparison = compare(study)
    ablation = summarise(study, paths, list(comparison.adapters))
    replay = compare_replay(study, comparison, paths)
    outputs: dict[Path, Record] = {
        paths.comparison: comparison,
        paths.changed: changed_responses(study),
        paths.ablation: ablation,
    }
    templates = compare_templates(plan, paths)
    if templates is not None:
        outputs[paths.template_comparison] = templates
    if paths.reflections.is_dir():
        outputs[paths.reflection] = reflect(plan, paths)
    else:
        paths.reflection.unlink(missing_ok=True)
    if replay is None:
        paths.replay.unlink(missing_ok=True)  # of a replay that was removed
    else:
        outputs[paths.replay] = replay
    outputs[paths.claims] = collect_claims(comparison, ablation, replay, templates)
    for path, record in outputs.items():
        write_record(path, record)
    return comparison, ablation


def write_record(path: Path, record: Record) -> None:
    """Write a record's file, unless it stands there already."""
    payload = encode_pretty(record)
    if not path.exists() or read_plain(path) != payload:
        replace_file(path, payload)
