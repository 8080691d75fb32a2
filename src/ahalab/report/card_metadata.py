"""A model card's metadata, by huggingface_hub's own classes: front matter and benchmark entry."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult, ModelCardData
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]
from msgspec import UNSET
from ruamel.yaml import YAML

from ahalab.plan.tasks import HUB_SPLITS
from ahalab.records.comparison import AdapterComparison
from ahalab.records.plan import Plan
from ahalab.records.prompt import Selection
from ahalab.report.markdown import digest_text
from ahalab.report.sources import RunSource, Study
from ahalab.store.models import ORGANISM
from ahalab.tasks.hub import GSM8K
from ahalab.visible import plain

# Hub datasets that are registered as benchmarks, by the one task of their eval.yaml.
BENCHMARKS = {GSM8K[0]: "gsm8k"}
READINGS = {"strict": "Strict accuracy, %", "lenient": "Lenient accuracy, %"}
PERCENT_DIGITS = 4


def hub_base(model_id: str) -> str | None:
    """Return the hub id of a base; None where it is the organism or a folder."""
    if model_id == ORGANISM or Path(model_id).expanduser().is_dir() or model_id.count("/") != 1:
        return None
    try:
        validate_repo_id(model_id)
    except HFValidationError:
        return None
    return model_id


def hub_dataset(plan: Plan) -> str | None:
    """Return the hub id of the dataset that the questions come from; None where there is none."""
    task = plan.task
    named = GSM8K[0] if task.name == "gsm8k" else task.dataset if task.name == "hub" else UNSET
    if not isinstance(named, str):
        return None
    try:
        validate_repo_id(named)
    except HFValidationError:
        return None
    return named


def accuracy_percent(adapter: AdapterComparison) -> float:
    """Return the adapter's accuracy in percent, as the Hub's leaderboards have it."""
    return round(100 * adapter.adapter_correct / adapter.n, PERCENT_DIGITS)


def front_matter(
    study: Study, run: RunSource, verdicts: dict[str, AdapterComparison], root: str
) -> str:
    """Return the card's YAML, without its fences.

    Args:
        study: The study.
        run: The run that trained the adapter.
        verdicts: The adapter against the base, by reading.
        root: The evidence root.
    """
    plan, record = study.plan, run.record
    base, dataset = hub_base(plan.model.id), hub_dataset(plan)
    data = ModelCardData(
        base_model=base,
        datasets=None if dataset is None else [dataset],
        library_name="peft",
        license="apache-2.0" if plan.model.id == ORGANISM else None,  # elsewhere not known here
        metrics=["accuracy"],
        pipeline_tag="text-generation",
        tags=["lora", "grpo", "trl", "ahalab", *([f"base_model:adapter:{base}"] if base else [])],
        model_name=f"{plan.name}-{run.arm}-seed-{run.seed}",
        eval_results=[_result(study, verdict) for verdict in verdicts.values()],
        ahalab={
            "evidence_root": digest_text(root),
            "plan_digest": digest_text(study.plan_digest),
            "protocol_digest": digest_text(study.comparison.protocol_digest),
            "adapter_digest": digest_text(record.adapter_digest),
            "arm": run.arm,
            "seed": run.seed,
        },
    )
    return data.to_yaml()


def _result(study: Study, verdict: AdapterComparison) -> EvalResult:
    task, dataset = study.plan.task, hub_dataset(study.plan)
    splits = HUB_SPLITS if task.splits is UNSET else task.splits
    subset = task.subset if isinstance(task.subset, str) else None
    named = dataset or f"{task.name} (of the study {study.plan.name})"
    return EvalResult(
        task_type="text-generation",
        dataset_type=dataset or task.name,
        dataset_name=f"{named}, {verdict.n} questions",
        dataset_config=plain(subset) if dataset and subset else None,
        dataset_split=plain(splits["eval"]) if dataset else None,
        dataset_revision=_revision(study.selection) if dataset else None,
        metric_type="accuracy",
        metric_name=READINGS[verdict.metric],
        metric_value=accuracy_percent(verdict),
    )


def _revision(selection: Selection | None) -> str | None:
    """Return the commit of the hub's dataset that the questions were read at."""
    origin = None if selection is None else selection.origin
    commit = origin.get("commit") if isinstance(origin, dict) else None
    return None if commit is None else plain(commit)


def why_no_entry(study: Study, verdict: AdapterComparison) -> str | None:
    """Say why there is no entry for a leaderboard of the Hub; None where there is one."""
    dataset, selection = hub_dataset(study.plan), study.selection
    if dataset not in BENCHMARKS:
        return f"the questions are of no benchmark of the Hub ({', '.join(BENCHMARKS)})"
    if selection is None or _revision(selection) is None:
        return "the questions were not read from the Hub"
    available = selection.available.get("eval")
    if verdict.n != available:
        return f"{verdict.n} of the benchmark's {available} questions were asked, not all"
    try:
        from huggingface_hub import EvalResultEntry  # noqa: F401
    except ImportError:
        return "this huggingface_hub has no class for it: pip install -U huggingface_hub"
    return None


def benchmark_entry(study: Study, run: RunSource, verdict: AdapterComparison) -> str:
    """Return the file of `.eval_results/` for a study that has one (`why_no_entry`)."""
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    dataset = str(hub_dataset(study.plan))
    entry = EvalResultEntry(
        dataset_id=dataset,
        task_id=BENCHMARKS[dataset],
        value=accuracy_percent(verdict),
        dataset_revision=_revision(study.selection),
        date=run.record.finished_utc[:10],
        notes=f"{verdict.metric} reading, adapter of arm {run.arm}, seed {run.seed}",
    )
    tree: list[dict[str, Any]] = eval_result_entries_to_yaml([entry])
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    text = io.StringIO()
    yaml.dump(tree, text)
    return text.getvalue()
