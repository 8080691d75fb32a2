"""Writes a small synthetic study to disk: plausible numbers, hostile texts, no training."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, Literal

from msgspec.structs import replace
from synthetic_answers import (
    BASE,
    EFFECTS,
    METRICS,
    QUESTIONS,
    adapter_right,
    base_right,
    make_answers,
    make_changed,
    make_prompts,
)

from ahalab.analyze.claims import collect_claims
from ahalab.plan.load import dump_plan
from ahalab.plan.resolve import resolve
from ahalab.records.answer import Protocol, comparable_digest
from ahalab.records.base import Record, digest, digest_bytes, encode_pretty
from ahalab.records.comparison import (
    Ablation,
    AblationArm,
    AblationCell,
    AdapterComparison,
    ArmComparison,
    Comparison,
    NoiseFloor,
    ReadingRates,
    VerdictWord,
)
from ahalab.records.diagnostics import Diagnostics, Trend
from ahalab.records.manifest import Claims
from ahalab.records.plan import ArmSpec, EvaluationSpec, ModelSpec, Plan, TaskSpec
from ahalab.records.prompt import Dropped, Selection
from ahalab.records.run import Alarm, Attempt, RunRecord
from ahalab.records.step import Step
from ahalab.records.terms import Metric, Outcome
from ahalab.scoring.arms import resolve_arm
from ahalab.statistics.diagnostics import TRENDS
from ahalab.store.layout import StudyPaths
from ahalab.store.rows import RowFile, write_rows

ROOT = "sha256:" + "ab" * 32  # an evidence root


def make_plan(**changes: Any) -> Plan:
    fields: dict[str, Any] = {
        "name": "synthetic",
        "model": ModelSpec(id="organism"),
        "task": TaskSpec(name="arithmetic", train_prompts=512, eval_prompts=QUESTIONS),
        "arms": tuple(ArmSpec(name=name) for name in EFFECTS),
        "control": "random",
        "seeds": (0, 1, 2),
        "grpo": {"max_steps": 60, "per_device_train_batch_size": 128, "learning_rate": 1e-4},
        "lora": {"r": 16},
        "evaluation": EvaluationSpec(max_new_tokens=56),
    }
    return resolve(Plan(**(fields | changes)))


def write_study(root: Path, *, reflection: float = 0.08, **changes: Any) -> StudyPaths:
    """Write every file that the report reads, under a plan with these changes."""
    plan = make_plan(**changes)
    paths = StudyPaths(root)
    put(paths.plan, dump_plan(plan).encode())
    protocol = make_protocol(plan)
    put(paths.base_answers().protocol, encode_pretty(protocol))
    for arm in plan.arms:
        for seed in plan.seeds:
            _write_run(paths, plan, (arm.name, seed), reflection)
    comparison = make_comparison(plan, comparable_digest(protocol))
    put(paths.comparison, encode_pretty(comparison))
    put(paths.changed, encode_pretty(make_changed(plan)))
    _write_answers(paths, plan)
    put(paths.ablation, encode_pretty(make_ablation(plan, comparison)))
    put(paths.claims, encode_pretty(make_claims(comparison, make_ablation(plan, comparison))))
    put(
        paths.prompt_report,
        encode_pretty(
            Selection(
                plan_digest=digest(plan),
                available={"train": 4096, "eval": 1024},
                drawn={"train": 512, "eval": QUESTIONS},
                dropped=(Dropped(split="train", source="arithmetic", reason="too long"),),
            )
        ),
    )
    return paths


def _write_answers(paths: StudyPaths, plan: Plan) -> None:
    sets = [("base", paths.base_answers(), base_right())]
    sets += [
        (
            f"{arm.name} {seed}",
            paths.answers(arm.name, seed),
            adapter_right(arm.name, seed, at),
        )
        for arm in plan.arms
        for at, seed in enumerate(plan.seeds)
    ]
    for side, answers, right in sets:
        rows = RowFile(answers.answers, "answer/1", digest(plan), answers.name, paths.broken)
        write_rows(rows, list(make_answers(side, right)))
    prompts = RowFile(paths.prompts("eval"), "prompt/1", digest(plan), "prompts/eval", paths.broken)
    write_rows(prompts, list(make_prompts()))


def put(path: Path, payload: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(payload)


def rewrite(path: Path, record: Record) -> None:
    put(path, encode_pretty(record))


def make_protocol(plan: Plan) -> Protocol:
    return Protocol(
        plan_digest=digest(plan),
        answer_format="hashes",
        task="arithmetic",
        prompts_digest=digest_bytes(b"prompts"),
        template_digest=digest_bytes(b"template"),
        tokenizer_digest=digest_bytes(b"tokenizer"),
        base_digest=digest_bytes(b"base"),
        adapter_digest=None,
        generation={"do_sample": False, "max_new_tokens": 56},
        dtype="float32",
        device="cpu",
        backend="transformers",
        decoder="rows",
        versions={"torch": "2.13.0", "transformers": "5.24.0"},
        batch_size=64,
        cells_per_batch=1,
        companions=(),
        limit=None,
        seed=0,
        samples=1,
        scorer_version="1",
    )


def _write_run(paths: StudyPaths, plan: Plan, cell: tuple[str, int], reflection: float) -> None:
    arm, seed = cell
    run = paths.run(arm, seed)
    names = tuple(resolve_arm(arm).components)
    steps = [replace(step, reflection_fraction=reflection) for step in make_steps(arm, seed, names)]
    write_rows(RowFile(run.steps, "step/1", digest(plan), run.name, paths.broken), steps)
    alarms: tuple[Alarm, ...] = ()
    if arm == "format_only":
        alarms = (
            Alarm(
                name="reward-without-ability",
                evidence="reward rose from 0.41 to 0.93, lenient accuracy fell from 0.55 to 0.38",
                remedy="Read the gained answers; pay correctness beside the format.",
            ),
        )
    put(run.record, encode_pretty(_run_record(plan, arm, seed, alarms)))
    put(run.diagnostics, encode_pretty(_diagnostics(arm, seed, steps, alarms)))


def _run_record(plan: Plan, arm: str, seed: int, alarms: tuple[Alarm, ...]) -> RunRecord:
    return RunRecord(
        plan_digest=digest(plan), arm=arm, control=arm == plan.control,
        components=dict(resolve_arm(arm).components), rewards={}, lean_step="on", seed=seed,
        like=None,
        requested_grpo={}, effective_grpo={}, effective_lora={}, model_id="organism",
        model_revision=None,
        base_digest=digest_bytes(b"base"), tokenizer_digest=digest_bytes(b"tokenizer"),
        template_digest=digest_bytes(b"template"), scorer_version="1", training_parser_version="1",
        versions={"ahalab": "0.1.0", "torch": "2.13.0", "trl": "1.16.0", "peft": "0.21.2"},
        device="cpu", dtype="float32", threads=1,
        git_commit="0123456789abcdef0123456789abcdef01234567",
        started_utc="2026-01-05T10:00:00+00:00", finished_utc="2026-01-05T10:04:10+00:00",
        attempts=(Attempt(number=1, started_utc="2026-01-05T10:00:00+00:00", steps_found=0),),
        steps_done=60, rollouts_written=7680, rollouts_expected=7680,
        adapter_digest=digest_bytes(f"{arm}{seed}".encode()), alarms=alarms,
    )  # fmt: skip


def make_steps(arm: str, seed: int, names: tuple[str, ...]) -> Iterator[Step]:
    dice = random.Random(f"{arm} {seed}")  # noqa: S311
    rise = {"correctness": 0.30, "historical": 0.22, "format_only": 0.06, "random": 0.0}[arm]
    for number in range(1, 61):
        grown = number / (number + 20)

        def near(value: float, spread: float = 0.035) -> float:
            return min(1.0, max(0.0, round(value + dice.gauss(0, spread), 6)))

        strict = near(0.27 + rise * grown)
        lenient = near(
            0.55 + (0.1 if arm == "correctness" else -0.5 * (arm == "format_only")) * grown * 0.5
        )
        historical = near(0.33 + rise * grown)
        reward = {
            "correctness": strict, "historical": historical, "random": near(0.5),
            "format_only": near(0.42 + 0.5 * grown),
        }[arm]  # fmt: skip
        yield Step(
            step=number, loss=0.01, grad_norm=0.4, learning_rate=1e-4,
            entropy=near(0.62 - rise * grown), kl=None, clip_low_fraction=0.0,
            clip_high_fraction=0.0, tokens=number * 5000, reward_mean=reward,
            unrewarded_fraction=0.0, reward_std=0.4,
            zero_variance_fraction=near(0.1 + rise * grown, 0.05), all_right_fraction=0.02,
            all_wrong_fraction=0.1, strict_fraction=strict, lenient_fraction=lenient,
            historical_fraction=historical, formatted_fraction=near(0.6 + 0.2 * grown),
            mixed_fraction=0.88, repetition_mean=0.02, paid_though_wrong_fraction=0.061,
            unpaid_though_right_fraction=0.012, components=dict.fromkeys(names, reward),
            truncated_fraction=near(0.05, 0.015), length_mean_tokens=round(34 + 4 * grown +
            dice.gauss(0, 0.8), 4), length_right_tokens=31.0, length_wrong_tokens=37.0,
            unique_completions=6.5, scorer_disagreement_fraction=0.05,
            wrong_advantage_fraction=None, reflection_fraction=0.08,
        )  # fmt: skip


def _diagnostics(arm: str, seed: int, steps: list[Step], alarms: tuple[Alarm, ...]) -> Diagnostics:
    def over(name: str) -> Trend:
        values = [value for step in steps if (value := getattr(step, name)) is not None]
        if not values:
            return Trend(first=None, last=None)
        return Trend(first=fmean(values[:12]), last=fmean(values[-12:]))

    return Diagnostics(
        rules_version="1",
        arm=arm, seed=seed, steps=60, rollouts=7680,
        **{name: over(figure) for name, figure in TRENDS.items()},
        entropy_slope=-0.002, component_correlations={}, all_right_fraction=0.1,
        all_wrong_fraction=0.2, mixed_fraction=0.7, unrewarded_fraction=0.0, spikes=(),
        components={name: over("reward_mean") for name in steps[0].components},
        zero_variance_fraction=fmean(s.zero_variance_fraction or 0.0 for s in steps),
        paid_though_wrong_fraction=0.061, unpaid_though_right_fraction=0.012,
        wrong_advantage_fraction=None if arm == "correctness" else 0.34,
        adapter_effect_norm=3.1842, alarms=alarms,
    )  # fmt: skip


def make_comparison(plan: Plan, protocol_digest: str) -> Comparison:
    adapters = tuple(
        _adapter(arm.name, seed, at, metric)
        for arm in plan.arms
        for at, seed in enumerate(plan.seeds)
        for metric in METRICS
    )
    return Comparison(
        plan_digest=digest(plan), protocol_digest=protocol_digest, primary="strict",
        control=plan.control, alpha=0.05,
        confidence=0.95, margin_points=2.0, missing=(), adapters=adapters,
        arms=tuple(_arms(plan, adapters)),
        floor=NoiseFloor(
            n=QUESTIONS, changed_completions=7, strict_gained=2, strict_lost=3, lenient_gained=1,
            lenient_lost=2,
            sentence="The base, generated again under another batch plan, changed 7 of 400 "
            "completions, 5 strict and 3 lenient outcomes: a difference that small is noise.",
        ),
        rates=tuple(_rates(plan)),
    )  # fmt: skip


def _adapter(arm: str, seed: int, at: int, metric: Metric) -> AdapterComparison:
    gained, lost = EFFECTS[arm][METRICS.index(metric)][at % 3]
    difference = 100 * (gained - lost) / QUESTIONS
    half = 196 * (gained + lost) ** 0.5 / QUESTIONS
    clear = abs(difference) > half
    word: VerdictWord = ("improved" if difference > 0 else "worse") if clear else "no evidence"
    base = round(BASE[metric] * QUESTIONS)
    return AdapterComparison(
        arm=arm, seed=seed, metric=metric, n=QUESTIONS, base_correct=float(base),
        adapter_correct=float(base + gained - lost), gained=gained, lost=lost,
        difference_points=difference, interval_points=(difference - half, difference + half),
        interval_covers="questions", p_value=3.1e-12 if clear else 0.2931, p_exact=7.7e-12 if clear
        else 0.331, verdict=word,
        sentence=f"This adapter ({arm}, seed {seed}), {metric} accuracy: {word}.",
    )  # fmt: skip


def _arms(plan: Plan, adapters: tuple[AdapterComparison, ...]) -> Iterator[ArmComparison]:
    means = {
        (arm.name, metric): [a for a in adapters if (a.arm, a.metric) == (arm.name, metric)]
        for arm in plan.arms
        for metric in METRICS
    }
    for arm in plan.arms:
        for against in ("base", "control"):
            for metric in METRICS:
                if against == "control" and arm.name == plan.control:
                    continue
                reference = 0.0
                if against == "control":
                    reference = fmean(a.difference_points for a in means[plan.control, metric])
                yield _arm(means[arm.name, metric], against, reference, metric)  # type: ignore[arg-type]


def _arm(
    own: list[AdapterComparison],
    against: Literal["base", "control"],
    reference: float,
    metric: Metric,
) -> ArmComparison:
    seeds = tuple(a.difference_points - reference for a in own)
    mean = fmean(seeds)
    half = 2.4 + (2.0 * stdev(seeds) if len(seeds) > 1 else 0.0)
    clear = abs(mean) > half
    one = len(seeds) == 1
    word: VerdictWord = (
        ("improved" if mean > 0 else "worse") if clear and not one else "no evidence"
    )
    base = BASE[metric] + reference / 100
    change = {"improved": f"improved {metric} accuracy", "worse": f"lowered {metric} accuracy"}.get(
        word
    )
    opening = f"over {len(seeds)} seeds this reward {change}" if change else (
        f"no evidence of a change in {metric} accuracy from this reward over {len(seeds)} seed(s)"
    )  # fmt: skip
    return ArmComparison(
        arm=own[0].arm, against=against, metric=metric, primary=metric == "strict", n=QUESTIONS,
        seeds=len(seeds), accuracy=base + mean / 100, reference_accuracy=base,
        gained_mean=fmean(a.gained or 0 for a in own), lost_mean=fmean(a.lost or 0 for a in own),
        difference_points=mean, seed_differences_points=seeds, interval_points=None if one else
        (mean - half, mean + half), interval_covers="nothing" if one else "questions and seeds",
        p_value=None if one else (0.000412 if clear else 0.412), p_holm=None if one else
        (0.00124 if clear else 0.824), minimal_detectable_points=5.2, verdict=word,
        notes=("format gain",) if own[0].arm == "correctness" and metric == "strict" else (),
        sentence=f"{own[0].arm}: {opening}: {metric} accuracy {100 * base + mean:.1f} % against "
        f"{100 * base:.1f} % for {'the base' if against == 'base' else 'the control arm random'}, "
        f"{mean:+.1f} points (95 % interval {mean - half:+.1f} to {mean + half:+.1f} over "
        f"questions and seeds; p = {0.001 if clear else 0.824:.3f} after Holm).",
    )  # fmt: skip


def _rates(plan: Plan) -> Iterator[ReadingRates]:
    names = ["base/answers"]
    names += [f"arms/{arm.name}/seed-{seed}/answers" for arm in plan.arms for seed in plan.seeds]
    for name in names:
        strict: dict[Outcome, int] = {
            "correct": 125,
            "wrong": 120,
            "unparsed": 135,
            "truncated": 20,
        }
        lenient: dict[Outcome, int] = {"correct": 234, "wrong": 140, "unparsed": 6, "truncated": 20}
        yield ReadingRates(
            answers=name, n=QUESTIONS, strict=strict, lenient=lenient, mean_tokens=33.4125
        )


def make_ablation(plan: Plan, comparison: Comparison) -> Ablation:
    cells, arms = [], []
    for arm in plan.arms:
        found = {(a.seed, a.metric): a for a in comparison.adapters if a.arm == arm.name}
        differences = {m: [found[s, m].difference_points for s in plan.seeds] for m in METRICS}
        for seed in plan.seeds:
            strict, lenient = found[seed, "strict"], found[seed, "lenient"]
            cells.append(
                AblationCell(
                    arm=arm.name, seed=seed, reward_first=0.31, reward_last=0.52,
                    own_score_base=0.312,
                    own_score_adapter=0.49, strict_accuracy=strict.adapter_correct / QUESTIONS,
                    lenient_accuracy=lenient.adapter_correct / QUESTIONS,
                    strict_difference_points=strict.difference_points,
                    lenient_difference_points=lenient.difference_points,
                    identical_fraction=0.31,
                    alarms=("reward-without-ability",) if arm.name == "format_only" else (),
                )
            )  # fmt: skip
        several = len(plan.seeds) > 1
        arms.append(
            AblationArm(
                arm=arm.name, control=arm.name == plan.control,
                components=dict(resolve_arm(arm.name).components), seeds=len(plan.seeds),
                strict_difference_points=fmean(differences["strict"]),
                lenient_difference_points=fmean(differences["lenient"]),
                strict_seed_spread_points=stdev(differences["strict"]) if several else None,
                lenient_seed_spread_points=stdev(differences["lenient"]) if several else None,
                own_score_difference=0.178, alarms=(),
            )
        )  # fmt: skip
    return Ablation(
        plan_digest=digest(plan), cells=tuple(cells), arms=tuple(arms), ranking=(), components=()
    )


def make_claims(comparison: Comparison, ablation: Ablation) -> Claims:
    """The claims of the study, and one that is hostile."""
    claims = collect_claims(comparison, ablation)
    hostile = replace(
        claims.claims[-1], id="floor.hostile", value="</script><script>alert(5)</script>"
    )
    return replace(claims, claims=(*claims.claims, hostile))
