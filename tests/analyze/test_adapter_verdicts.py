"""One adapter against the base: counts by hand, p from published tables and from scipy."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import pytest
from scipy import stats
from small_study import make_answers, make_protocol, pair, put_answers, write_answers, write_study

from ahalab.analyze.compare import analyze
from ahalab.errors import IncompleteError, ProtocolError, RecordError
from ahalab.records.base import decode_file, digest_bytes
from ahalab.records.comparison import AdapterComparison, ChangedResponses
from ahalab.store.layout import StudyPaths
from ahalab.verify.detectable import midp_power


def one(root: Path, base: str, adapter: str, metric: str = "strict") -> AdapterComparison:
    plan, paths = write_study(root, base, {("random", 0): adapter})
    comparison, _ = analyze(plan, paths)
    return next(a for a in comparison.adapters if a.metric == metric)


def test_gained_lost_and_accuracies_are_those_counted_by_hand(tmp_path: Path) -> None:
    #       question  0123456789
    found = one(tmp_path, "CCFWWUTCFW", "CWCCWCCCFF")
    # strict right: base 0 1 7; adapter 0 2 3 5 6 7. Gained 2 3 5 6, lost 1.
    assert (found.base_correct, found.adapter_correct, found.n) == (3, 6, 10)
    assert (found.gained, found.lost) == (4, 1)
    assert found.difference_points == pytest.approx(30.0)


def test_the_lenient_reading_counts_a_right_value_in_any_format(tmp_path: Path) -> None:
    found = one(tmp_path, "CCFWWUTCFW", "CWCCWCCCFF", "lenient")
    # lenient right: base 0 1 2 7 8; adapter all but 1 and 4. Gained 3 5 6 9, lost 1.
    assert (found.base_correct, found.adapter_correct) == (5, 8)
    assert (found.gained, found.lost) == (4, 1)


def test_the_sentence_on_an_adapter_holds_its_counts_and_its_p(tmp_path: Path) -> None:
    found = one(tmp_path, *pair(15, 3, 200))
    # mid-p of 15 and 3: .00754 less P(X = 3) = 816 / 2^18 = .00311
    assert found.sentence.startswith(
        "This adapter (random, seed 0) is better than the base in strict accuracy: +6.0 points, "
        "15 gained, 3 lost of 200 (95 % interval +"
    )
    assert found.sentence.endswith(" over questions; p = .004).")


def test_one_adapter_among_several_is_told_with_the_p_of_the_family(tmp_path: Path) -> None:
    base, adapter = pair(15, 3, 200)
    plan, paths = write_study(
        tmp_path, base, {("random", 0): adapter, ("random", 1): adapter, ("random", 2): base}
    )
    rows = [a for a in analyze(plan, paths)[0].adapters if a.metric == "strict"]
    # Two copies of one adapter are one hypothesis: max-T asks no more of them than of one alone,
    # and the sign-flip p of 15 and 3 is the exact one, .00754.
    assert rows[0].p_max_t == rows[1].p_max_t == pytest.approx(0.00754, abs=0.006)
    assert rows[2].p_max_t is None
    assert "p = .004 alone, p = .0" in rows[0].sentence
    assert "corrected for all 3 adapters" in rows[0].sentence


def test_no_evidence_on_an_adapter_stands_beside_what_could_have_gone_unseen(
    tmp_path: Path,
) -> None:
    found = one(tmp_path, *pair(28, 34, 600))
    smallest = found.minimal_detectable_points
    assert isinstance(smallest, float)
    # power of the mid-p test there, counted by brute force (verify's own code)
    assert midp_power(smallest / 100, 62 / 600, 600, 0.05) == pytest.approx(0.8, abs=1e-3)
    assert smallest == pytest.approx(280 * math.sqrt(62) / 600, rel=0.03)  # 2.80 sqrt(psi / N)
    assert found.sentence.endswith(
        f"The smallest true change that such a comparison finds with 80 % power is about "
        f"{smallest:.1f} points: a smaller one could have gone unseen."
    )


def test_too_few_changes_to_find_anything_are_said_to_be(tmp_path: Path) -> None:
    found = one(tmp_path, *pair(1, 0, 20))
    assert found.minimal_detectable_points is None
    assert found.sentence.endswith(
        "Too few questions changed for a change of any size to be found."
    )


def test_an_adapter_better_by_the_format_alone_says_so(tmp_path: Path) -> None:
    base, adapter = "F" * 30 + "W" * 30, "C" * 30 + "W" * 30
    assert "This is a format gain: the lenient" in one(tmp_path / "s", base, adapter).sentence
    back = one(tmp_path / "l", "W" * 30 + "C" * 30, "F" * 30 + "W" * 30, "lenient")
    assert back.verdict == "no evidence"
    both = one(tmp_path / "o", "C" * 20 + "W" * 40, "F" * 60, "lenient")
    assert "accuracy went the other way" in both.sentence


PUBLISHED = [  # STATISTICS.md, digits as printed there
    (9, 6, "0.61"), (8, 6, "0.79"), (9, 10, "1.00"), (9, 3, "0.15"), (6, 2, "0.29"),
    (10, 3, "0.09"), (15, 3, "0.00754"), (16, 3, "0.00443"), (28, 29, "1.00"),
    (115, 65, "0.000239"), (28, 34, "0.53"),
]  # fmt: skip


@pytest.mark.parametrize(("gained", "lost", "printed"), PUBLISHED)
def test_exact_p_of_a_whole_study_is_the_published_one(
    tmp_path: Path, gained: int, lost: int, printed: str
) -> None:
    found = one(tmp_path, *pair(gained, lost, 200))
    assert (found.gained, found.lost) == (gained, lost)
    assert found.p_exact == pytest.approx(float(printed), abs=0.5 * 10.0 ** -(len(printed) - 2))


@pytest.mark.parametrize(("gained", "lost"), [(9, 3), (15, 3), (28, 34), (5, 0), (4, 4)])
def test_the_primary_p_is_the_mid_p_by_scipys_binomial(
    tmp_path: Path, gained: int, lost: int
) -> None:
    found = one(tmp_path, *pair(gained, lost, 120))
    law, fewer = stats.binom(gained + lost, 0.5), min(gained, lost)
    expected = min(1.0, 2 * law.cdf(fewer - 1) + law.pmf(fewer))
    if gained == lost:
        expected = 1.0
    assert found.p_value == pytest.approx(expected, rel=1e-12)


def test_without_a_changed_answer_p_is_undefined_and_the_interval_still_has_a_width(
    tmp_path: Path,
) -> None:
    found = one(tmp_path, "CCWWCCWWCC", "CCWWCCWWCC")
    assert (found.p_value, found.p_exact) == (None, None)
    assert found.verdict == "no evidence"
    # Tango's interval without a discordant pair: +-z^2 / (n + z^2), z = 1.959964.
    assert found.interval_points == pytest.approx((-27.7533, 27.7533), abs=1e-3)
    assert "p undefined" in found.sentence


def test_answers_are_paired_by_key_so_that_the_order_of_rows_does_not_matter(
    tmp_path: Path,
) -> None:
    base, adapter = pair(9, 3, 60)
    plan, paths = write_study(tmp_path, base, {("random", 0): adapter, ("random", 1): base})
    before, _ = analyze(plan, paths)
    protocol = make_protocol(plan, adapter_digest=digest_bytes(b"random0"))
    rows = make_answers(paths, adapter, protocol)
    random.Random(5).shuffle(rows)  # noqa: S311
    put_answers(plan, paths, paths.answers("random", 0), rows, protocol)
    after, _ = analyze(plan, paths)
    assert after == before


def test_the_same_answers_give_the_same_bytes(tmp_path: Path) -> None:
    base, adapter = pair(9, 3, 60)
    written = []
    for folder in ("a", "b"):
        plan, paths = write_study(
            tmp_path / folder,
            base,
            {("correctness", 0): adapter, ("random", 0): base},
            floor=base,
        )
        analyze(plan, paths)
        analyze(plan, paths)
        files = (paths.comparison, paths.changed, paths.ablation, paths.claims)
        written.append([f.read_bytes() for f in files])
    assert written[0] == written[1]


# Questions that occur twice, and several answers a question.


@pytest.mark.parametrize(("gained", "lost"), [(5, 0), (9, 3), (15, 3), (0, 0), (8, 8)])
def test_every_question_given_twice_moves_neither_p_nor_interval(
    tmp_path: Path, gained: int, lost: int
) -> None:
    base, adapter = pair(gained, lost, 40)
    texts = [f"What is {n} + 7 - {n}?" for n in range(40)]
    plan, paths = write_study(tmp_path / "once", base, {("random", 0): adapter}, questions=texts)
    twice = write_study(
        tmp_path / "twice", base * 2, {("random", 0): adapter * 2}, questions=texts * 2
    )
    single, double = analyze(plan, paths)[0].adapters[0], analyze(*twice)[0].adapters[0]
    assert double.p_value == single.p_value
    assert double.interval_points == pytest.approx(single.interval_points)
    assert double.difference_points == pytest.approx(single.difference_points)
    assert double.verdict == single.verdict
    assert "over 40 questions" in double.sentence


def test_one_repeated_question_does_not_make_a_sparse_change_significant(tmp_path: Path) -> None:
    # 5 gained, 0 lost: mid-p 2 P(X < 0) + P(X = 0) = 2^-5. A t test on 61 differences says .024.
    base, adapter = pair(5, 0, 60)
    texts = [f"What is {n} + 7 - {n}?" for n in range(60)]
    plan, paths = write_study(
        tmp_path, base + base[-1], {("random", 0): adapter + adapter[-1]},
        questions=[*texts, texts[-1]],
    )  # fmt: skip
    found = analyze(plan, paths)[0].adapters[0]
    assert found.p_value == pytest.approx(2**-5)


def test_the_same_question_in_other_letters_and_spaces_is_one_question(tmp_path: Path) -> None:
    plan, paths = write_study(
        tmp_path, "WWWWWWCC", {("random", 0): "CCCCCCWW"},
        questions=["How many?", "how  many", "HOW MANY ?", "A?", "B?", "C?", "D?", "E?"],
    )  # fmt: skip
    found = analyze(plan, paths)[0].adapters[0]
    assert "over 6 questions" in found.sentence


def test_several_answers_a_question_are_averaged_before_the_test(tmp_path: Path) -> None:
    base = ["CWWWWW", "CCWWWW"]
    adapter = ["CCCWWW", "CCCCWW"]
    plan, paths = write_study(tmp_path, base, {("random", 0): adapter})
    found = analyze(plan, paths)[0].adapters[0]
    # By hand: base means 1 .5 0 0 0 0, adapter 1 1 1 .5 0 0; d = 0 .5 1 .5 0 0.
    expected = stats.ttest_1samp([0, 0.5, 1, 0.5, 0, 0], 0.0)
    assert found.p_value == pytest.approx(expected.pvalue)
    low, high = expected.confidence_interval(0.95)
    assert found.interval_points == pytest.approx((100 * low, 100 * high))
    assert (found.n, found.base_correct, found.adapter_correct) == (6, 1.5, 3.5)
    assert (found.gained, found.lost, found.p_exact) == (None, None, None)


def test_equal_samples_on_few_questions_are_no_equivalence(tmp_path: Path) -> None:
    # Nothing differs on 4 questions: no error to estimate, which is not an error of zero.
    plan, paths = write_study(tmp_path, ["CWCW", "CCWW"], {("random", 0): ["CWCW", "CCWW"]})
    found = analyze(plan, paths)[0].adapters[0]
    assert found.verdict == "no evidence"
    assert found.interval_points[0] < -20
    assert found.interval_points[1] > 20


def test_one_question_with_several_answers_says_nothing(tmp_path: Path) -> None:
    plan, paths = write_study(tmp_path, ["W", "C"], {("random", 0): ["C", "C"]})
    found = analyze(plan, paths)[0].adapters[0]
    assert (found.verdict, found.p_value) == ("no evidence", None)
    assert found.interval_points == (-100.0, 100.0)


# Rates, floor, changed responses.


def test_truncated_and_unparsed_answers_are_counted_on_both_readings(tmp_path: Path) -> None:
    plan, paths = write_study(tmp_path, "CFWUTT", {("random", 0): "CCCCCT"})
    base, adapter = analyze(plan, paths)[0].rates
    assert base.strict == {"correct": 1, "truncated": 2, "unparsed": 2, "wrong": 1}
    assert base.lenient == {"correct": 2, "truncated": 2, "unparsed": 1, "wrong": 1}
    assert adapter.strict == {"correct": 5, "truncated": 1}
    # tokens are the bytes of the texts: 5 x "#### 7" and "First we take"
    assert adapter.mean_tokens == pytest.approx((5 * 6 + 13) / 6)


def test_the_noise_floor_counts_what_changed_between_two_runs_of_the_base(tmp_path: Path) -> None:
    plan, paths = write_study(tmp_path, "CFWUTC", {("random", 0): "CCCCCC"}, floor="CCWUTF")
    floor = analyze(plan, paths)[0].floor
    assert floor is not None
    assert (floor.n, floor.changed_completions) == (6, 2)
    assert (floor.strict_gained, floor.strict_lost) == (1, 1)
    assert (floor.lenient_gained, floor.lenient_lost) == (0, 0)
    assert "changed 2 of 6 completions, 2 strict and 0 lenient outcomes" in floor.sentence


def test_a_base_that_repeats_itself_has_a_floor_of_zero(tmp_path: Path) -> None:
    plan, paths = write_study(tmp_path, "CFWUTC", {("random", 0): "CCCCCC"}, floor="CFWUTC")
    floor = analyze(plan, paths)[0].floor
    assert floor is not None
    assert "the same 6 completions: the noise floor of this protocol is 0" in floor.sentence


def test_changed_responses_say_what_stood_in_the_way(tmp_path: Path) -> None:
    #                                      gained: F W U T; lost: W F
    plan, paths = write_study(tmp_path, "FWUTCCC", {("random", 0): "CCCCWFC"})
    analyze(plan, paths)
    changed = decode_file(paths.changed.read_bytes(), ChangedResponses, "changed").changed
    strict = [(c.change, c.kind) for c in changed if c.metric == "strict"]
    assert strict == [
        ("gained", "format"), ("gained", "arithmetic"), ("gained", "extraction"),
        ("gained", "truncated"), ("lost", "arithmetic"), ("lost", "format"),
    ]  # fmt: skip
    lenient = [(c.change, c.kind) for c in changed if c.metric == "lenient"]
    assert lenient == [
        ("gained", "arithmetic"), ("gained", "extraction"), ("gained", "truncated"),
        ("lost", "arithmetic"),
    ]  # fmt: skip
    assert changed[0].base_completion == "The answer is 7."
    assert (changed[0].base_outcome, changed[0].adapter_outcome) == ("unparsed", "correct")
    assert (changed[0].base_rule, changed[0].adapter_rule) == ("statement", "hashes")


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ((1, 2, 3), (1, 2, 4), 2),
        ((1, 2, 3), (9, 2, 3), 0),
        ((1, 2), (1, 2, 3), 2),
        ((1, 2, 3), (), 0),
        ((1, 2, 3), (1, 2, 3), None),
        (None, (1, 2), None),
    ],
)
def test_two_completions_part_at_their_first_different_token(
    ours: tuple[int, ...] | None, theirs: tuple[int, ...], expected: int | None
) -> None:
    from ahalab.analyze.changed import parted_at

    assert parted_at(ours, theirs) == expected
    assert parted_at(theirs, ours) == expected


# What must not be compared.


def two_protocols(root: Path, **changes: object) -> tuple[object, StudyPaths]:
    plan, paths = write_study(root, "CCWW", {("random", 0): "CCCW"})
    protocol = make_protocol(plan, adapter_digest=digest_bytes(b"random0"), **changes)
    write_answers(plan, paths, paths.answers("random", 0), "CCCW", protocol)
    return plan, paths


def test_protocols_that_differ_are_refused_and_every_field_is_named(tmp_path: Path) -> None:
    generation = {"do_sample": False, "max_new_tokens": 17}
    plan, paths = two_protocols(
        tmp_path, dtype="bfloat16", generation=generation, versions={"torch": "2.14.0"}
    )
    with pytest.raises(ProtocolError) as fault:
        analyze(plan, paths)  # type: ignore[arg-type]
    told = str(fault.value)
    assert "dtype: 'float32' and 'bfloat16'" in told
    assert "generation.max_new_tokens: 16 and 17" in told
    assert "versions.torch: '2.13.0' and '2.14.0'" in told
    assert "do_sample" not in told
    assert "adapter_digest" not in told


def test_a_floor_may_differ_in_its_batch_and_in_nothing_else(tmp_path: Path) -> None:
    plan, paths = write_study(tmp_path, "CCWW", {("random", 0): "CCCW"}, floor="CCWW")
    protocol = make_protocol(plan, batch_size=48, dtype="bfloat16")
    write_answers(plan, paths, paths.floor_answers, "CCWW", protocol)
    with pytest.raises(ProtocolError, match="dtype: 'float32' and 'bfloat16'") as fault:
        analyze(plan, paths)
    assert "batch_size" not in str(fault.value)


def test_a_plan_edited_after_the_answers_is_refused(tmp_path: Path) -> None:
    from msgspec.structs import replace

    plan, paths = write_study(tmp_path, "CCWW", {("random", 0): "CCCW"})
    wider = replace(plan, analysis=replace(plan.analysis, margin_points=30.0))
    with pytest.raises(ProtocolError, match="A plan is fixed before the first answer"):
        analyze(wider, paths)


def test_a_row_made_under_another_protocol_is_named_by_line(tmp_path: Path) -> None:
    from msgspec.structs import replace

    plan, paths = write_study(tmp_path, "CCWW", {("random", 0): "CCCW"})
    protocol = make_protocol(plan, adapter_digest=digest_bytes(b"random0"))
    rows = make_answers(paths, "CCCW", protocol)
    rows[2] = replace(rows[2], protocol=digest_bytes(b"another"))
    put_answers(plan, paths, paths.answers("random", 0), rows, protocol)
    with pytest.raises(ProtocolError, match=r"answers\.jsonl:3: expected an answer under"):
        analyze(plan, paths)


def test_a_missing_answer_is_named(tmp_path: Path) -> None:
    plan, paths = write_study(tmp_path, "CCWW", {("random", 0): "CCCW"})
    protocol = make_protocol(plan, adapter_digest=digest_bytes(b"random0"))
    rows = make_answers(paths, "CCCW", protocol)
    put_answers(plan, paths, paths.answers("random", 0), rows[:1] + rows[2:], protocol)
    with pytest.raises(RecordError, match=r"expected 4 answers, found 3; missing: .'00001-"):
        analyze(plan, paths)


def test_an_answer_given_twice_is_named_by_line(tmp_path: Path) -> None:
    plan, paths = write_study(tmp_path, "CCWW", {("random", 0): "CCCW"})
    protocol = make_protocol(plan, adapter_digest=digest_bytes(b"random0"))
    rows = make_answers(paths, "CCCW", protocol)
    put_answers(plan, paths, paths.answers("random", 0), [*rows, rows[0]], protocol)
    with pytest.raises(RecordError, match=r"answers\.jsonl:5: answer .* stands there twice"):
        analyze(plan, paths)


def test_a_lost_protocol_or_diagnostics_file_is_an_error_without_traceback(tmp_path: Path) -> None:
    plan, paths = write_study(tmp_path, "CCWW", {("random", 0): "CCCW"})
    paths.run("random", 0).diagnostics.unlink()
    with pytest.raises(RecordError, match=r"diagnostics\.json: expected a record"):
        analyze(plan, paths)
    paths.base_answers().protocol.unlink()
    with pytest.raises(RecordError, match=r"answers\.protocol\.json: expected a record"):
        analyze(plan, paths)


def test_nothing_to_compare_is_incomplete_and_says_what_to_run(tmp_path: Path) -> None:
    plan, paths = write_study(tmp_path, "CCWW", {}, unfinished=[("random", 0)])
    with pytest.raises(IncompleteError, match=r"no adapter has answers yet\. Run: ahalab evaluate"):
        analyze(plan, paths)


def test_an_answer_file_still_being_written_is_a_missing_cell(tmp_path: Path) -> None:
    plan, paths = write_study(tmp_path, "CCWW", {("random", 0): "CCCW", ("random", 1): "CCCW"})
    journal = paths.answers("random", 1).answers.with_name("answers.journal.jsonl")
    lines = journal.read_bytes().split(b"\n")
    assert json.loads(lines[-2])["kind"] == "seal"
    journal.write_bytes(b"\n".join(lines[:-2]) + b"\n")
    comparison, _ = analyze(plan, paths)
    assert comparison.missing == ("arms/random/seed-1",)
