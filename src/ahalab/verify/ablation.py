"""The table of arms and seeds: each arm's own reward on the answers, beside its accuracy."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from ahalab.plan.cells import Cell
from ahalab.records.base import to_plain
from ahalab.records.comparison import Ablation
from ahalab.records.diagnostics import Diagnostics
from ahalab.records.terms import METRICS
from ahalab.statistics.study_alarms import arm_alarms
from ahalab.statistics.training import mean
from ahalab.verify.exceptions import exception_fields
from ahalab.verify.matrices import Outcomes
from ahalab.verify.own import definition_of
from ahalab.verify.ranking import expected_components, expected_ranking
from ahalab.verify.reading import Study, differences

FILE = "analysis/ablation.json"


def check_ablation(study: Study, outcomes: Outcomes | None) -> Ablation | None:
    """Check ablation.json; return it when it could be read."""
    path, tally = study.paths.ablation, study.ledger["ablation"]
    found = study.record(path, Ablation)
    if not path.exists():
        tally.incomplete(f"{FILE}: not written yet")
    elif found is not None and outcomes is not None:
        study.match_plan(path, found.plan_digest)
        cells = [_cell(study, outcomes, cell) for cell in outcomes.cells]
        expected: dict[str, list[dict[str, Any]]] = {
            "cells": cells,
            "arms": [
                _arm(outcomes, name, [c for c in cells if c["arm"] == name])
                for name in outcomes.arms
            ],
            "ranking": expected_ranking(outcomes),
            "components": expected_components(outcomes),
        }
        for arm in expected["arms"]:
            study.recompute(f"ablation.{arm['arm']}", arm)
        plain = to_plain(found)
        allowed = list(found.allowed or ())
        tally.expect(FILE, None, "allowed", exception_fields(study), allowed)
        wrong = list(differences(expected, {key: plain[key] for key in expected}))
        for place, ours, theirs in wrong:
            tally.fail(FILE, None, f"{place}: {ours}", theirs)
        tally.passed(len(cells) + len(outcomes.arms))
    study.ledger.close(("ablation",))
    return found


def _cell(study: Study, outcomes: Outcomes, cell: Cell) -> dict[str, Any]:
    arm, seed = cell.run
    answers = outcomes.sets[cell]
    diagnostics = study.record(study.paths.run(arm, seed).diagnostics, Diagnostics)
    accuracy = {m: float(outcomes.correct_NK(answers, m).mean()) for m in METRICS}
    base = {m: float(outcomes.correct_NK(outcomes.base, m).mean()) for m in METRICS}
    return {
        "arm": arm,
        "seed": seed,
        "reward_first": diagnostics.reward.first if diagnostics else None,
        "reward_last": diagnostics.reward.last if diagnostics else None,
        "own_score_base": outcomes.base.paid.get(cell),
        "own_score_adapter": answers.paid.get(cell),
        "strict_accuracy": accuracy["strict"],
        "lenient_accuracy": accuracy["lenient"],
        "strict_difference_points": 100 * (accuracy["strict"] - base["strict"]),
        "lenient_difference_points": 100 * (accuracy["lenient"] - base["lenient"]),
        "identical_fraction": outcomes.identical(answers) / len(answers.replies),
        "alarms": [alarm.name for alarm in diagnostics.alarms] if diagnostics else [],
    }


def _arm(outcomes: Outcomes, name: str, cells: Sequence[dict[str, Any]]) -> dict[str, Any]:
    own = [
        c["own_score_adapter"] - c["own_score_base"]
        for c in cells
        if c["own_score_adapter"] is not None and c["own_score_base"] is not None
    ]
    found: dict[str, Any] = {
        "arm": name,
        "control": name == outcomes.plan.control,
        "components": dict(definition_of(outcomes.plan, name).components),
        "seeds": len(cells),
        "own_score_difference": mean(own),
    }
    for metric in METRICS:
        values = [c[f"{metric}_difference_points"] for c in cells]
        found[f"{metric}_difference_points"] = statistics.fmean(values)
        found[f"{metric}_seed_spread_points"] = (
            statistics.stdev(values) if len(values) > 1 else None
        )
    primary = outcomes.plan.analysis.primary
    alarms = arm_alarms(
        control=name == outcomes.plan.control,
        difference_points=found[f"{primary}_difference_points"],
        spread_points=found[f"{primary}_seed_spread_points"],
        identical_fractions={c["seed"]: c["identical_fraction"] for c in cells},
    )
    found["alarms"] = [to_plain(alarm) for alarm in alarms]
    return found
