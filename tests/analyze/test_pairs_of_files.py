"""Two files of answers, with and without what lies beside them in a study."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import zstandard
from small_study import make_answers, make_protocol, pair, put_answers, write_study

from ahalab.analyze.pair import Rules, compare_files
from ahalab.analyze.pair_sentences import ONE_PAIR
from ahalab.errors import AhaLabError, IncompleteError, InputError, ProtocolError, RecordError
from ahalab.plan.load import load_plan
from ahalab.records.base import encode_pretty
from ahalab.records.pair import PairComparison
from ahalab.statistics.paired import mcnemar_exact, mcnemar_midp
from ahalab.statistics.tango import tango_interval
from ahalab.store.layout import AnswerPaths, StudyPaths

LETTERS = {"C": ("correct", "correct"), "W": ("wrong", "wrong"), "F": ("unparsed", "correct"),
           "T": ("truncated", "truncated")}  # fmt: skip


def scores(path: Path, letters: str, sample: int = 0, turned: int | None = None) -> Path:
    """Write rows as `ahalab score` prints them, one per letter."""
    rows = []
    for number, letter in enumerate(letters):
        strict, lenient = LETTERS[letter]
        row = {"id": f"q{number}", "sample": sample, "strict": strict, "lenient": lenient}
        rows.append(json.dumps(row))
    if turned is not None:
        rows = [*rows[turned:], *rows[:turned]][::-1]
    with path.open("a") as file:
        file.writelines(f"{row}\n" for row in rows)
    return path


def compared(folder: Path, base: str, adapter: str, **rules: object) -> PairComparison:
    first, second = scores(folder / "a.jsonl", base), scores(folder / "b.jsonl", adapter)
    return compare_files(first, second, Rules(**rules))  # type: ignore[arg-type]


@pytest.fixture
def study(tmp_path: Path) -> tuple[Path, Path]:
    """Base and adapter answers of a study: 4 gained, 1 lost of 40."""
    base, adapter = pair(4, 1, 40)
    _, paths = write_study(tmp_path / "s", base, {("format_only", 0): adapter})
    return paths.base_answers().answers, paths.answers("format_only", 0).answers


def test_two_files_of_a_study_give_its_counts_and_tests(study: tuple[Path, Path]) -> None:
    found = compare_files(*study, Rules())
    strict = found.strict
    assert (strict.n, strict.gained, strict.lost) == (40, 4, 1)
    assert (strict.base_correct, strict.adapter_correct) == (18, 21)
    assert strict.difference_points == pytest.approx(7.5)
    assert strict.p_value == mcnemar_midp(4, 1)
    assert (strict.p_exact, strict.p_sign_flip) == (mcnemar_exact(4, 1), None)
    bounds = tango_interval(4, 1, 40)
    assert strict.interval_points == (100 * bounds.low, 100 * bounds.high)
    assert (found.protocol, found.notes) == ("same", (ONE_PAIR,))


def test_rows_pair_by_key_in_any_order(tmp_path: Path) -> None:
    base, adapter = pair(9, 2, 60)
    first = scores(tmp_path / "a.jsonl", base)
    straight = compare_files(first, scores(tmp_path / "b.jsonl", adapter), Rules())
    other = scores(tmp_path / "c.jsonl", adapter, turned=17)
    elsewhere = compare_files(first, other, Rules())
    assert elsewhere.strict == straight.strict
    assert (elsewhere.strict.gained, elsewhere.strict.lost) == (9, 2)


def test_a_compressed_file_reads_as_the_plain_one(study: tuple[Path, Path]) -> None:
    plain = compare_files(*study, Rules())
    for path in study:
        packed = zstandard.ZstdCompressor().compress(path.read_bytes())
        path.with_name(path.name + ".zst").write_bytes(packed)
    with pytest.raises(InputError, match=r"found answers.jsonl beside it"):
        compare_files(study[0].with_name("answers.jsonl.zst"), study[1], Rules())
    for path in study:
        path.unlink()
    named = [path.with_name(path.name + ".zst") for path in study]
    assert compare_files(named[0], named[1], Rules()).strict == plain.strict
    assert compare_files(*study, Rules()).strict == plain.strict


def test_a_doubled_file_under_new_keys_moves_nothing(tmp_path: Path) -> None:
    base, adapter = pair(14, 4, 80)
    texts = [f"What is {n} and 7?" for n in range(80)]
    once = write_study(tmp_path / "one", base, {("random", 0): adapter}, questions=texts)[1]
    twice = write_study(
        tmp_path / "two", base * 2, {("random", 0): adapter * 2}, questions=texts * 2
    )[1]
    single, doubled = (
        compare_files(p.base_answers().answers, p.answers("random", 0).answers, Rules())
        for p in (once, twice)
    )
    assert doubled.answers == 2 * single.answers
    assert doubled.strict.p_value == single.strict.p_value
    for field in ("n", "gained", "lost", "interval_points", "verdict", "base_correct", "sentence"):
        assert getattr(doubled.strict, field) == getattr(single.strict, field)
    assert "160 prompts ask 80 different questions; each question counts once." in doubled.notes


def test_several_answers_are_judged_by_question(tmp_path: Path) -> None:
    sides = {"a": ["CWCWWWCC", "CWWWWWCC"], "b": ["CCCCWWCW", "CCCWWCCC"]}
    for name, lines in sides.items():
        for sample, letters in enumerate(lines):
            scores(tmp_path / f"{name}.jsonl", letters, sample)
    found = compare_files(tmp_path / "a.jsonl", tmp_path / "b.jsonl", Rules())
    assert (found.answers, found.samples, found.strict.n) == (16, 2, 8)
    # d = 0, 1, .5, .5, 0, .5, 0, -.5: mean .25, sd .4629
    assert found.strict.difference_points == pytest.approx(25.0)
    assert found.strict.base_correct == pytest.approx(3.5)
    assert (found.strict.gained, found.strict.p_exact) == (None, None)
    assert found.strict.p_value == pytest.approx(0.1705, abs=1e-4)  # t = 1.5275, 7 degrees
    assert "p = .170 by question" in found.strict.sentence
    # Of the 32 signs of 1, .5, .5, .5, .5 ten give a sum of at least 2 in size.
    assert found.strict.p_sign_flip == pytest.approx(10 / 32, abs=0.02)


def test_a_null_reads_as_one_and_says_what_it_could_not_see(tmp_path: Path) -> None:
    strict = compared(tmp_path, *pair(28, 34, 1319)).strict
    assert strict.verdict == "no evidence"
    assert strict.p_exact == pytest.approx(0.5258, abs=5e-5)
    assert strict.sentence.startswith("strict: no evidence that these answers of A and B differ")
    assert strict.sentence.endswith(
        "28 gained, 34 lost. The smallest true change that such a comparison finds with 80 % "
        "power is about 1.7 points: a smaller one could have gone unseen."
    )


def test_no_sentence_speaks_of_a_reward(tmp_path: Path) -> None:
    found = compared(tmp_path, *pair(40, 5, 300))
    told = [found.strict.sentence, found.lenient.sentence, *found.notes]
    assert found.strict.verdict == "improved"
    assert "these answers of B are right more often than those of A" in told[0]
    assert not any("reward" in text for text in told)


def test_a_worse_file_is_called_worse(tmp_path: Path) -> None:
    strict = compared(tmp_path, *pair(5, 40, 300)).strict
    assert strict.verdict == "worse"
    assert "right less often" in strict.sentence


def test_only_a_margin_makes_two_files_equal(tmp_path: Path) -> None:
    letters = pair(3, 3, 1000)
    assert compared(tmp_path, *letters).strict.verdict == "no evidence"
    equal = compare_files(tmp_path / "a.jsonl", tmp_path / "b.jsonl", Rules(margin_points=2.0))
    assert equal.strict.verdict == "equivalent"
    assert "right equally often to within 2 points" in equal.strict.sentence


def test_a_gain_in_form_alone_is_called_one(tmp_path: Path) -> None:
    found = compared(tmp_path, "F" * 30 + "W" * 70, "C" * 30 + "W" * 70)
    assert (found.strict.verdict, found.lenient.verdict) == ("improved", "no evidence")
    assert found.strict.notes == ("format gain",)
    assert "This is a format gain: the lenient reading" in found.strict.sentence


def test_a_change_that_the_lenient_reading_alone_shows_says_so(tmp_path: Path) -> None:
    lenient = compared(tmp_path, "W" * 30 + "C" * 70, "F" * 30 + "C" * 70).lenient
    assert (lenient.verdict, lenient.notes) == ("improved", ("lenient alone",))
    assert "by the lenient reading alone" in lenient.sentence


def test_cut_answers_are_told_of(tmp_path: Path) -> None:
    found = compared(tmp_path, "T" * 20 + "C" * 80, "C" * 100)
    assert any(note.startswith("Cut by the token limit") for note in found.notes)
    assert "20% of A, 0% of B" in " ".join(found.notes)
    assert found.strict.base_outcomes == {"correct": 80, "truncated": 20}


def test_files_alone_say_that_their_protocol_is_unknown(tmp_path: Path) -> None:
    found = compared(tmp_path, "CW", "CC")
    assert found.protocol == "unknown"
    assert found.notes[0].startswith("No protocol beside ")


def test_other_protocols_are_refused_unless_allowed(
    study: tuple[Path, Path], tmp_path: Path
) -> None:
    base, adapter = study
    paths = StudyPaths(tmp_path / "s")
    plan = load_plan(paths.plan)
    other = make_protocol(
        plan,
        adapter_digest="sha256:1",
        dtype="bfloat16",
        generation={"do_sample": False, "max_new_tokens": 32},
    )
    target = AnswerPaths(adapter, "arms/format_only/seed-0/answers")
    put_answers(plan, paths, target, make_answers(paths, pair(4, 1, 40)[1], other), other)
    with pytest.raises(ProtocolError) as refused:
        compare_files(base, adapter, Rules())
    assert "dtype: 'float32' and 'bfloat16'" in str(refused.value)
    assert "ahalab compare A B --allow dtype --allow generation" in str(refused.value)
    assert "generation.max_new_tokens: 16 and 32" in str(refused.value)
    with pytest.raises(ProtocolError, match=r"different generation\.max_new_tokens"):
        compare_files(base, adapter, Rules(), ["dtype"])
    found = compare_files(base, adapter, Rules(), ["dtype", "generation.max_new_tokens"])
    assert found.protocol == "allowed to differ"
    assert [pair_.field for pair_ in found.allowed] == ["dtype", "generation.max_new_tokens"]
    assert "dtype (float32 and bfloat16)" in found.notes[0]
    with pytest.raises(InputError, match=r"found 'dtpe'\. Did you mean dtype"):
        compare_files(base, adapter, Rules(), ["dtpe"])


def test_two_plans_are_an_exception_and_two_sets_of_questions_are_none(
    study: tuple[Path, Path], tmp_path: Path
) -> None:
    paths = StudyPaths(tmp_path / "s")
    plan = load_plan(paths.plan)
    target = AnswerPaths(study[1], "arms/format_only/seed-0/answers")
    for field in ("plan_digest", "prompts_digest"):
        other = make_protocol(plan, adapter_digest="sha256:1", **{field: "sha256:2"})
        put_answers(plan, paths, target, make_answers(paths, pair(4, 1, 40)[1], other), other)
        with pytest.raises(ProtocolError, match=f"different {field}"):
            compare_files(*study, Rules())
        if field == "plan_digest":
            assert compare_files(*study, Rules(), [field]).allowed[0].found == "sha256:2"
        else:
            with pytest.raises(InputError, match="without which equal there is nothing"):
                compare_files(*study, Rules(), [field])


def test_a_protocol_that_is_not_that_of_the_rows_is_refused(
    study: tuple[Path, Path], tmp_path: Path
) -> None:
    plan = load_plan(StudyPaths(tmp_path / "s").plan)
    beside = study[0].with_name("answers.protocol.json")
    beside.write_bytes(encode_pretty(make_protocol(plan, batch_size=7)))
    with pytest.raises(ProtocolError, match=r"answers\.jsonl:1: expected an answer under"):
        compare_files(*study, Rules())


def test_swapped_files_and_twice_the_same_weights_are_noticed(study: tuple[Path, Path]) -> None:
    swapped = compare_files(study[1], study[0], Rules())
    assert "A holds answers of an adapter and B those of the base" in swapped.notes[0]
    assert swapped.strict.gained == 1
    same = compare_files(study[0], study[0], Rules())
    assert "Both files were made by the same weights." in same.notes
    assert (same.strict.p_value, same.strict.verdict) == (None, "no evidence")
    assert same.strict.sentence.endswith("Not one question changed, so there is nothing to test.")


def test_an_evaluation_that_goes_on_is_not_compared(study: tuple[Path, Path]) -> None:
    journal = study[1].with_name("answers.journal.jsonl")
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:-1]))  # without its seal
    with pytest.raises(IncompleteError, match="found 40 of an evaluation that goes on"):
        compare_files(*study, Rules())


@pytest.mark.parametrize("shorter", ["a", "b"])
def test_answers_in_one_file_only_are_named(tmp_path: Path, shorter: str) -> None:
    lengths = {"a": 9, "b": 9} | {shorter: 4}
    files = [scores(tmp_path / f"{name}.jsonl", "C" * count) for name, count in lengths.items()]
    with pytest.raises(InputError) as refused:
        compare_files(files[0], files[1], Rules())
    assert str(refused.value).startswith(str(tmp_path / f"{shorter}.jsonl"))
    assert "found none to 'q4', 'q5', 'q6' and 2 more" in str(refused.value)


def test_an_uneven_number_of_answers_is_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        scores(tmp_path / f"{name}.jsonl", "CWC")
        scores(tmp_path / f"{name}.jsonl", "CW", sample=1)
    with pytest.raises(InputError, match="found 2 to 'q0' and 1 to 'q2'"):
        compare_files(tmp_path / "a.jsonl", tmp_path / "b.jsonl", Rules())


def test_other_questions_at_the_same_places_do_not_pair(tmp_path: Path) -> None:
    letters = pair(2, 1, 6)
    texts = [f"How much is {n}?" for n in range(6)]
    one = write_study(tmp_path / "one", letters[0], {("random", 0): letters[1]})[1]
    adapters = {("random", 0): letters[1]}
    two = write_study(tmp_path / "two", letters[0], adapters, questions=texts)[1]
    with pytest.raises(InputError, match="expected an answer to each of the 6"):
        compare_files(one.base_answers().answers, two.base_answers().answers, Rules())


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('{"id": 1, "strict": NaN, "lenient": "wrong"}', "NaN, which is not JSON"),
        ('{"id": 1, "strict": "wrong", "lenient": "wrong", "score": 1}', "unknown field `score`"),
        ('{"id": 1, "strict": "wrong", "strict": "correct", "lenient": "wrong"}', "a key twice"),
        ('{"strict": "wrong", "lenient": "wrong"}', "missing required field `id`"),
        ('{"id": null, "strict": "wrong", "lenient": "wrong"}', "Expected `int | str`"),
        ('{"id": 1, "strict": "right", "lenient": "wrong"}', "Invalid enum value 'right'"),
        ('{"id": 1, "strict": true, "lenient": true}', "Expected `str`, got `bool`"),
        ('{"id": "q0", "strict": "wrong", "lenient": "wrong"}', "found sample 0 of 'q0' again"),
        ("", "Expecting value"),
        ("[1, 2]", "Expected `object`, got `array`"),
        ("[" * 100_000, "expected a row"),
        ("\xff", "expected a row"),
    ],
)
def test_a_row_that_is_none_is_refused_with_its_line(tmp_path: Path, line: str, told: str) -> None:
    good = scores(tmp_path / "a.jsonl", "CW")
    bad = scores(tmp_path / "b.jsonl", "CW")
    with bad.open("ab") as file:
        file.write(line.encode("latin-1") + b"\n")
    with pytest.raises(RecordError) as refused:
        compare_files(good, bad, Rules())
    assert str(refused.value).startswith(f"{bad}:3: ")
    assert told in str(refused.value)


def test_a_file_that_is_not_there_or_empty_is_refused(tmp_path: Path) -> None:
    good = scores(tmp_path / "a.jsonl", "CW")
    (tmp_path / "empty.jsonl").write_bytes(b"")
    for name in ("none.jsonl", "none.jsonl.zst", "empty.jsonl", "."):
        with pytest.raises(AhaLabError, match="expected"):
            compare_files(good, tmp_path / name, Rules())
