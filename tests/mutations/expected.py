"""The check that must tell of each field: written by hand, a struct at a time.

A field of a record that stands in no line here fails a test, and so does one that nothing changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# Struct -> check -> fields. What is true of a kind of file alone stands in ELSEWHERE below.
BY_STRUCT: Mapping[str, Mapping[str, str]] = {
    "Plan": {"plan.match": "name answer_format arms control seeds rewards grpo lora"},
    "ModelSpec": {"plan.match": "id revision dtype device threads"},
    "TaskSpec": {
        "plan.match": "name path train_prompts eval_prompts seed system template question_field "
        "gold_field scoring max_prompt_tokens dataset subset revision splits config "
        "max_overlap_fraction"
    },
    "ArmSpec": {"plan.match": "name components on_error accept"},
    "TrainingSpec": {"plan.match": "processes lean_step zero_dead_groups stop_on"},
    "EndpointSpec": {
        "plan.match": "url api dialect base adapter concurrency timeout_s max_retries api_key_env"
    },
    "TemplateSpec": {"plan.match": "template system"},
    "EvaluationSpec": {
        "plan.match": "max_new_tokens batch_size floor_batch_size cells_per_batch temperature "
        "top_p samples seed replay backend templates"
    },
    "ValidationSpec": {"plan.match": "prompts max_new_tokens batch_size"},
    "AnalysisSpec": {"plan.match": "primary alpha margin_points comparisons pass_at"},
    "Prompt": {
        "dataset.hash": "prompt_id question gold split",
        "dataset.source": "source",
        "prompt.hash": "prompt_ids",
        "tokens": "prompt_tokens",
    },
    "Selection": {
        "plan.match": "plan_digest", "dataset.source": "available", "cover": "drawn dropped",
    },
    "Overlap": {
        "split": "words least_words most_questions questions sharing mostly examples"
    },
    "SharedWords": {"split": "prompt_id train_prompt_id fraction words"},
    "RunRecord": {
        "plan.match": "plan_digest seed like",
        "adapter.arm": "arm control components",
        "reward.source": "rewards",
        "arm.config": "requested_grpo effective_grpo lean_step effective_lora scorer_version "
        "training_parser_version versions device dtype threads",
        "base.pin": "model_id model_revision base_digest",
        "prompt.hash": "tokenizer_digest template_digest",
        "attempts": "attempts",
        "plan.n": "steps_done rollouts_written rollouts_expected",
        "adapter.fp": "adapter_digest",
        "diagnostics": "alarms",
    },
    "Attempt": {"attempts": "number started_utc steps_found"},
    "Alarm": {"diagnostics": "name evidence remedy"},
    "Rollout": {
        "cover": "step rank group sample",
        "arm.order": "prompt_id",
        "tokens.text": "completion completion_ids",
        "finish": "finish",
        "grade.status": "components",
        "reward.sum": "reward",
        "advantage": "advantage",
        "regrade": "historical strict lenient formatted repetition reflection",
        "extract": "status extracted",
    },
    "ComponentRow": {"grade.status": "value status"},
    "Step": {
        "steps": "step reward_mean unrewarded_fraction reward_std zero_variance_fraction "
        "all_right_fraction all_wrong_fraction mixed_fraction strict_fraction lenient_fraction "
        "historical_fraction formatted_fraction components truncated_fraction length_mean_tokens "
        "length_right_tokens length_wrong_tokens unique_completions repetition_mean "
        "scorer_disagreement_fraction paid_though_wrong_fraction unpaid_though_right_fraction "
        "wrong_advantage_fraction reflection_fraction",
        "tokens": "tokens",
        "diagnostics": "entropy",
    },
    "Timing": {"steps": "step"},
    "ValidationAnswer": {
        "cover": "step prompt_id",
        "tokens.text": "completion completion_ids",
        "regrade": "finish strict lenient",
        "extract": "extracted rule",
        "grade.status": "status",
    },
    "Diagnostics": {
        "diagnostics": "arm seed steps rollouts entropy_slope components component_correlations "
        "zero_variance_fraction all_right_fraction all_wrong_fraction mixed_fraction "
        "unrewarded_fraction paid_though_wrong_fraction unpaid_though_right_fraction "
        "wrong_advantage_fraction adapter_effect_norm spikes alarms validation"
    },
    "Trend": {"diagnostics": "first last"},
    "Spike": {"diagnostics": "figure step value median_before prompt_ids"},
    "ValidationPoint": {
        "diagnostics": "step prompts strict_fraction lenient_fraction truncated_fraction"
    },
    "BaseTensors": {"base.pin": "base_digest tensors"},
    "Tensor": {"base.pin": "name dtype shape sha256"},
    "Protocol": {
        "plan.match": "plan_digest",
        "prompt.hash": "prompts_digest template_digest tokenizer_digest",
        "base.pin": "base_digest",
        "adapter.fp": "adapter_digest",
        "protocol": "answer_format task generation dtype device backend decoder versions "
        "batch_size cells_per_batch companions limit seed samples scorer_version",
    },
    "Answer": {
        "pair.key": "protocol side",
        "cover": "prompt_id sample",
        "tokens.text": "completion completion_ids",
        "regrade": "finish strict lenient",
        "extract": "extracted rule",
        "grade.status": "status",
    },
    "TemplateSet": {
        "plan.match": "plan_digest source split templates left_out",
        "cover": "questions available",
    },
    "AskedTemplate": {"plan.match": "name template system"},
    "Comparison": {
        "plan.match": "plan_digest control alpha confidence margin_points",
        "stat.method": "protocol_digest",
        "outcome.added": "primary unplanned",
        "outcome.missing": "missing adapters arms floor",
        "stat.n": "rates",
        "protocol": "allowed",
    },
    "AllowedDifference": {"protocol": "answers field base found"},
    "AdapterComparison": {
        "outcome.missing": "arm seed metric",
        "stat.n": "n base_correct adapter_correct gained lost same_answers",
        "stat.recompute": "difference_points interval_points p_value p_exact verdict p_max_t "
        "minimal_detectable_points",
        "stat.sentence": "sentence",
    },
    "ArmComparison": {
        "outcome.missing": "arm against metric",
        "outcome.added": "primary",
        "stat.n": "n seeds gained_mean lost_mean",
        "stat.recompute": "accuracy reference_accuracy difference_points seed_differences_points "
        "interval_points p_value p_holm minimal_detectable_points verdict notes",
        "stat.method": "interval_covers",
        "stat.sentence": "sentence",
    },
    "NoiseFloor": {
        "stat.n": "n changed_completions strict_gained strict_lost lenient_gained lenient_lost",
        "stat.sentence": "sentence",
    },
    "ReadingRates": {
        "stat.n": "answers n strict lenient mean_tokens", "stat.method": "pass_at",
    },
    "PassAt": {"stat.method": "k", "stat.recompute": "strict lenient"},
    "ChangedResponses": {"plan.match": "plan_digest", "changed": "allowed changed"},
    "ChangedAnswer": {
        "changed": "arm seed prompt_id sample metric change kind base_extracted adapter_extracted "
        "base_outcome adapter_outcome base_rule adapter_rule parted_at",
        "report.quote": "question gold base_completion adapter_completion",
    },
    "Ablation": {"plan.match": "plan_digest", "ablation": "allowed cells arms ranking components"},
    "AblationCell": {
        "ablation": "arm seed reward_first reward_last own_score_base own_score_adapter "
        "strict_accuracy lenient_accuracy strict_difference_points lenient_difference_points "
        "identical_fraction alarms"
    },
    "AblationArm": {
        "ablation": "arm control components seeds strict_difference_points "
        "lenient_difference_points strict_seed_spread_points lenient_seed_spread_points "
        "own_score_difference alarms"
    },
    "RankedArm": {"ablation": "arm best_fraction rank_low rank_high"},
    "ComponentEffect": {
        "ablation": "component arm weight against against_weight metric difference_points "
        "interval_points p_value"
    },
    "TemplateComparison": {
        "plan.match": "plan_digest",
        "stat.method": "split confidence",
        "stat.n": "questions templates",
        "outcome.missing": "ranges",
    },
    "TemplateResult": {
        "stat.n": "name n",
        "stat.method": "template system",
        "stat.recompute": "strict lenient strict_accuracy lenient_accuracy mean_tokens",
    },
    "TemplateRange": {
        "outcome.missing": "metric",
        "stat.recompute": "worst best worst_accuracy best_accuracy own_accuracy spread_points "
        "spread_interval_points lead_points lead_interval_points verdict",
        "stat.sentence": "sentence",
    },
    "Replay": {
        "plan.match": "plan_digest",
        "replay": "sets missing n equal strict_gained strict_lost lenient_gained lenient_lost "
        "conclusion verdicts changed",
    },
    "ReplayedAnswers": {
        "replay": "answers n equal strict_gained strict_lost lenient_gained lenient_lost protocol"
    },
    "ReplayDifference": {"replay": "field first again"},
    "ChangedVerdict": {"replay": "arm seed against metric first again"},
    "Claims": {"plan.match": "plan_digest", "claims": "claims"},
    "Claim": {"claims": "id value unit inputs method"},
    "Manifest": {
        "plan.match": "plan_digest", "root": "root evidence", "file.extra": "derived",
    },
    "ManifestEntry": {"file.missing": "path", "file.hash": "bytes sha256"},
    "JournalHead": {
        "chain.run": "rows_schema run", "plan.first": "plan_digest", "chain": "previous kind",
    },
    "JournalAttempt": {"attempts": "number utc rows bytes", "chain": "previous kind"},
    "JournalBatch": {"chain": "sequence rows start end sha256 previous kind"},
    "JournalCut": {"chain": "sequence rows end cut_rows previous kind"},
    "JournalSeal": {"seal": "rows bytes sha256", "chain": "previous kind"},
}  # fmt: skip

# (kind of file, struct): what differs there from the above.
BY_DOOR: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("template prompts", "Prompt"): {"prompt.hash": "prompt_id question gold source split"},
    ("earlier protocol", "Protocol"): {
        "rescored": "plan_digest prompts_digest template_digest tokenizer_digest base_digest "
        "adapter_digest answer_format task generation dtype device backend decoder versions "
        "batch_size cells_per_batch companions limit seed samples scorer_version"
    },
    ("earlier answers", "Answer"): {
        "rescored": "protocol side prompt_id sample completion completion_ids finish"
    },
}


@dataclass(frozen=True, slots=True)
class Unjudged:
    """Fields that no check can tell, and why: only a root held from outside does."""

    struct: str
    fields: str
    why: str
    doors: tuple[str, ...] = ()  # empty: wherever the struct stands


UNJUDGED = (
    Unjudged("RunRecord", "git_commit", "which sources ran lies outside the study"),
    Unjudged("RunRecord", "started_utc finished_utc", "clocks are information, never evidence"),
    Unjudged("Timing", "seconds utc", "clocks are information, never evidence"),
    Unjudged(
        "Step",
        "loss grad_norm learning_rate kl clip_low_fraction clip_high_fraction",
        "the trainer's own figures, which need the model and its optimizer to come out again",
    ),
    Unjudged("Selection", "origin", "the hub's commit or a generator's version: no file shows it"),
    Unjudged("Dropped", "split source reason", "the question that was too long is not kept"),
    Unjudged("JournalCut", "cut_sha256", "the rows that were cut are gone; written again, they "
             "are compared when the run is resumed"),
    Unjudged(
        "Answer", "extracted rule status strict lenient",
        "outcomes of an earlier scorer, which is not installed",
        ("earlier answers",),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Untold:
    """Fields that name the version of a rule: another one makes a check NOT CHECKED, and said."""

    struct: str
    field: str
    check: str


UNTOLD = (
    Untold("Diagnostics", "rules_version", "diagnostics"),
    Untold("TemplateSet", "version", "plan.match"),
)


def expected_check(door: str, struct: str, field: str) -> str | None:
    """Return the check that must tell of a field; None when no table has it."""
    for table in (BY_DOOR.get((door, struct), {}), BY_STRUCT.get(struct, {})):
        for check, fields in table.items():
            if field in fields.split():
                return check
    return None


def unjudged(door: str, struct: str, field: str) -> str | None:
    """Return why no check tells of a field, or None."""
    for one in UNJUDGED:
        if one.struct == struct and field in one.fields.split() and door in (one.doors or (door,)):
            return one.why
    return None


def untold(struct: str, field: str) -> str | None:
    """Return the check that is NOT CHECKED under another version, or None."""
    found = (one.check for one in UNTOLD if (one.struct, one.field) == (struct, field))
    return next(found, None)
