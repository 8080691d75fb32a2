"""`ahalab analyze --csv`: the changed responses for a spreadsheet, nothing in it a formula."""

from __future__ import annotations

import csv
from io import StringIO
from pathlib import Path

import pytest
from command import Call
from msgspec.structs import replace
from small_study import write_study

from ahalab.analyze.changed_table import changed_csv
from ahalab.records.base import decode_file
from ahalab.records.comparison import ChangedResponses
from ahalab.store.layout import StudyPaths


@pytest.fixture
def paths(tmp_path: Path) -> StudyPaths:
    return write_study(tmp_path / "small", "FWUTCCC", {("random", 0): "CCCCWFC"})[1]


def test_every_changed_answer_is_a_line_with_the_fields_of_the_record(
    call: Call, paths: StudyPaths, tmp_path: Path
) -> None:
    file = tmp_path / "changed.csv"
    assert call("analyze", paths.root, "--csv", file).code == 0
    changed = decode_file(paths.changed.read_bytes(), ChangedResponses, "changed").changed
    with file.open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == len(changed) == 10
    for row, entry in zip(rows, changed, strict=True):
        assert row["prompt_id"] == entry.prompt_id
        assert (row["change"], row["kind"]) == (entry.change, entry.kind)
        assert row["adapter_completion"] == entry.adapter_completion
        assert row["base_extracted"] == (entry.base_extracted or "")


@pytest.mark.parametrize("start", [*"=+-@\t\r\n＝", " =", "\0\ufeff ="])
def test_what_a_spreadsheet_would_run_is_text(paths: StudyPaths, call: Call, start: str) -> None:
    call("analyze", paths.root)
    changed = decode_file(paths.changed.read_bytes(), ChangedResponses, "changed")
    hostile = f'{start}HYPERLINK(1)\n, "x"'
    entry = replace(changed.changed[0], base_completion=hostile)
    text = changed_csv(replace(changed, changed=(entry,)))
    (row,) = csv.DictReader(StringIO(text, newline=""))
    assert row["base_completion"] == f"'{hostile}"


def test_a_carriage_return_ends_neither_cell_nor_row(paths: StudyPaths, call: Call) -> None:
    call("analyze", paths.root)
    changed = decode_file(paths.changed.read_bytes(), ChangedResponses, "changed")
    hostile = 'a\r=HYPERLINK("x")\r\n=b\u2028\x0b\x85'
    entry = replace(changed.changed[0], base_completion=hostile)
    text = changed_csv(replace(changed, changed=(entry, entry)))
    rows = list(csv.DictReader(StringIO(text, newline="")))
    assert [row["base_completion"] for row in rows] == [hostile] * 2


def test_a_file_within_the_study_is_refused_before_anything_is_written(
    call: Call, paths: StudyPaths
) -> None:
    before = sorted(paths.root.rglob("*"))
    said = call("analyze", paths.root, "--csv", paths.root / "analysis" / "x.csv")
    assert said.code == 2
    assert "expected a file outside the study" in said.err
    assert sorted(paths.root.rglob("*")) == before
