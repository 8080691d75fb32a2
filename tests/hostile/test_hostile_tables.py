"""Questions that come as CSV, with what no spreadsheet shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from ahalab.errors import InputError
from ahalab.records.plan import TaskSpec
from ahalab.tasks.questions import load_questions


def read(folder: Path, payload: bytes) -> list[tuple[str, str]]:
    (folder / "train.csv").write_bytes(payload)
    task = TaskSpec(name="csv", path=str(folder), train_prompts=1, eval_prompts=1)
    return [(q.question, q.gold) for q in load_questions(task, "train")]


@pytest.mark.parametrize(
    "odd", ["\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\x1c", "\u202e", "\0"]
)
def test_what_looks_like_a_line_break_or_like_nothing_stays_in_its_cell(
    tmp_path: Path, odd: str
) -> None:
    rows = f"question,answer\na{odd}b?,1\nc?,2\n".encode()
    assert read(tmp_path, rows) == [(f"a{odd}b?", "1"), ("c?", "2")]


def test_a_formula_is_text(tmp_path: Path) -> None:
    rows = b'question,answer\n"=HYPERLINK(""http://evil.example"")",1\n'
    assert read(tmp_path, rows) == [('=HYPERLINK("http://evil.example")', "1")]


@pytest.mark.parametrize(
    ("payload", "told"),
    [
        (b'question,answer\nb?,1\n"' + b"a" * 200_000 + b'",1\n', "field larger than field limit"),
        (b'question,answer\nb?,1\n"a?,1\n' * 3, "expected a row of comma-separated cells"),
        (b"question,answer\nb?,1\n" + b"," * 100_000 + b"\n", "expected 2 cells, as the header"),
        (b"question,answer\nb?,1\na\xff?,1\n", "expected UTF-8 text, found the byte 0xff"),
    ],
)
def test_a_malformed_row_is_named_by_its_line_in_one_short_line(
    tmp_path: Path, payload: bytes, told: str
) -> None:
    with pytest.raises(InputError) as refused:
        read(tmp_path, payload)
    assert str(refused.value).startswith(f"{tmp_path / 'train.csv'}:3: ")
    assert told in str(refused.value)
    assert len(str(refused.value)) < 500
