"""The verdicts, in their order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahalab.statistics.interval import Interval
from ahalab.statistics.verdict import Verdict, decide

GAIN, LOSS = Interval(0.01, 0.05), Interval(-0.05, -0.01)
WIDE, NARROW = Interval(-0.03, 0.05), Interval(-0.01, 0.015)

bounds = st.floats(-1.0, 1.0)
intervals = st.tuples(bounds, bounds).map(lambda pair: Interval(min(pair), max(pair)))
maybe_p = st.one_of(st.none(), st.floats(0.0, 1.0))


@pytest.mark.parametrize(
    ("p_adjusted", "interval", "margin", "name"),
    [
        (0.01, GAIN, None, "improved"),
        (0.05, GAIN, None, "improved"),  # p <= alpha, not <
        (0.01, LOSS, None, "worse"),
        (0.40, WIDE, 0.02, "no evidence"),
        (0.40, NARROW, 0.02, "equivalent"),
        (0.40, NARROW, None, "no evidence"),  # without a margin nothing is equivalent
        (0.40, NARROW, 0.015, "no evidence"),  # a bound on the margin is not inside it
        (None, NARROW, 0.02, "equivalent"),  # no discordant pair, many questions
        (None, WIDE, 0.02, "no evidence"),
        (0.40, None, 0.02, "no evidence"),
    ],
)
def test_the_verdict_follows_p_interval_and_margin(
    p_adjusted: float | None, interval: Interval | None, margin: float | None, name: str
) -> None:
    assert decide(p_adjusted, interval, margin=margin).name == name


def test_not_comparable_comes_before_everything() -> None:
    verdict = decide(0.001, GAIN, margin=0.2, comparable=False)
    assert verdict == Verdict("not comparable", False, False, False, False)


def test_a_change_inside_the_margin_is_still_a_change_and_says_so() -> None:
    verdict = decide(0.001, GAIN, margin=0.06)
    assert (verdict.name, verdict.smaller_than_margin) == ("improved", True)
    assert not decide(0.001, GAIN, margin=0.05).smaller_than_margin
    assert not decide(0.4, NARROW, margin=0.05).smaller_than_margin


@pytest.mark.parametrize(("p_value", "interval"), [(0.06, GAIN), (0.04, WIDE)])
def test_where_p_and_interval_disagree_there_is_no_evidence(
    p_value: float, interval: Interval
) -> None:
    for margin in (None, 0.2):  # not even inside a margin
        verdict = decide(p_value, interval, margin=margin)
        assert (verdict.name, verdict.borderline) == ("no evidence", True)


def test_what_only_the_adjustment_takes_away_is_not_borderline() -> None:
    verdict = decide(0.08, GAIN, p_value=0.02)
    assert verdict == Verdict("no evidence", False, False, True, False)
    assert decide(0.08, GAIN, p_value=0.02, margin=0.06).name == "equivalent"


def test_without_an_interval_the_verdict_is_no_evidence_and_undefined() -> None:
    assert decide(None, None) == Verdict("no evidence", False, False, False, True)


def test_alpha_is_the_plans() -> None:
    assert decide(0.02, GAIN, alpha=0.01).name == "no evidence"


@given(maybe_p, intervals, st.floats(0.001, 1.0))
def test_no_change_is_claimed_against_p_or_interval(
    p_adjusted: float | None, interval: Interval, margin: float
) -> None:
    verdict = decide(p_adjusted, interval, margin=margin)
    if verdict.name == "improved":
        assert p_adjusted is not None
        assert p_adjusted <= 0.05
        assert interval.low > 0
    if verdict.name == "worse":
        assert p_adjusted is not None
        assert p_adjusted <= 0.05
        assert interval.high < 0
    if verdict.name == "equivalent":
        assert max(abs(interval.low), abs(interval.high)) < margin


@given(maybe_p, intervals)
def test_mirrored_numbers_mirror_the_verdict(p_adjusted: float | None, interval: Interval) -> None:
    mirror = {"improved": "worse", "worse": "improved"}
    verdict = decide(p_adjusted, interval, margin=0.1)
    mirrored = decide(p_adjusted, Interval(-interval.high, -interval.low), margin=0.1)
    assert mirrored.name == mirror.get(verdict.name, verdict.name)


@pytest.mark.parametrize(
    ("p_adjusted", "settings", "message"),
    [
        (float("nan"), {}, "p_adjusted"),
        (1.2, {}, "p_adjusted"),
        (0.02, {"p_value": 0.03}, "p_adjusted: expected at least"),
        (None, {"p_value": 0.03}, "p_adjusted: expected at least"),
        (0.02, {"margin": 0.0}, "margin"),
        (0.02, {"margin": float("nan")}, "margin"),
        (0.02, {"alpha": 5}, "alpha"),
    ],
)
def test_impossible_numbers_are_refused(
    p_adjusted: float | None, settings: dict[str, float], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        decide(p_adjusted, GAIN, **settings)  # type: ignore[arg-type]


def test_an_interval_with_nan_or_crossed_bounds_cannot_be_made() -> None:
    for low, high in ((float("nan"), 0.1), (0.0, float("nan")), (0.2, 0.1)):
        with pytest.raises(ValueError, match="low <= high"):
            Interval(low, high)


def test_zero_on_a_bound_is_not_excluded() -> None:
    assert not Interval(0.0, 0.1).excludes_zero
    assert not Interval(-0.1, 0.0).excludes_zero
    assert Interval(0.0, 0.1).contains(0.0)
