from __future__ import annotations

import pytest

from ahalab.scoring.reflection import reflection_markers, self_correction


def test_markers_are_listed_in_order_with_repetitions() -> None:
    text = "14 + 8 = 22. Wait, let me check. Hmm, actually it is right. wait"
    assert reflection_markers(text) == ("wait", "let me check", "hmm", "actually", "wait")


@pytest.mark.parametrize("text", ["", "The waiter waited.", "She checks the factual answer: 5."])
def test_words_that_only_resemble_markers_are_none(text: str) -> None:
    assert reflection_markers(text) == ()


@pytest.mark.parametrize(
    ("text", "gold", "corrected"),
    [
        ("The total is 22. Wait, it is 23.", "23", True),
        ("The total is 23. Wait, it is 22.", "23", False),
        ("The total is 23. Wait, it is 23.", "23", False),
        ("14 + 8 = 23. wait, 14 + 8 = 22. 22 * 2 = 44", "44", True),  # a step is put right
        ("14 + 8 = 22. wait, 14 + 8 = 23. 23 * 2 = 46", "46", False),  # a step is put wrong
        ("Wait, it is 23.", "23", False),  # nothing was stated before
        ("It is 22. Wait, let me think.", "23", False),
        ("It is 22. Wait, it is 23.", "no number", False),
    ],
)
def test_a_self_correction_changes_a_wrong_value_into_the_right_one(
    text: str, gold: str, corrected: bool
) -> None:
    assert self_correction(text, gold) is corrected
