"""A scorer that is spoilt on purpose is caught: each mutation changes outcomes that are known."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.scoring.test_families import ROWS, disagreeing

from ahalab.scoring import answers, commitment, equality, latex, naming, numbers, text
from ahalab.scoring.answers import Asked, score_answer
from ahalab.scoring.commitment import Commitment
from ahalab.scoring.numbers import Number
from ahalab.scoring.statements import Statement
from ahalab.scoring.text import View

SIGNED = [
    ("#### -7", "-7", "correct"), ("#### 7", "-7", "wrong"), ("#### \u22125", "-5", "correct"),
    ("The answer is -7.", "7", "wrong"), ("\\boxed{-\\frac{1}{2}}", "-1/2", "correct"),
]  # fmt: skip
SEPARATED = [
    ("#### 1,234", "1234", "correct"), ("#### $12,345.50", "12345.5", "correct"),
    ("\\boxed{12{,}400}", "12400", "correct"), ("#### 1 234 567", "1234567", "correct"),
    ("#### 1.234,50", "1234.5", "correct"), ("#### 1,2,3", "123", "unparsed"),
]  # fmt: skip
MARKED = [
    ("First \\boxed{30}. Wait, I forgot one; it is \\boxed{36}.", "36", "correct"),
    ("First \\boxed{30}. Wait, I forgot one; it is \\boxed{36}.", "30", "wrong"),
    ("#### 42\nWait, the answer is 43.", "43", "correct"),
    ("<answer>5</answer> Let me redo it. <answer>12</answer>", "12", "correct"),
    ("The answer is 22. It turns out that the answer is 23.", "23", "correct"),
]


def outcomes(cases: Sequence[tuple[str, str, str]]) -> list[str]:
    return [score_answer(response, gold).lenient.outcome for response, gold, _ in cases]


def forget() -> None:
    """Empty the caches: what was read before a mutation must not hide it."""
    for cached in (numbers.read_gold, equality.read_math_gold, naming.normal, text.clean_gold):
        cached.cache_clear()


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    forget()
    yield
    forget()


def spoilt(cases: Sequence[tuple[str, str, str]]) -> int:
    """Count the known outcomes that changed."""
    forget()
    return sum(found != known for found, (_, _, known) in zip(outcomes(cases), cases, strict=True))


@pytest.mark.parametrize("cases", [SIGNED, SEPARATED, MARKED])
def test_the_unspoilt_scorer_gives_every_known_outcome(cases: list[tuple[str, str, str]]) -> None:
    assert outcomes(cases) == [known for _, _, known in cases]


def test_taking_the_first_marker_for_the_last_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real = commitment._last

    def first(read: str, task: str, statements: Sequence[Statement]) -> Commitment | None:
        return real(read, task, statements[:1])

    monkeypatch.setattr(commitment, "_last", first)
    assert spoilt(MARKED) == len(MARKED)
    assert len(disagreeing(ROWS)) >= 20


def without_sign(read: Callable[..., Number | None]) -> Callable[..., Number | None]:
    def unsigned(*arguments: Any) -> Number | None:
        number = read(*arguments)
        if number is None or number.value is None:
            return number
        return replace(number, value=abs(number.value))

    return unsigned


def test_dropping_the_sign_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbers, "_from_match", without_sign(numbers._from_match))
    assert spoilt(SIGNED) >= 2  # -7 for 7, and 7 for -7, would both be right
    assert len(disagreeing(ROWS)) >= 10


def test_reading_a_separator_as_an_end_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbers, "_THOUSANDS", re.compile(r"(?!)"))
    assert spoilt(SEPARATED) >= 3
    assert len(disagreeing(ROWS)) >= 10


def test_deleting_every_comma_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_commas(response: str) -> View:
        return text.clean(response.replace(",", ""))

    monkeypatch.setattr(answers, "clean", without_commas)
    assert spoilt(SEPARATED) >= 2  # 1,2,3 would be 123, and 1.234,50 another number
    assert len(disagreeing(ROWS)) >= 10
    pair = score_answer("\\boxed{0, 1}", "0,1", asked=Asked("boxed", "math"))
    assert pair.strict.outcome == "wrong"


def test_deciding_by_digits_alone_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without LaTeX made plain, what is written in LaTeX has no value."""
    monkeypatch.setattr(equality, "plain", lambda written: written)
    monkeypatch.setattr(naming, "plain", lambda written: written)
    forget()
    assert latex.plain(r"\frac{1}{2}") == "1/2"
    assert len(disagreeing([row for row in ROWS if row["task"] == "math"])) >= 20
