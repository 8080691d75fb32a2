"""The verifier's own estimate over seeds: worked out by hand, against the analysis, and apart."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ahalab.statistics.combined_error import Part
from ahalab.statistics.interval import Interval
from ahalab.statistics.seeds import SeedEstimate, arm_against_control, reward_claim
from ahalab.verify.arm_oracle import ArmEstimate, estimate_arm
from ahalab.verify.study import verify_study
from tampering import rebuild


def test_two_seeds_and_two_questions_come_out_as_by_hand() -> None:
    """Gains 1 1 / 1 0: D = 3/4, seed means 1 and 1/2, question means 1 and 1/2.

    Over seeds the variance is 1/8, so SE_s^2 = 1/16; over questions the same. The residuals are all
    1/4 or -1/4, so SE_qs^2 = 2 * (4 / 16) / 4 / 2 = 1/16, and SE^2 = 1/16. With one degree of
    freedom each, the half width is t sqrt(1/16 + 1/16).
    """
    found = estimate_arm([[[1, 1], [1, 0]]], 1, ["a", "b"], 0.5)
    t = float(stats.t.ppf(0.75, 1))  # 1, the quartile of a Cauchy distribution
    assert found.difference == 0.75
    assert found.by_seed == (1.0, 0.5)
    assert found.standard_error == pytest.approx(0.25)
    assert found.bounds == pytest.approx((0.75 - t * 0.125**0.5, 1.0))
    # P(|Cauchy| > sqrt(0.75^2 / 0.125)) = 1 - 2/pi atan(2.1213)
    assert found.p_value == pytest.approx(1 - 2 / np.pi * np.arctan((0.75**2 / 0.125) ** 0.5))


@pytest.mark.parametrize(
    "sides",
    [[[[1, 0, 1]]], [[[1, 0], [0, 0]], [[0, 1]]]],
    ids=["one seed", "a control of one seed"],
)
def test_one_seed_carries_no_claim_on_the_reward(sides: list[list[list[int]]]) -> None:
    labels = [str(at) for at in range(len(sides[0][0]))]
    found = estimate_arm(sides, 1, labels, 0.95)
    assert (found.standard_error, found.bounds, found.p_value) == (None, None, None)


def test_what_never_varies_has_no_error_and_no_p() -> None:
    found = estimate_arm([[[1, 1], [1, 1]]], 3, ["a", "b"], 0.95)
    assert found.difference == pytest.approx(1 / 3)
    assert (found.standard_error, found.bounds, found.p_value) == (None, None, None)


def test_questions_of_one_cluster_cannot_tell() -> None:
    assert estimate_arm([[[1, 0], [0, 1]]], 1, ["a", "a"], 0.95).bounds is None


@st.composite
def studies(draw: st.DrawFn) -> tuple[list[np.ndarray[Any, Any]], int, list[str], float]:
    """Draw gains of one or two arms, answers a question, clusters, a confidence."""
    samples = draw(st.sampled_from([1, 2, 8]))
    questions = draw(st.integers(1, 12))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    few = draw(st.sampled_from([0.0, 0.5, 0.95]))  # how many gains are 0
    sides = []
    for _ in range(draw(st.integers(1, 2))):
        gains = rng.integers(-samples, samples + 1, (draw(st.integers(1, 5)), questions))
        sides.append(np.where(rng.random(gains.shape) < few, 0, gains))
    labels = draw(st.lists(st.sampled_from("abcdefgh"), min_size=questions, max_size=questions))
    alone = [str(at) for at in range(questions)]
    return (
        sides,
        samples,
        draw(st.sampled_from([labels, alone])),
        draw(st.sampled_from([0.9, 0.99])),
    )


@settings(max_examples=300, deadline=None)
@given(studies())
def test_both_codes_of_the_error_over_seeds_agree(
    drawn: tuple[list[np.ndarray[Any, Any]], int, list[str], float],
) -> None:
    sides, samples, labels, confidence = drawn
    ours = estimate_arm([side.tolist() for side in sides], samples, labels, confidence)
    values = [side / samples for side in sides]
    if len(values) == 1:
        theirs = reward_claim(values[0], labels, confidence)
    else:
        theirs = arm_against_control(values[0], values[1], labels, confidence)
    _agree(ours, theirs)


def _agree(ours: ArmEstimate, theirs: SeedEstimate) -> None:
    assert (ours.questions, ours.seeds) == (theirs.questions, theirs.seeds)
    assert ours.difference == pytest.approx(theirs.difference, abs=1e-12)
    assert ours.by_seed == pytest.approx(theirs.by_seed, abs=1e-12)
    assert (ours.bounds is None) == (theirs.interval is None)
    if ours.bounds is None or theirs.interval is None:
        assert ours.p_value is theirs.p_value is None
        return
    interval = (theirs.interval.low, theirs.interval.high)
    assert ours.standard_error == pytest.approx(theirs.standard_error, abs=1e-12)
    assert ours.bounds == pytest.approx(interval, abs=1e-9)
    assert ours.p_value == pytest.approx(theirs.p_value, rel=1e-7)


def _narrower(parts: list[Part], alpha: float) -> float:
    return 0.9 * sum(2.0 * part.square**0.5 for part in parts)


BROKEN = {
    "the interval over seeds": ("ahalab.statistics.seeds", "half_width", _narrower),
    "the p over seeds": ("ahalab.statistics.seeds", "two_sided_p", lambda parts, estimate: 0.04),
    "the error over questions": (
        "ahalab.statistics.seeds", "cluster_error", lambda values, index, groups: 0.01,
    ),
    "Holm": ("ahalab.analyze.arms", "holm", lambda p_values: list(p_values)),
    "the mid-p": ("ahalab.statistics.difference", "mcnemar_midp", lambda gained, lost: 0.04),
    "Tango's interval": (
        "ahalab.statistics.difference", "tango_interval", lambda *_: Interval(-0.9, 0.9),
    ),
}  # fmt: skip
"""Statistics of the analysis, broken: module, name, what takes its place."""


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_statistic_of_the_analysis_is_caught(
    name: str, study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All is made again with the broken code, and verified while it is still broken."""
    module, function, broken = BROKEN[name]
    monkeypatch.setattr(importlib.import_module(module), function, broken)
    rebuild(study)
    checks = {check.name: check for check in verify_study(study).checks}
    assert checks["stat.recompute"].status == "failed"
    failure = checks["stat.recompute"].failures[0]
    assert failure.file in ("analysis/comparison.json", "analysis/templates.json")
    assert failure.expected != failure.found
