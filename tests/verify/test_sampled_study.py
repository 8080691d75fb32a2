"""A study of several answers a question whose sides share their batches: sound, then tampered."""

from __future__ import annotations

import dataclasses
import json
import shutil
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from ahalab.errors import PlanError
from ahalab.plan.load import parse_plan
from ahalab.statistics import difference
from ahalab.statistics.by_question import QuestionEstimate
from ahalab.statistics.interval import Interval
from ahalab.verify.study import verify_study
from mutations.kinds import COMPARISON, record
from study_builder import PLAN, build
from tampering import read_lines, rebuild, reseal

SAMPLED = PLAN.replace(
    "floor_batch_size: 6,", "floor_batch_size: 6, temperature: 0.8, samples: 3, cells_per_batch: 2,"
)


@pytest.fixture(scope="module")
def sampled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("sampled") / "synthetic", SAMPLED)


def failed(root: Path) -> dict[str, str]:
    """Return the first failure of every check that fails."""
    checks = verify_study(root).checks
    return {c.name: f"{c.failures[0].file}: {c.failures[0].expected}" for c in checks if c.failures}


def test_a_sound_sampled_study_passes(sampled: Path) -> None:
    assert failed(sampled) == {}


def test_a_broken_error_by_question_is_caught_where_a_question_has_several_answers(
    sampled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = difference.by_question

    def narrower(*arguments: Any) -> QuestionEstimate:
        found = sound(*arguments)
        return dataclasses.replace(found, interval=Interval(found.difference, found.difference))

    root = Path(shutil.copytree(sampled, tmp_path / "synthetic"))
    monkeypatch.setattr(difference, "by_question", narrower)
    rebuild(root)
    assert "interval_points" in failed(root)["stat.recompute"]


def test_pass_at_k_is_the_share_of_subsets_that_hold_a_correct_answer(sampled: Path) -> None:
    rates = json.loads((sampled / COMPARISON).read_bytes())["rates"]
    for rate in rates:
        rows = [json.loads(line) for line in read_lines(sampled / f"{rate['answers']}.jsonl")]
        by_question: dict[str, list[bool]] = {}
        for row in rows:
            by_question.setdefault(row["prompt_id"], []).append(row["strict"] == "correct")
        assert [point["k"] for point in rate["pass_at"]] == [1, 2, 3]
        for point in rate["pass_at"]:
            subsets = [list(combinations(a, point["k"])) for a in by_question.values()]
            mean = sum(sum(map(any, s)) / len(s) for s in subsets) / len(subsets)
            assert point["strict"] == pytest.approx(mean, abs=1e-12)


PROTOCOL = "arms/historical/seed-1/answers.protocol.json"
TAMPERED = [
    (record(COMPARISON, "rates", 1, "pass_at", 1, "strict", to=0.99), "stat.recompute", "pass@2"),
    (record(COMPARISON, "rates", 0, "pass_at", 2, "lenient", to=0.5), "stat.recompute", "pass@3"),
    (record(COMPARISON, "rates", 0, "pass_at", to=lambda p: p[:2]), "stat.method", "pass@k of"),
    (record(COMPARISON, "rates", 0, "pass_at", 0, "k", to=2), "stat.method", "pass@k of"),
    (record(PROTOCOL, "companions", to=[None, "sha256:0"]), "protocol", "companions"),
    (record(PROTOCOL, "companions", to=[]), "protocol", "companions"),
    (record(PROTOCOL, "cells_per_batch", to=3), "protocol", "cells_per_batch"),
    (record(PROTOCOL, "decoder", to="generate"), "protocol", "decoder"),
    (record(PROTOCOL, "limit", to=9), "protocol", "limit"),
]


@pytest.mark.parametrize(("tamper", "check", "named"), TAMPERED)
def test_what_was_changed_is_named(
    sampled: Path, tmp_path: Path, tamper: object, check: str, named: str
) -> None:
    root = Path(shutil.copytree(sampled, tmp_path / "synthetic"))
    tamper(root)  # type: ignore[operator]
    reseal(root)
    assert named in failed(root)[check]


@pytest.mark.parametrize(("asked", "refused"), [("[1, 3]", False), ("[4]", True), ("[0]", True)])
def test_a_plan_may_ask_for_k_up_to_its_samples(asked: str, refused: bool) -> None:
    text = f"{SAMPLED}\nanalysis: {{pass_at: {asked}}}\n"
    if refused:
        with pytest.raises(PlanError, match=r"analysis\.pass_at: expected numbers from 1 to"):
            parse_plan(text, "plan")
    else:
        analysis = parse_plan(text, "plan").analysis
        assert (analysis.ks(3), analysis.ks(1)) == ((1, 3), ())
