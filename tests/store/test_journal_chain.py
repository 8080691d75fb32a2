import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ahalab.errors import RecordError
from ahalab.records.step import Timing
from ahalab.store.journal import read_journal
from ahalab.store.reading import journal_path
from ahalab.store.rows import RowFile, RowWriter

Batch = Callable[[int], list[Timing]]


@pytest.fixture
def journal(row_file: RowFile, batch: Batch) -> Path:
    """Write head, attempt, batches 0 to 3, cut to 2, batch 2 again, seal: nine lines."""
    with RowWriter[Timing](row_file) as writer:
        for number in range(4):
            writer.append(batch(number))
        writer.cut(2)
        writer.append(batch(2))
        writer.seal()
    return journal_path(row_file.path)


def lines_of(journal: Path) -> list[bytes]:
    return journal.read_bytes().split(b"\n")[:-1]


def refused(journal: Path, lines: list[bytes]) -> str:
    journal.write_bytes(b"".join(line + b"\n" for line in lines))
    with pytest.raises(RecordError) as caught:
        read_journal(journal)
    return str(caught.value).removeprefix(f"{journal}:")


def chained(lines: list[dict[str, Any]]) -> list[bytes]:
    """Chain lines as an owner would who edits the journal and knows how it is made."""
    previous, chain = "0" * 64, []
    for line in lines:
        payload = json.dumps({**line, "previous": previous}, separators=(",", ":")).encode()
        previous = hashlib.sha256(payload).hexdigest()
        chain.append(payload)
    return chain


def test_a_sound_journal_says_what_is_in_force(journal: Path) -> None:
    state = read_journal(journal)
    assert [b.sequence for b in state.batches] == [0, 1, 2]
    assert (state.rows, len(state.cuts), len(state.attempts)) == (1 + 2 + 3, 1, 1)
    assert state.seal is not None
    assert state.end == state.seal.bytes == state.batches[-1].end
    assert state.last == hashlib.sha256(lines_of(journal)[-1]).hexdigest()
    assert chained([json.loads(line) for line in lines_of(journal)]) == lines_of(journal)


def test_no_journal_is_an_empty_state(tmp_path: Path) -> None:
    state = read_journal(tmp_path / "none.jsonl")
    assert (state.head, state.end, state.rows, state.torn) == (None, 0, 0, b"")


@pytest.mark.parametrize("at", range(9))
def test_a_line_twice_is_refused_at_the_second(journal: Path, at: int) -> None:
    lines = lines_of(journal)
    message = refused(journal, [*lines[: at + 1], lines[at], *lines[at + 1 :]])
    assert message.startswith(f"{at + 2}: ")


@pytest.mark.parametrize("at", range(8))
def test_two_lines_exchanged_are_refused_at_the_first(journal: Path, at: int) -> None:
    lines = lines_of(journal)
    lines[at], lines[at + 1] = lines[at + 1], lines[at]
    assert refused(journal, lines).startswith(f"{at + 1}: ")


@pytest.mark.parametrize("at", range(8))
def test_a_line_removed_is_refused_where_the_next_one_stands(journal: Path, at: int) -> None:
    lines = lines_of(journal)
    del lines[at]
    assert refused(journal, lines).startswith(f"{at + 1}: ")


@pytest.mark.parametrize("at", range(9))
def test_an_edited_previous_is_refused_with_its_line(journal: Path, at: int) -> None:
    lines = lines_of(journal)
    record = json.loads(lines[at])
    record["previous"] = "f" * 64
    lines[at] = json.dumps(record, separators=(",", ":")).encode()
    assert refused(journal, lines).startswith(f"{at + 1}: expected the digest of the line before")


def test_an_empty_line_is_refused(journal: Path) -> None:
    lines = lines_of(journal)
    assert refused(journal, [*lines[:3], b"", *lines[3:]]).startswith("4: ")


@pytest.mark.parametrize(
    ("at", "change", "said"),
    [
        (2, {"sequence": 1}, "3: expected batch 0"),
        (3, {"start": 1}, "4: expected batch 1"),
        (2, {"rows": -1}, "3: expected a batch of rows"),
        (2, {"end": -5}, "3: expected a batch of rows"),
        (6, {"sequence": 3}, "7: expected a cut to "),
        (6, {"sequence": -1}, "7: expected a cut to "),
        (6, {"sequence": 99}, "7: expected a cut to "),
        (6, {"cut_rows": 0}, "7: expected a cut to "),
        (6, {"rows": 2}, "7: expected a cut to "),
        (6, {"end": 1}, "7: expected a cut to "),
        (8, {"rows": 5}, "9: expected a seal over 6 rows"),
        (8, {"bytes": 5}, "9: expected a seal over 6 rows"),
    ],
)
def test_a_line_that_cannot_follow_is_refused_even_when_the_chain_is_mended(
    journal: Path, at: int, change: dict[str, int], said: str
) -> None:
    lines = [json.loads(line) for line in lines_of(journal)]
    lines[at].update(change)
    assert refused(journal, chained(lines)).startswith(said)


def test_a_second_head_a_missing_head_and_a_line_after_the_seal_are_refused(journal: Path) -> None:
    lines = [json.loads(line) for line in lines_of(journal)]
    assert refused(journal, chained([lines[0], *lines])).startswith("2: expected one head, first")
    assert refused(journal, chained(lines[1:])).startswith("1: expected one head, first")
    late = refused(journal, chained([*lines, lines[1]]))
    assert late.startswith("10: expected nothing after the seal, found a attempt line")


def test_rows_cut_on_a_resume_are_compared_with_those_generated_again(
    row_file: RowFile, batch: Batch
) -> None:
    with RowWriter[Timing](row_file) as writer:
        for number in range(4):
            writer.append(batch(number))
        writer.cut(1)
        assert set(writer.state.taken_back) == {1, 2, 3}
        writer.append(batch(1))
        writer.append(batch(5))  # other rows than the first time
    path = journal_path(row_file.path)
    state = read_journal(path)  # the comparison is made from the file alone
    assert (state.changed, set(state.taken_back)) == ([2], {3})
    with RowWriter[Timing](row_file) as writer:
        writer.append(batch(3))
        assert (writer.state.changed, writer.state.taken_back) == ([2], {})
        writer.cut(2)
        writer.append(batch(5))  # as it was before this cut
        writer.append(batch(0))
        assert writer.state.changed == [2, 3]


def test_rows_that_were_never_cut_are_compared_with_nothing(journal: Path) -> None:
    state = read_journal(journal)
    assert (state.changed, set(state.taken_back)) == ([], {3})  # batch 3 did not come again
