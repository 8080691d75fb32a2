"""What other arms would have paid and taught, from saved rollouts alone: no model, no network."""

from __future__ import annotations

import statistics as stdlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ahalab.analyze.candidates import Candidates, Draft, candidates
from ahalab.analyze.payments import Checks, Payments
from ahalab.analyze.saved_rollouts import FoundRuns, SavedRun, generation_batches
from ahalab.errors import InputError
from ahalab.records.counterfactual import (
    ArmOnRollouts,
    Counterfactual,
    CounterfactualRow,
    MassOnAnswers,
    Merge,
    OverSeeds,
    RecordedRollouts,
)
from ahalab.records.terms import METRICS, Metric
from ahalab.scoring.answers import SCORER_VERSION
from ahalab.scoring.arms import ArmDefinition
from ahalab.scoring.training_parser import TRAINING_PARSER_VERSION
from ahalab.statistics.counterfactual import ArmFigures, MassShares, Tally
from ahalab.statistics.likeness import CLUSTER_AT, cluster, correlations

Weighting = Literal["response", "loss"]
WEIGHTINGS: tuple[Weighting, Weighting] = ("response", "loss")
PLAIN = ("historical", "correctness")  # arms that the sentence compares the recorded one with
LIMIT = (
    "The rollouts are those of the policies that the recorded arms trained. Only the rollouts of "
    "step 0 come from the base, from which every arm starts (--steps 1); later another arm would "
    "have been shown its own rollouts, and these are not they. What is computed is exact for these "
    "rollouts, and no forecast of a run."
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What is computed, and who is told of it on the way."""

    drafts: Sequence[Draft] = ()
    trust_rewards: bool = False
    steps: int | None = None  # only rollouts generated before so many steps were done
    on_rollouts: Callable[[int], None] = lambda _: None
    on_row: Callable[[CounterfactualRow], None] | None = None


def counterfactual(found: FoundRuns, asked: Asked) -> Counterfactual:
    """Score the rollouts of finished runs with every arm.

    Runs of one arm in one study are taken together, a figure for each seed. Memory holds one
    generation batch at a time.

    Raises:
        InputError: An arm, a loss or a scale is not known here, or a row is not what it must be.
    """
    by_arm: dict[tuple[int, str], list[SavedRun]] = {}
    for run in found.runs:
        by_arm.setdefault((id(run.study), run.record.arm), []).append(run)
    return Counterfactual(
        scorer_version=SCORER_VERSION,
        training_parser_version=TRAINING_PARSER_VERSION,
        steps=asked.steps,
        cluster_at=CLUSTER_AT,
        missing=found.missing,
        sources=tuple(_source(runs, asked) for runs in by_arm.values()),
        limit=LIMIT,
    )


def _source(runs: Sequence[SavedRun], asked: Asked) -> RecordedRollouts:
    first = runs[0]
    study, arm = first.study, first.record.arm
    chosen = candidates(study, arm, asked.drafts, trust_rewards=asked.trust_rewards)
    checks = Checks()
    tallies = [_tally(run, chosen, checks, asked) for run in runs]
    matrix = correlations(np.sum([tally.products for tally in tallies], axis=0))
    tree = cluster(matrix)
    silent = [at for at in range(len(chosen.arms)) if at not in tree.order]
    order = [0, *(at for at in (*tree.order, *silent) if at != 0)]
    figures = {at: [tally.figures(at) for tally in tallies] for at in order}
    names = [arm.name for arm in chosen.arms]
    arms = [_arm(chosen.arms[at], figures[at], at, matrix[0][at]) for at in order]
    return RecordedRollouts(
        study=study.plan.name,
        arm=arm,
        seeds=tuple(run.record.seed for run in runs),
        runs=tuple(run.paths.name for run in runs),
        rollouts=sum(tally.rollouts for tally in tallies),
        groups=sum(tally.groups for tally in tallies),
        group_size=first.group_size,
        scale_rewards=str(study.plan.grpo["scale_rewards"]),
        loss_type=str(study.plan.grpo["loss_type"]),
        outcomes_changed=checks.outcomes_changed,
        rewards_changed=checks.rewards_changed,
        advantages_off=checks.advantages_off,
        arms=tuple(arms),
        left_out=chosen.left_out,
        correlations=tuple(tuple(matrix[i][j] for j in order) for i in order),
        merges=tuple(
            Merge(arms=tuple(names[at] for at in members), correlation=height)
            for members, height in tree.merges
        ),
        clusters=tuple(tuple(names[at] for at in members) for members in tree.clusters),
        sentence=_sentence(arms),
    )


def _tally(run: SavedRun, chosen: Candidates, checks: Checks, asked: Asked) -> Tally:
    tally = Tally(len(chosen.arms))
    payments = Payments(run, chosen.arms, checks, asked.on_row)
    for rows in generation_batches(run, asked.steps):
        try:
            tally.add(payments.batch(rows))
        except ValueError as error:
            raise InputError(f"{run.paths.rollouts}: {error}.") from error
        asked.on_rollouts(len(rows))
    if not tally.rollouts:
        raise InputError(f"{run.paths.rollouts}: expected rollouts, found none.")
    return tally


def _arm(
    arm: ArmDefinition, by_seed: Sequence[ArmFigures], at: int, correlation: float | None
) -> ArmOnRollouts:
    return ArmOnRollouts(
        arm=arm.name,
        components=dict(arm.components),
        control=arm.control,
        recorded=at == 0,
        paid_right=_over(f.paid_right for f in by_seed),
        paid_wrong=_over(f.paid_wrong for f in by_seed),
        unrewarded_fraction=_over(f.unrewarded for f in by_seed),
        dead_group_fraction=_over(f.dead for f in by_seed),
        mean_absolute_advantage=_over(f.magnitude for f in by_seed),
        flipped_fraction=_over(f.flipped for f in by_seed),
        silenced_fraction=_over(f.silenced for f in by_seed),
        awakened_fraction=_over(f.awakened for f in by_seed),
        correlation=correlation,
        mass=tuple(
            _mass(metric, weighting, [f.shares[m][w] for f in by_seed])
            for m, metric in enumerate(METRICS)
            for w, weighting in enumerate(WEIGHTINGS)
        ),
    )


def _mass(metric: Metric, weighting: Weighting, by_seed: Sequence[MassShares]) -> MassOnAnswers:
    return MassOnAnswers(
        metric=metric,
        weighting=weighting,
        absolute_on_wrong=_over(s.absolute_on_wrong for s in by_seed),
        positive_on_wrong=_over(s.positive_on_wrong for s in by_seed),
        negative_on_right=_over(s.negative_on_right for s in by_seed),
    )


def _over(by_seed: Iterable[float | None]) -> OverSeeds:
    values = tuple(by_seed)
    known = [value for value in values if value is not None]
    return OverSeeds(
        mean=stdlib.fmean(known) if known else None,
        sd=stdlib.stdev(known) if len(known) > 1 else None,
        by_seed=values,
    )


def _sentence(arms: Sequence[ArmOnRollouts]) -> str:
    """Say where the positive advantage went as it was paid, and where two plain arms put it."""
    recorded = arms[0]
    strict, lenient = _shares(recorded)
    told = [
        f"Of the positive advantage that {recorded.arm} paid, {strict} went to answers that are "
        f"not right in the asked format, {lenient} to answers that are not right at all (weighed "
        "as the loss weighs them)"
    ]
    for arm in arms[1:]:
        if arm.arm in PLAIN:
            strict, lenient = _shares(arm)
            told.append(f"{arm.arm} would have put {strict} and {lenient} there")
    others = [arm for arm in arms[1:] if not arm.control]
    if others:
        most = max(others, key=_flipped)
        told.append(
            f"{most.arm} would have turned most advantages round, those of "
            f"{100 * _flipped(most):.1f} % of the rollouts"
            if _flipped(most)
            else "no other arm would have turned an advantage round"
        )
    return "; ".join(told) + "."


def _flipped(arm: ArmOnRollouts) -> float:
    return arm.flipped_fraction.mean or 0.0


def _shares(arm: ArmOnRollouts) -> tuple[str, str]:
    """Return the share of an arm's positive advantage on wrong answers, strict and lenient."""
    shares = {m.metric: m.positive_on_wrong.mean for m in arm.mass if m.weighting == "loss"}
    told = ["nothing" if shares[m] is None else f"{100 * (shares[m] or 0):.1f} %" for m in METRICS]
    return told[0], told[1]
