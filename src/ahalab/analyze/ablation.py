"""Arms x seeds in one table, each arm's own reward beside what it did to accuracy."""

from __future__ import annotations

import statistics as stdlib
from dataclasses import replace

from msgspec import UNSET

from ahalab.analyze.answers import Answers, StudyAnswers, read_record
from ahalab.analyze.ranking import component_effects, rank
from ahalab.records.base import decode_file, digest
from ahalab.records.comparison import Ablation, AblationArm, AblationCell, AdapterComparison
from ahalab.records.diagnostics import Diagnostics
from ahalab.scoring.arms import ArmDefinition, resolve_arm, score_batch
from ahalab.scoring.components import Origin, make_response
from ahalab.scoring.worker import row_decider
from ahalab.statistics.study_alarms import arm_alarms
from ahalab.statistics.training import mean
from ahalab.store.layout import StudyPaths
from ahalab.tasks.questions import asked_of


def summarise(
    study: StudyAnswers, paths: StudyPaths, adapters: list[AdapterComparison]
) -> Ablation:
    """Summarise every arm and seed that has answers.

    Raises:
        RecordError: A run's diagnostics are malformed or gone.
    """
    by_metric = {(a.arm, a.seed, a.metric): a for a in adapters}
    cells = []
    for arm in study.plan.arms:
        definition = resolve_arm(arm.name, arm.components)
        for seed in study.seeds_of(arm.name):
            path = paths.run(arm.name, seed).diagnostics
            diagnostics = decode_file(read_record(path), Diagnostics, str(path))
            strict, lenient = (by_metric[arm.name, seed, m] for m in ("strict", "lenient"))
            cells.append(
                AblationCell(
                    arm=arm.name,
                    seed=seed,
                    reward_first=diagnostics.reward.first,
                    reward_last=diagnostics.reward.last,
                    own_score_base=own_score(study, definition, study.base, seed),
                    own_score_adapter=own_score(
                        study, definition, study.adapters[arm.name, seed], seed
                    ),
                    strict_accuracy=strict.adapter_correct / strict.n,
                    lenient_accuracy=lenient.adapter_correct / lenient.n,
                    strict_difference_points=strict.difference_points,
                    lenient_difference_points=lenient.difference_points,
                    identical_fraction=identical_fraction(
                        study.base, study.adapters[arm.name, seed]
                    ),
                    alarms=tuple(a.name for a in diagnostics.alarms),
                )
            )
    arms = [_arm(study, cells, arm.name) for arm in study.plan.arms if study.seeds_of(arm.name)]
    return Ablation(
        plan_digest=digest(study.plan),
        allowed=study.exceptions or UNSET,
        cells=tuple(cells),
        arms=tuple(arms),
        ranking=rank(study),
        components=component_effects(study),
    )


def own_score(study: StudyAnswers, arm: ArmDefinition, answers: Answers, seed: int) -> float | None:
    """Return the mean reward that an arm itself would pay for evaluation answers.

    None for an arm with a reward of the user's own, whose code runs in training only.
    """
    if arm.not_loaded:
        return None
    asked = asked_of(study.plan.task, study.plan.answer_format)
    prompts = {p.prompt_id: p for p in study.prompts}
    responses = [
        make_response(
            completion=row.completion,
            gold=prompts[row.prompt_id].gold,
            finish=row.finish,
            origin=Origin(row.prompt_id, sample=row.sample, seed=seed),
            asked=replace(asked, prompt=prompts[row.prompt_id].question),
            latex_equal=row_decider(asked.task),
        )
        for row in answers.rows.values()
    ]
    return mean(r.reward for r in score_batch(arm, responses) if r.reward is not None)


def identical_fraction(base: Answers, adapter: Answers) -> float:
    """Return the share of an adapter's answers that equal the base's to the letter."""
    same = [base.rows[key].completion == row.completion for key, row in adapter.rows.items()]
    return sum(same) / len(same)


def _arm(study: StudyAnswers, cells: list[AblationCell], name: str) -> AblationArm:
    own = [c for c in cells if c.arm == name]
    strict = [c.strict_difference_points for c in own]
    lenient = [c.lenient_difference_points for c in own]
    gains = [
        c.own_score_adapter - c.own_score_base
        for c in own
        if c.own_score_adapter is not None and c.own_score_base is not None
    ]
    spec = next(arm for arm in study.plan.arms if arm.name == name)
    primary = strict if study.plan.analysis.primary == "strict" else lenient
    return AblationArm(
        arm=name,
        control=name == study.plan.control,
        components=dict(resolve_arm(spec.name, spec.components).components),
        seeds=len(own),
        strict_difference_points=sum(strict) / len(own),
        lenient_difference_points=sum(lenient) / len(own),
        strict_seed_spread_points=stdlib.stdev(strict) if len(own) > 1 else None,
        lenient_seed_spread_points=stdlib.stdev(lenient) if len(own) > 1 else None,
        own_score_difference=mean(gains),
        alarms=arm_alarms(
            control=name == study.plan.control,
            difference_points=sum(primary) / len(own),
            spread_points=stdlib.stdev(primary) if len(own) > 1 else None,
            identical_fractions={c.seed: c.identical_fraction for c in own},
        ),
    )
