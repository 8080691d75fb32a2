"""What must hold of every reward component, on whatever text."""

from __future__ import annotations

import math
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ahalab.scoring.answers import Asked, Reading, Score
from ahalab.scoring.components import COMPONENTS, Origin, Response, make_response

# What docs/arms.md says; a component without a range here fails the first test.
RANGES = {
    "correct_strict": (0.0, 1.0),
    "correct_lenient": (0.0, 1.0),
    "historical_correct": (0.0, 1.0),
    "format": (0.0, 1.0),
    "format_gated": (0.0, 1.0),
    "length": (0.0, 1.0),
    "length_cosine": (-1.0, 1.0),
    "repetition": (-1.0, 0.0),
    "reflection": (0.0, 1.0),
    "self_correction": (0.0, 1.0),
    "partial_credit": (0.0, 1.0),
    "correct_steps": (0.0, 1.0),
    "random": (0.0, 1.0),
    "constant": (1.0, 1.0),
}
GOLDS = {
    "gsm8k": ["22", "-3", "0", "1/3", "0.333", "1,200", "nan", ""],
    "math": ["22", r"\frac{7}{12}", r"2\sqrt{3}", "(1, 2]", "x", "50\\%", "9^{9^9}"],
    "countdown": ['{"numbers": [14, 8], "target": 22}', "22"],
}
PIECES = [
    "14 + 8 = 22. ", "14 + 8 = 23. ", "22 * 3 = 66\n", "wait, ", "#### 22", "#### 21", "#### ",
    "\n", r"\boxed{22}", r"\boxed{\frac{7}{12}}", "<answer>14 + 8</answer>", "<think>", "</think>",
    "The answer is 22.", "18 or 22", "1/0 = 3 ", "9**9**9 ", "9" * 60, "-", "=", "(", ")", "\0",
    "\ud800", "\u202e", "٢٢", "２２", "0.1", "50% of 14 = 7. ", "no, it is 22. ", "Question: ",
    "\\frac{1}{0}", "1e400", "so " * 60,
]  # fmt: skip
SECONDS = 8.0  # on a shared machine; what is not linear takes minutes

texts = st.one_of(
    st.text(max_size=200), st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
)
unhurried = settings(deadline=None, max_examples=150)


@st.composite
def rows(draw: st.DrawFn) -> Response:
    task = draw(st.sampled_from(sorted(GOLDS)))
    return make_response(
        completion=draw(texts),
        gold=draw(st.sampled_from(GOLDS[task])),
        finish=draw(st.sampled_from(["eos", "stop", "length"])),
        origin=Origin(
            draw(st.text(max_size=5)),
            draw(st.integers(0, 9)),
            draw(st.integers(0, 7)),
            draw(st.integers(0, 3)),
        ),
        asked=Asked(
            draw(st.sampled_from(["hashes", "boxed", "answer_tag"])),
            task,
            draw(st.sampled_from([None, "", "Tom has 14 apples, buys 8, and sells each for $3."])),
        ),
    )


batches = st.lists(rows(), max_size=5)
components = st.sampled_from(sorted(COMPONENTS))


def test_every_component_has_a_range() -> None:
    assert set(RANGES) == set(COMPONENTS)


@unhurried
@given(components, batches)
def test_every_value_is_within_its_range_and_none_comes_with_a_reason(
    name: str, batch: list[Response]
) -> None:
    low, high = RANGES[name]
    paid = COMPONENTS[name](batch)
    assert len(paid) == len(batch)
    for value in paid:
        assert value.status
        if value.value is None:
            assert value.status.startswith("error")
        else:
            assert type(value.value) is float
            assert math.isfinite(value.value)
            assert low <= value.value <= high
            assert math.copysign(1, value.value) == 1 or value.value < 0, "minus zero"


@unhurried
@given(components, batches, st.data())
def test_a_row_earns_the_same_in_any_order_and_in_any_split(
    name: str, batch: list[Response], data: st.DataObject
) -> None:
    component = COMPONENTS[name]
    paid = component(batch)
    assert component(batch) == paid
    order = data.draw(st.permutations(range(len(batch))))
    assert component([batch[at] for at in order]) == [paid[at] for at in order]
    cut = data.draw(st.integers(0, len(batch)))
    assert component(batch[:cut]) + component(batch[cut:]) == paid


@unhurried
@given(texts, st.text(alphabet=" \t\n", max_size=9))
def test_trailing_white_space_changes_no_step(text: str, space: str) -> None:
    asked = Asked(prompt="Tom has 14 apples, buys 8, and sells each for $3.")
    batch = [make_response(completion=t, gold="22", asked=asked) for t in (text, text + space)]
    plain, padded = COMPONENTS["correct_steps"](batch)
    assert plain == padded


@pytest.mark.parametrize(
    "piece",
    ["wait ", "12 wait 13 ", "1+1=3 wait 1+1=2 ", "no, 1 ", "14+8=22 ", "1+1=", "1 ", "9", "hm",
     "(", "\n", "<answer>", "#### 22\n", "\\boxed{", "é１＝", "\ud800", "**", "=", "50% of ",
     "a b c d "],
)  # fmt: skip
def test_four_megabytes_cost_every_component_bounded_time(piece: str) -> None:
    """The parsers are left out: what scoring costs is a matter of test_hostile."""
    text = piece * (4_000_000 // len(piece))
    right = Reading("correct", "22", (0, 2), "hashes", "ok")
    response = Response(
        text, "22", "eos", Origin("p"), Asked(prompt=text), Score(right, right), "correct"
    )
    for component in COMPONENTS.values():
        started = time.perf_counter()
        component([response])
        assert time.perf_counter() - started < SECONDS
