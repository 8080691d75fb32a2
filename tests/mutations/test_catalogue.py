"""The catalogue by hand: each mutation is told by its check, at its file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutations.by_hand import ByHand, judge_by_hand, mutations_by_hand


@pytest.mark.parametrize(
    "by_hand", list(mutations_by_hand()), ids=lambda one: f"{one.mutation.name}, {one.after}"
)
def test_tampering_is_named_with_file_and_line(
    studies: dict[str, Path], tmp_path: Path, by_hand: ByHand
) -> None:
    judged = judge_by_hand(studies["synthetic"], by_hand, tmp_path / "copy")
    assert judged.caught, f"expected {judged.check}, {judged.why}"
