"""`ahalab evaluate --templates`: freeze, prompts, the base under every template, the comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ahalab.analyze.compare import write_record
from ahalab.analyze.templates import compare_templates
from ahalab.errors import IncompleteError
from ahalab.evaluate.templates import TemplateEvaluation
from ahalab.pipeline.progress import StageProgress
from ahalab.pipeline.study import freeze, read_manifest, refuse_tampered
from ahalab.records.plan import Plan
from ahalab.records.templates import TemplateComparison, TemplateSet
from ahalab.store.journal import read_journal
from ahalab.store.layout import StudyPaths
from ahalab.store.models import resolve_model
from ahalab.store.reading import journal_path
from ahalab.tasks.prepare import prepare_prompts
from ahalab.tasks.templates import prepare_templates


@dataclass(frozen=True, slots=True)
class AskedTemplates:
    """What is asked for, beyond the plan."""

    limit: int | None = None  # questions
    batch_size: int | None = None  # where the plan leaves it open; None: by memory
    quiet: bool = False


def try_templates(
    plan: Plan, paths: StudyPaths, code: Sequence[Path], asked: AskedTemplates
) -> tuple[TemplateSet, TemplateComparison]:
    """Bring the base's answers under every template to completion, and compare them. Resumable.

    Nothing of it needs a trained run: it is for before the first one, and binds the plan as that
    does.

    Args:
        plan: The plan, pinned.
        paths: The study.
        code: Where the code of own rewards is looked for first.
        asked: What is asked for.

    Raises:
        AhaLabError: See `prepare_templates` and `TemplateEvaluation.answer`; or sealed evidence
            was changed.
    """
    manifest = read_manifest(paths)
    if manifest is not None:
        refuse_tampered(manifest, paths)
    folder = resolve_model(plan.model)
    freeze(plan, paths, code)
    prepare_prompts(plan, paths, folder)
    evaluation = TemplateEvaluation(plan, paths, asked.batch_size)
    tried, prompts = prepare_templates(plan, paths, evaluation.stage.tokenizer, asked.limit)
    total = len(tried.templates) * tried.questions
    files = [paths.template_answers(template.name).answers for template in tried.templates]
    done = sum(read_journal(journal_path(file)).rows for file in files)
    with StageProgress("templates", total, "answers", done, show=not asked.quiet) as progress:
        evaluation.answer(tried, prompts, progress.advance)
    found = compare_templates(plan, paths)
    if found is None:  # removed by another hand meanwhile
        raise IncompleteError(f"{paths.template_set.parent}: answers are missing. Run it again.")
    write_record(paths.template_comparison, found)
    return tried, found
