"""CSV files of questions: what is read, and how every fault is told."""

from pathlib import Path
from typing import Any

import pytest

from ahalab.errors import InputError
from ahalab.records.plan import TaskSpec
from ahalab.tasks.questions import load_questions, offers_validation, scoring_task


def task(folder: Path, **more: Any) -> TaskSpec:
    return TaskSpec(name="csv", path=str(folder), train_prompts=4, eval_prompts=4, **more)


def read(folder: Path, content: bytes, **more: Any) -> list[tuple[str, str, str]]:
    (folder / "train.csv").write_bytes(content)
    found = load_questions(task(folder, **more), "train")
    return [(q.question, q.gold, q.source.removeprefix(f"{folder}/")) for q in found]


def refused(folder: Path, content: bytes, **more: Any) -> str:
    with pytest.raises(InputError) as caught:
        read(folder, content, **more)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"{folder / 'train.csv'}:")
    return message.removeprefix(f"{folder / 'train.csv'}:")


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_rows_are_read_by_name_whatever_their_mark_and_line_ends(
    tmp_path: Path, mark: bytes, end: bytes
) -> None:
    lines = [b"id,answer,question", b'7,"1,000",What is 999 + 1?', b'8,2,"Say ""2"", ok?"', b""]
    assert read(tmp_path, mark + end.join(lines)) == [
        ("What is 999 + 1?", "1,000", "train.csv:2"),
        ('Say "2", ok?', "2", "train.csv:3"),
    ]


def test_a_cell_keeps_its_line_breaks_and_a_row_is_named_by_its_first_line(tmp_path: Path) -> None:
    content = b'question,answer\r\n"one\r\ntwo\nthree?",1\r\n\r\n"four\nfive?",2\r\nsix?,3'
    assert read(tmp_path, content) == [
        ("one\r\ntwo\nthree?", "1", "train.csv:2"),
        ("four\nfive?", "2", "train.csv:6"),
        ("six?", "3", "train.csv:8"),
    ]


def test_columns_are_named_by_the_plan(tmp_path: Path) -> None:
    fields = {"question_field": "Frage", "gold_field": "größe"}
    rows = read(tmp_path, "größe,Frage\n3,1 + 2?\n".encode(), **fields)
    assert rows == [("1 + 2?", "3", "train.csv:2")]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "1: expected a header with the columns question, answer, found no header."),
        (b"a?,1\n", "1: expected a header with the columns question, answer, found 'a?', '1'."),
        (b"question,gold\na?,1\n", "1: expected a header with the column answer, found 'question'"),
        (b"question;answer\na?;1\n", "1: expected a header with the columns question, answer"),
        (b"question,answer,question\na?,1,b\n", "1: expected each column once, found 'question'"),
        (b'question,answer\n"a\nb?",1\nc?\n', "4: expected 2 cells, as the header has, found 1"),
        (b"question,answer\na, b?,1\n", "2: expected 2 cells, as the header has, found 3"),
        (b'question,answer\nx?,1\n"a?,1\nb?,2\n', "3: expected a row of comma-separated cells"),
        (b'question,answer\n"a" b?,1\n', "2: expected a row of comma-separated cells, found: "),
        (b"question,answer\na?,1\n\xe9?,2\n", "3: expected UTF-8 text, found the byte 0xe9."),
        (b"\xff\xfeq\0,\0a\0", "1: expected UTF-8 text, found the byte 0xff."),
        (b"question,answer\na?,\n", "2: expected a value in `answer`, found an empty one"),
        (b"question,answer\n ,1\n", "2: expected text in `question`"),
    ],
)
def test_a_bad_table_is_named_by_file_and_line(tmp_path: Path, content: bytes, said: str) -> None:
    assert refused(tmp_path, content).startswith(said)


def test_semicolons_are_told_apart_from_a_missing_column(tmp_path: Path) -> None:
    assert refused(tmp_path, b"question;answer\n").endswith("Separate the cells by commas.")


def test_a_header_alone_is_no_question(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected at least one question, found an empty file"):
        read(tmp_path, b"question,answer\n")


def test_the_folder_holds_the_splits_as_for_jsonl(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").touch()
    with pytest.raises(InputError, match=r"expected train\.csv for the train split, found train\."):
        load_questions(task(tmp_path), "train")
    assert not offers_validation(task(tmp_path))
    for name in ("test", "validation"):
        (tmp_path / f"{name}.csv").write_text(f"question,answer\n{name}?,1\n")
    assert [q.question for q in load_questions(task(tmp_path), "eval")] == ["test?"]
    assert offers_validation(task(tmp_path))
    assert [q.question for q in load_questions(task(tmp_path), "validation")] == ["validation?"]
    assert scoring_task(task(tmp_path)) == "math"
