"""What must hold of every response, whatever it says."""

from __future__ import annotations

from fractions import Fraction
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from ahalab.scoring.answers import Asked, score_answer
from ahalab.scoring.components import COMPONENTS, make_response
from ahalab.scoring.numbers import read_number

FORMS = [
    "{b} + {c} = {a}\n#### {a}", "So it is {a} in all.", "The answer is {a}.", "Answer: {a}",
    "{b} apples. So \\boxed{{{a}}}", "<think>{b}</think><answer>{a}</answer>", "A: {a}", "x = {a}",
    "**Final Answer:** **{a}**", "{b} + {c} = {b}. wait, {b} + {c} = {a}.\n#### {a}",
]  # fmt: skip
PROBES = [
    "", "18", "#### 18", "The answer is 18 or 20.", "So it is 18.", "\\boxed{18}", "wait", "= 18",
]  # fmt: skip

unhurried = settings(deadline=None)  # the machine is shared; time is test_hostile's matter
values = st.integers(-(10**12), 10**12)
forms = st.sampled_from(FORMS)
anything = st.one_of(
    st.text(max_size=300), st.lists(st.sampled_from(PROBES), max_size=5).map(" ".join)
)


def _state(form: str, value: int) -> str:
    return form.format(a=value, b=3, c=4)


@unhurried
@given(forms, values)
def test_a_stated_value_is_correct_for_its_own_gold(form: str, value: int) -> None:
    assert score_answer(_state(form, value), str(value)).lenient.outcome == "correct"


@unhurried
@given(forms, values, values)
def test_another_value_is_never_correct(form: str, value: int, gold: int) -> None:
    expected = "correct" if value == gold else "wrong"
    score = score_answer(_state(form, value), str(gold))
    assert score.lenient.outcome == expected
    assert score.strict.outcome in (expected, "unparsed")


@unhurried
@given(forms, values)
def test_formatting_that_carries_no_value_does_not_change_the_outcome(
    form: str, value: int
) -> None:
    written = [f"{value:,}", f"${value}", f"{value}.00", f"**{value}**", f"\\${value}",
               str(value).replace("-", "\u2212"), f"{value}%", f"`{value}`"]  # fmt: skip
    for text in written:
        response = form.format(a=text, b=3, c=4)
        assert score_answer(response, str(value)).lenient.outcome == "correct", response


@unhurried
@given(anything, st.text(alphabet=" \t\n", max_size=20), st.sampled_from(["18", "20", "1/2"]))
def test_trailing_white_space_does_not_change_the_outcome(text: str, space: str, gold: str) -> None:
    plain, padded = score_answer(text, gold), score_answer(text + space, gold)
    assert padded.strict.outcome == plain.strict.outcome
    assert padded.lenient.outcome == plain.lenient.outcome


@unhurried
@given(anything, st.sampled_from(["eos", "stop", "length"]), st.sampled_from(["gsm8k", "math"]))
def test_any_text_has_an_outcome_and_a_span_that_points_at_what_was_extracted(
    text: str, finish: str, task: str
) -> None:
    score = score_answer(text, "18", finish, Asked(task=task))  # type: ignore[arg-type]
    for reading in (score.strict, score.lenient):
        assert reading.outcome in ("correct", "wrong", "unparsed", "truncated", "error")
        if reading.span is not None:
            assert reading.extracted == text[slice(*reading.span)][:1_000]
        assert (reading.span is None) == (reading.extracted is None)


@unhurried
@given(anything)
def test_a_strict_correct_answer_is_also_correct_leniently(text: str) -> None:
    score = score_answer(text, "18")
    assert score.strict.outcome != "correct" or score.lenient.outcome == "correct"


@unhurried
@given(st.integers(-(10**30), 10**30), st.integers(0, 6))
def test_a_decimal_is_read_without_any_rounding(digits: int, places: int) -> None:
    value = Fraction(digits, 10**places)
    whole, rest = divmod(abs(digits), 10**places)
    written = f"{'-' if digits < 0 else ''}{whole}" + (f".{rest:0{places}}" if places else "")
    number = read_number(written)
    assert number is not None
    assert number.value == value


@unhurried
@given(st.integers(-(10**6), 10**6), st.integers(1, 10**6))
def test_a_fraction_is_read_exactly_in_either_notation(above: int, below: int) -> None:
    for written in (f"{above}/{below}", f"\\frac{{{above}}}{{{below}}}"):
        score = score_answer(f"\\boxed{{{written}}}", f"{above}/{below}")
        assert score.lenient.outcome == "correct"


@unhurried
@given(
    st.lists(st.tuples(anything, st.sampled_from(["18", "20", "1/2"])), max_size=8), st.randoms()
)
def test_the_order_of_rows_changes_no_outcome(rows: list[tuple[str, str]], random: Random) -> None:
    shuffled = list(range(len(rows)))
    random.shuffle(shuffled)
    in_order = [score_answer(text, gold) for text, gold in rows]
    assert [score_answer(*rows[at]) for at in shuffled] == [in_order[at] for at in shuffled]
    batch = [make_response(completion=text, gold=gold) for text, gold in rows]
    paid = COMPONENTS["correct_lenient"](batch)
    assert COMPONENTS["correct_lenient"]([batch[at] for at in shuffled]) == [
        paid[at] for at in shuffled
    ]


@unhurried
@given(
    st.sampled_from(["#### {}", "\\boxed{{{}}}", "<answer>{}</answer>", "Answer: {}"]),
    values,
    values,
)
def test_a_hedge_of_two_values_is_never_correct(form: str, one: int, other: int) -> None:
    outcome = score_answer(form.format(f"{one} or {other}"), str(one)).lenient.outcome
    assert outcome == ("correct" if one == other else "unparsed")
