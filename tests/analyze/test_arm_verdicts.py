"""A reward design over its seeds: base and control, Holm, notes, claims, ablation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace
from small_study import pair, write_study
from statsmodels.stats.multitest import multipletests

from ahalab.analyze.compare import analyze
from ahalab.records.base import decode_file
from ahalab.records.comparison import Ablation, ArmComparison, Comparison
from ahalab.records.diagnostics import Diagnostics, Trend
from ahalab.records.manifest import Claims
from ahalab.store.layout import StudyPaths

N = 100


def arm(comparison: Comparison, name: str, against: str, metric: str = "strict") -> ArmComparison:
    return next(
        a for a in comparison.arms if (a.arm, a.against, a.metric) == (name, against, metric)
    )


def letters(right: int, n: int = N, flipped: int = 0) -> str:
    """Return an answer set with so many right; the first `flipped` right ones are wrong instead."""
    return "W" * flipped + "C" * right + "W" * (n - right - flipped)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> tuple[Comparison, Ablation, StudyPaths]:
    """Three seeds of a clear gain beside a placebo that does nothing much."""
    root = tmp_path_factory.mktemp("results") / "clear"
    plan, paths = write_study(
        root,
        letters(40),
        {
            ("correctness", 0): letters(60),
            ("correctness", 1): letters(62),
            ("correctness", 2): letters(64),
            ("random", 0): letters(40, flipped=1),
            ("random", 1): letters(40),
            ("random", 2): letters(39),
        },
        floor=letters(40),
    )
    return (*analyze(plan, paths), paths)


def test_accuracies_and_differences_are_means_over_seeds_by_hand(
    study: tuple[Comparison, Ablation, StudyPaths],
) -> None:
    found = arm(study[0], "correctness", "base")
    assert found.accuracy == pytest.approx(0.62)
    assert found.reference_accuracy == pytest.approx(0.40)
    assert found.difference_points == pytest.approx(22.0)
    assert found.seed_differences_points == pytest.approx((20.0, 22.0, 24.0))
    assert (found.gained_mean, found.lost_mean) == (22.0, 0.0)
    assert (found.seeds, found.n) == (3, N)
    assert found.verdict == "improved"


def test_the_control_comparison_measures_from_the_controls_mean(
    study: tuple[Comparison, Ablation, StudyPaths],
) -> None:
    # Control: 40, 40 and 39 right. Seed 0 lost its first question and gained its 41st.
    found = arm(study[0], "correctness", "control")
    assert found.reference_accuracy == pytest.approx(119 / 300)
    assert found.difference_points == pytest.approx(100 * (186 - 119) / 300)
    assert found.seed_differences_points == pytest.approx(
        tuple(100 * (right / 100 - 119 / 300) for right in (60, 62, 64))
    )
    assert (found.gained_mean, found.lost_mean) == (None, None)


def test_gained_and_lost_of_a_seed_are_counted_apart(
    study: tuple[Comparison, Ablation, StudyPaths],
) -> None:
    found = arm(study[0], "random", "base")  # +1 -1; 0 0; 0 -1
    assert found.gained_mean == pytest.approx(1 / 3)
    assert found.lost_mean == pytest.approx(2 / 3)


def test_the_control_is_not_compared_with_itself_and_every_metric_has_its_family(
    study: tuple[Comparison, Ablation, StudyPaths],
) -> None:
    named = [(a.metric, a.primary, a.arm, a.against) for a in study[0].arms]
    assert named == [
        (metric, metric == "strict", name, against)
        for metric in ("strict", "lenient")
        for name, against in (
            ("correctness", "base"),
            ("random", "base"),
            ("correctness", "control"),
        )
    ]


@pytest.mark.parametrize("metric", ["strict", "lenient"])
def test_holm_over_the_planned_comparisons_is_statsmodels_holm(
    study: tuple[Comparison, Ablation, StudyPaths], metric: str
) -> None:
    family = [a for a in study[0].arms if a.metric == metric]
    expected = multipletests([a.p_value for a in family], method="holm")[1]
    assert [a.p_holm for a in family] == pytest.approx(list(expected))
    assert family[0].p_holm == pytest.approx(3 * min(a.p_value or 1 for a in family))


def test_one_seed_carries_no_claim_on_the_reward(tmp_path: Path) -> None:
    base, adapter = pair(40, 2, N)
    plan, paths = write_study(tmp_path, base, {("correctness", 0): adapter, ("random", 0): base})
    comparison, _ = analyze(plan, paths)
    for against in ("base", "control"):
        found = arm(comparison, "correctness", against)
        assert (found.verdict, found.p_value, found.interval_points) == ("no evidence", None, None)
        assert "one seed" in found.notes
        assert found.sentence.startswith("correctness: no evidence on this reward (one seed).")
        assert "This adapter:" in found.sentence
        assert "this reward improved" not in found.sentence
    own = next(a for a in comparison.adapters if a.arm == "correctness")
    assert own.verdict == "improved"
    assert own.sentence.startswith("This adapter (correctness, seed 0) is better than the base")


def test_several_seeds_speak_of_this_reward(
    study: tuple[Comparison, Ablation, StudyPaths],
) -> None:
    sentence = arm(study[0], "correctness", "base").sentence
    assert sentence.startswith(
        "correctness: over 3 seeds this reward improved strict accuracy relative to the base: "
        "62.0 % against 40.0 %, +22.0 points (95 % interval +"
    )
    assert "over questions and seeds; p" in sentence
    assert "adapter" not in sentence


def test_a_control_with_one_seed_left_is_named_as_the_reason(tmp_path: Path) -> None:
    plan, paths = write_study(
        tmp_path,
        letters(40),
        {
            ("correctness", 0): letters(60),
            ("correctness", 1): letters(62),
            ("random", 0): letters(40),
        },
        unfinished=[("random", 1)],
    )
    comparison, _ = analyze(plan, paths)
    assert comparison.missing == ("arms/random/seed-1",)
    found = arm(comparison, "correctness", "control")
    assert found.verdict == "no evidence"
    assert found.sentence.startswith(
        "correctness: no evidence on this reward (the control arm has one seed)."
    )


def test_an_arm_without_answers_is_missing_and_not_compared(tmp_path: Path) -> None:
    plan, paths = write_study(
        tmp_path,
        letters(40),
        {("random", 0): letters(40), ("random", 1): letters(41)},
        unfinished=[("correctness", 0), ("correctness", 1)],
    )
    comparison, ablation = analyze(plan, paths)
    assert comparison.missing == ("arms/correctness/seed-0", "arms/correctness/seed-1")
    assert {a.arm for a in comparison.arms} == {"random"}
    assert {a.arm for a in ablation.arms} == {"random"}


def test_a_missing_control_leaves_the_comparison_with_the_base(tmp_path: Path) -> None:
    plan, paths = write_study(
        tmp_path,
        letters(40),
        {("correctness", 0): letters(60), ("correctness", 1): letters(62)},
        unfinished=[("random", 0), ("random", 1)],
    )
    comparison, _ = analyze(plan, paths)
    assert {(a.arm, a.against) for a in comparison.arms} == {("correctness", "base")}


def test_adapters_that_answer_as_the_base_are_no_evidence_and_say_why(tmp_path: Path) -> None:
    plan, paths = write_study(
        tmp_path, letters(40), {("random", 0): letters(40), ("random", 1): letters(40)}
    )
    found = arm(analyze(plan, paths)[0], "random", "base")
    assert (found.verdict, found.p_value, found.interval_points) == ("no evidence", None, None)
    assert "nothing varies between seeds and questions" in found.sentence
    assert "one seed" not in found.sentence


# A gain that is one of format alone.


def formats(right: int, only_value: int, n: int = N) -> str:
    return "C" * right + "F" * only_value + "W" * (n - right - only_value)


def format_study(root: Path, seeds: list[str], base: str) -> ArmComparison:
    cells = {("correctness", seed): line for seed, line in enumerate(seeds)}
    plan, paths = write_study(root, base, {**cells, ("random", 0): base, ("random", 1): base})
    return arm(analyze(plan, paths)[0], "correctness", "base")


def test_strict_up_and_lenient_flat_is_noted_as_a_gain_in_format(tmp_path: Path) -> None:
    seeds = [formats(58, 2), formats(59, 1), formats(60, 1)]
    found = format_study(tmp_path, seeds, formats(30, 30))
    assert found.verdict == "improved"
    assert found.notes == ("format gain",)
    assert found.sentence.endswith(
        "This is a format gain: the lenient reading, which takes the right value in any format, "
        "shows no evidence of a gain."
    )


def test_strict_up_and_lenient_down_is_noted_as_a_loss_of_ability(tmp_path: Path) -> None:
    seeds = [formats(40, 0), formats(41, 0), formats(42, 0)]
    found = format_study(tmp_path, seeds, formats(20, 50))
    assert found.verdict == "improved"
    assert found.notes == ("format gain, ability lost",)
    assert found.sentence.endswith(
        "This is a format gain with a loss of ability: by the lenient reading, which takes the "
        "right value in any format, accuracy fell."
    )


def test_strict_and_lenient_up_is_no_format_gain(tmp_path: Path) -> None:
    seeds = [formats(58, 20), formats(59, 20), formats(60, 20)]
    found = format_study(tmp_path, seeds, formats(30, 20))
    assert (found.verdict, found.notes) == ("improved", ())


def test_strict_down_and_lenient_flat_is_noted_as_a_loss_of_format(tmp_path: Path) -> None:
    seeds = [formats(30, 30), formats(29, 31), formats(31, 29)]
    found = format_study(tmp_path, seeds, formats(58, 2))
    assert (found.verdict, found.notes) == ("worse", ("format loss",))


def test_strict_down_and_lenient_up_is_noted_as_a_gain_in_ability(tmp_path: Path) -> None:
    seeds = [formats(20, 60), formats(21, 60), formats(20, 61)]
    found = format_study(tmp_path, seeds, formats(40, 0))
    assert (found.verdict, found.notes) == ("worse", ("format loss, ability gained",))


def test_a_gain_by_one_reading_that_the_other_calls_a_loss_says_so_twice(tmp_path: Path) -> None:
    seeds = [formats(20, 60), formats(21, 60), formats(20, 61)]
    cells = {("correctness", seed): line for seed, line in enumerate(seeds)}
    base = formats(40, 0)
    plan, paths = write_study(tmp_path, base, {**cells, ("random", 0): base, ("random", 1): base})
    found = arm(analyze(plan, paths)[0], "correctness", "base", "lenient")
    assert (found.verdict, found.notes) == ("improved", ("lenient alone, strict opposite",))
    assert found.sentence.endswith("accuracy went the other way.")


def test_a_change_that_the_lenient_reading_alone_shows_says_so(tmp_path: Path) -> None:
    seeds = [formats(30, 40), formats(30, 41), formats(30, 42)]
    cells = {("correctness", seed): line for seed, line in enumerate(seeds)}
    base = formats(30, 5)
    plan, paths = write_study(tmp_path, base, {**cells, ("random", 0): base, ("random", 1): base})
    found = arm(analyze(plan, paths)[0], "correctness", "base", "lenient")
    assert (found.verdict, found.notes) == ("improved", ("lenient alone",))


def test_the_primary_metric_comes_first_and_may_be_the_lenient_one(tmp_path: Path) -> None:
    plan, paths = write_study(
        tmp_path,
        letters(40),
        {("random", 0): letters(41), ("random", 1): letters(42)},
        primary="lenient",
    )
    found = analyze(plan, paths)[0]
    assert [(a.metric, a.primary) for a in found.arms] == [("lenient", True), ("strict", False)]


def test_a_change_within_the_margin_is_said_to_be_small(tmp_path: Path) -> None:
    plan, paths = write_study(
        tmp_path,
        letters(40),
        {("random", 0): letters(60), ("random", 1): letters(61), ("random", 2): letters(62)},
        margin=60.0,
    )
    found = arm(analyze(plan, paths)[0], "random", "base")
    assert (found.verdict, found.notes) == ("improved", ("smaller than the margin",))
    assert (
        "smaller than the plan's margin: the whole interval lies within 60 points" in found.sentence
    )


def test_an_interval_inside_the_margin_is_equivalent(tmp_path: Path) -> None:
    plan, paths = write_study(
        tmp_path,
        letters(40),
        {("random", 0): letters(41), ("random", 1): letters(39), ("random", 2): letters(40)},
        margin=30.0,
    )
    found = arm(analyze(plan, paths)[0], "random", "base")
    assert found.verdict == "equivalent"
    assert "was the same to within 30 points" in found.sentence


def test_questions_given_twice_leave_the_claim_on_the_reward_where_it_was(tmp_path: Path) -> None:
    texts = [f"What is {n} + 7 - {n}?" for n in range(N)]
    cells = {
        ("correctness", 0): letters(50, flipped=3),
        ("correctness", 1): letters(48, flipped=2),
        ("random", 0): letters(41),
        ("random", 1): letters(39, flipped=1),
    }
    single = write_study(tmp_path / "once", letters(40), cells, questions=texts)
    doubled = {cell: line * 2 for cell, line in cells.items()}
    double = write_study(tmp_path / "twice", letters(40) * 2, doubled, questions=texts * 2)
    for one, two in zip(analyze(*single)[0].arms, analyze(*double)[0].arms, strict=True):
        assert two.p_value == pytest.approx(one.p_value)
        assert two.interval_points == pytest.approx(one.interval_points)


# Ablation and claims.


def test_the_ablation_has_each_arms_own_score_of_base_and_adapter(
    study: tuple[Comparison, Ablation, StudyPaths],
) -> None:
    ablation = study[1]
    cells = {(c.arm, c.seed): c for c in ablation.cells}
    own = cells["correctness", 1]  # pays 1 for a strictly right answer: its own accuracy
    assert own.own_score_base == pytest.approx(0.40)
    assert own.own_score_adapter == pytest.approx(0.62)
    assert own.strict_accuracy == pytest.approx(0.62)
    placebo = cells["random", 0]  # pays by question and seed, whatever was answered
    assert placebo.own_score_adapter == placebo.own_score_base
    correctness, control = ablation.arms
    assert correctness.own_score_difference == pytest.approx((0.20 + 0.22 + 0.24) / 3)
    assert correctness.strict_seed_spread_points == pytest.approx(2.0)  # sd of 20, 22, 24
    assert (correctness.control, control.control) == (False, True)
    assert control.own_score_difference == 0.0


def test_the_ablation_shows_what_the_run_recorded(tmp_path: Path) -> None:
    from small_study import put

    from ahalab.records.base import encode_pretty
    from ahalab.records.run import Alarm

    plan, paths = write_study(tmp_path, letters(40), {("random", 0): letters(41)})
    path = paths.run("random", 0).diagnostics
    found = decode_file(path.read_bytes(), Diagnostics, str(path))
    alarms = (Alarm(name="dead_run", evidence="e", remedy="r"),)
    changed = replace(found, reward=Trend(first=0.25, last=0.75), alarms=alarms)
    put(path, encode_pretty(changed))
    cell = analyze(plan, paths)[1].cells[0]
    assert (cell.reward_first, cell.reward_last, cell.alarms) == (0.25, 0.75, ("dead_run",))
    assert analyze(plan, paths)[1].arms[0].strict_seed_spread_points is None


def test_claims_have_unique_ids_and_the_values_of_the_comparison(
    study: tuple[Comparison, Ablation, StudyPaths],
) -> None:
    comparison, ablation, paths = study
    claims = decode_file(paths.claims.read_bytes(), Claims, "claims").claims
    ids = [c.id for c in claims]
    assert len(ids) == len(set(ids))
    value = {c.id: c.value for c in claims}
    for a in comparison.arms:
        stem = f"arm.{a.arm}.{a.against}.{a.metric}"
        low, high = a.interval_points or (None, None)
        assert value[f"{stem}.difference_points"] == a.difference_points
        assert value[f"{stem}.p_holm"] == a.p_holm
        assert value[f"{stem}.verdict"] == a.verdict
        assert value[f"{stem}.sentence"] == a.sentence
        assert (value[f"{stem}.interval_low_points"], value[f"{stem}.interval_high_points"]) == (
            low,
            high,
        )
    for b in comparison.adapters:
        stem = f"adapter.{b.arm}.{b.seed}.{b.metric}"
        assert (value[f"{stem}.gained"], value[f"{stem}.lost"]) == (b.gained, b.lost)
        assert value[f"{stem}.p_exact"] == b.p_exact
    for c in ablation.arms:
        assert value[f"ablation.{c.arm}.own_score_difference"] == c.own_score_difference
    assert value["floor.changed_completions"] == 0


def test_claims_rest_on_files_that_are_there_and_control_claims_on_the_controls_answers(
    study: tuple[Comparison, Ablation, StudyPaths],
) -> None:
    _, _, paths = study
    claims = json.loads(paths.claims.read_bytes())["claims"]
    for claim in claims:
        assert all((paths.root / name).is_file() for name in claim["inputs"]), claim["id"]
    against = next(c for c in claims if c["id"] == "arm.correctness.control.strict.p_value")
    assert sum("arms/random" in name for name in against["inputs"]) == 3
    base = next(c for c in claims if c["id"] == "arm.correctness.base.strict.p_value")
    assert not any("arms/random" in name for name in base["inputs"])
