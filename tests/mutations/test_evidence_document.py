"""docs/evidence.md: its tables are those of the code and of the suite."""

from __future__ import annotations

from pathlib import Path

from mutations.tables import checks_table, mutations_table, planned, unjudged_table

PAGE = Path(__file__).parents[2] / "docs" / "evidence.md"
COMMAND = "python -m benchmarks.mutations --write docs/evidence.md"


def table(name: str) -> str:
    text = PAGE.read_text(encoding="utf-8")
    begin, end = (f"<!-- {name}: {side} -->" for side in ("begin", "end"))
    return text[text.index(begin) + len(begin) : text.index(end)].strip("\n")


def test_it_lists_every_check_and_every_field_that_none_can_tell() -> None:
    assert table("checks") == checks_table(), f"stale: {COMMAND}"
    assert table("unjudged") == unjudged_table(), f"stale: {COMMAND}"


def test_it_lists_every_mutation_of_the_suite_and_all_of_them_were_told(
    studies: dict[str, Path],
) -> None:
    assert table("mutations") == mutations_table(planned(studies)), f"stale: {COMMAND}"
