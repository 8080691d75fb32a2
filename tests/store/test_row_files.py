import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ahalab.store.reading as reading_module
import ahalab.store.rows as rows_module
from ahalab.errors import InputError, PlanError, RecordError
from ahalab.records.base import encode
from ahalab.records.step import Timing
from ahalab.store.reading import journal_path, read_bytes, read_rows, sealed_path
from ahalab.store.rows import RowFile, RowWriter, compress_sealed, finished, write_rows

Batch = Callable[[int], list[Timing]]
Write = Callable[[RowFile, range], None]


def expected_bytes(batch: Batch, numbers: range) -> bytes:
    return b"".join(encode(row) + b"\n" for number in numbers for row in batch(number))


def broken_files(file: RowFile) -> list[bytes]:
    return [path.read_bytes() for path in sorted(file.broken.glob("*.broken"))]


def rows_of(file: RowFile) -> list[Timing]:
    return [row for _, row in read_rows(file.path, Timing)]


def journal_lines(file: RowFile) -> list[dict[str, object]]:
    return [json.loads(line) for line in journal_path(file.path).read_bytes().split(b"\n")[:-1]]


def copied(file: RowFile, target: Path) -> RowFile:
    """Copy a row file and its journal, for damage to be done to the copy."""
    copy = replace(file, path=target / file.path.name, broken=target / "broken")
    target.mkdir(exist_ok=True)
    for source in (file.path, journal_path(file.path)):
        (target / source.name).write_bytes(source.read_bytes())
    for tail in copy.broken.glob("*"):
        tail.unlink()
    return copy


def refused(file: RowFile, error: type[Exception]) -> str:
    with pytest.raises(error) as caught:
        RowWriter[Timing](file)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_committed_batches_read_back_in_order_with_their_line_numbers(
    row_file: RowFile, batch: Batch, write: Write
) -> None:
    write(row_file, range(3))
    read = list(read_rows(row_file.path, Timing))
    assert [number for number, _ in read] == [1, 2, 3, 4, 5, 6]  # 1 + 2 + 3 rows
    assert [row for _, row in read] == [*batch(0), *batch(1), *batch(2)]
    assert read_bytes(row_file.path) == row_file.path.read_bytes()


def test_a_row_file_holds_rows_only_and_the_journal_names_their_bytes(
    row_file: RowFile, batch: Batch, write: Write
) -> None:
    write(row_file, range(2))
    assert row_file.path.read_bytes() == expected_bytes(batch, range(2))
    head, attempt, first, second = journal_lines(row_file)
    assert (head["kind"], head["run"], head["rows_schema"]) == (
        "head",
        "arms/random/seed-0",
        "timing/1",
    )
    assert (attempt["kind"], attempt["number"], attempt["rows"]) == ("attempt", 1, 0)
    payload = row_file.path.read_bytes()
    for line, rows in ((first, 1), (second, 2)):
        part = payload[line["start"] : line["end"]]  # type: ignore[misc]
        assert line["rows"] == part.count(b"\n") == rows
        assert line["sha256"] == hashlib.sha256(part).hexdigest()
    assert (first["start"], second["end"]) == (0, len(payload))
    lines = journal_path(row_file.path).read_bytes().split(b"\n")
    assert first["previous"] == hashlib.sha256(lines[1]).hexdigest()


def test_attempts_are_listed_and_never_erased(row_file: RowFile, write: Write) -> None:
    for number in range(3):
        write(row_file, range(number, number + 1))
    attempts = [line for line in journal_lines(row_file) if line["kind"] == "attempt"]
    assert [(a["number"], a["rows"]) for a in attempts] == [(1, 0), (2, 1), (3, 3)]


def test_torn_tail_of_rows_is_cut_and_kept_and_the_batch_runs_again(
    row_file: RowFile, batch: Batch, write: Write
) -> None:
    write(row_file, range(2))
    torn = encode(batch(2)[0])[:-5]
    with row_file.path.open("ab") as rows:
        rows.write(torn)
    with pytest.raises(RecordError, match=r"timings\.jsonl:4: expected a whole line"):
        rows_of(row_file)
    write(row_file, range(2, 4))
    assert row_file.path.read_bytes() == expected_bytes(batch, range(4))
    assert broken_files(row_file) == [torn]


def test_whole_rows_that_were_not_committed_are_cut_too(
    row_file: RowFile, batch: Batch, write: Write
) -> None:
    write(row_file, range(2))
    tail = expected_bytes(batch, range(2, 3))
    with row_file.path.open("ab") as rows:
        rows.write(tail)
    write(row_file, range(2, 4))
    assert row_file.path.read_bytes() == expected_bytes(batch, range(4))
    assert broken_files(row_file) == [tail]


def test_torn_journal_line_is_cut_and_kept_and_its_batch_runs_again(
    row_file: RowFile, batch: Batch, write: Write
) -> None:
    write(row_file, range(3))
    journal = journal_path(row_file.path)
    journal.write_bytes(journal.read_bytes()[:-10])
    write(row_file, range(2, 4))
    assert row_file.path.read_bytes() == expected_bytes(batch, range(4))
    kept = broken_files(row_file)
    assert expected_bytes(batch, range(2, 3)) in kept
    assert any(part.startswith(b'{"kind":"batch"') for part in kept)


def test_two_torn_tails_are_kept_apart(row_file: RowFile, write: Write) -> None:
    write(row_file, range(1))
    for torn in (b"first", b"second"):
        with row_file.path.open("ab") as rows:
            rows.write(torn)
        write(row_file, range(0))
    assert broken_files(row_file) == [b"first", b"second"]


@pytest.mark.usefixtures("no_fsync")
def test_rows_cut_short_at_every_byte_are_a_sound_prefix_or_a_named_error(
    row_file: RowFile, batch: Batch, write: Write, tmp_path: Path
) -> None:
    write(row_file, range(4))
    whole = row_file.path.read_bytes()
    for size in range(len(expected_bytes(batch, range(2))), len(whole)):
        cut = copied(row_file, tmp_path / "copy")
        cut.path.write_bytes(whole[:size])
        message = refused(cut, RecordError)  # committed rows are gone: never a silent prefix
        assert message.startswith(
            f"{cut.path}: expected {len(whole)} committed bytes, found {size}"
        )


@pytest.mark.usefixtures("no_fsync")
def test_the_journal_cut_short_at_every_byte_gives_a_prefix_of_whole_batches(
    row_file: RowFile, batch: Batch, write: Write, tmp_path: Path
) -> None:
    write(row_file, range(4))
    whole = journal_path(row_file.path).read_bytes()
    lines = whole.split(b"\n")[:-1]
    assert len(lines) == 2 + 4
    start = len(b"\n".join(lines[:4])) + 1  # of the last two lines
    for size in range(start, len(whole) + 1):
        cut = copied(row_file, tmp_path / "copy")
        journal_path(cut.path).write_bytes(whole[:size])
        batches = whole[:size].count(b"\n") - 2
        with RowWriter[Timing](cut) as writer:
            assert len(writer.state.batches) == batches
            assert cut.path.read_bytes() == expected_bytes(batch, range(batches))
            for number in range(batches, 4):
                writer.append(batch(number))
        assert cut.path.read_bytes() == row_file.path.read_bytes()


def test_the_journal_cut_short_before_its_first_line_ends_refuses_the_rows(
    row_file: RowFile, write: Write, tmp_path: Path
) -> None:
    write(row_file, range(4))
    whole = journal_path(row_file.path).read_bytes()
    for size in (0, 1, whole.index(b"\n")):
        cut = copied(row_file, tmp_path / "copy")
        journal_path(cut.path).write_bytes(whole[:size])
        assert "expected the journal of" in refused(cut, RecordError)
        assert cut.path.read_bytes() == row_file.path.read_bytes()
    lost = copied(row_file, tmp_path / "copy")
    journal_path(lost.path).unlink()
    assert "expected the journal of" in refused(lost, RecordError)
    assert lost.path.read_bytes() == row_file.path.read_bytes()


def test_a_kill_before_the_first_line_of_the_journal_starts_afresh(
    row_file: RowFile, batch: Batch, write: Write
) -> None:
    row_file.path.parent.mkdir(parents=True)
    row_file.path.touch()
    journal_path(row_file.path).write_bytes(b'{"kind":"head","sche')
    assert not finished(row_file)
    write(row_file, range(2))
    assert row_file.path.read_bytes() == expected_bytes(batch, range(2))


@pytest.mark.usefixtures("no_fsync")
def test_a_byte_flipped_in_any_committed_row_is_fatal_with_file_and_line(
    row_file: RowFile, write: Write, tmp_path: Path
) -> None:
    write(row_file, range(4))
    whole = row_file.path.read_bytes()
    first_lines = {0: 1, 1: 2, 2: 2, 3: 4, 4: 4, 5: 4, 6: 7}  # row index -> first line of its batch
    for at in range(0, len(whole), 7):
        flipped = copied(row_file, tmp_path / "copy")
        flipped.path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        line = first_lines[whole[:at].count(b"\n")]
        assert refused(flipped, RecordError).startswith(f"{flipped.path}:{line}: ")
        assert len(flipped.path.read_bytes()) == len(whole)  # nothing was repaired
        assert not broken_files(flipped)


@pytest.mark.usefixtures("no_fsync")
def test_a_byte_flipped_in_any_journal_line_is_fatal_with_its_line(
    row_file: RowFile, batch: Batch, write: Write, tmp_path: Path
) -> None:
    write(row_file, range(3))
    whole = journal_path(row_file.path).read_bytes()
    last_line = whole[:-1].rindex(b"\n") + 1
    for at in [*range(0, last_line, 5), *range(last_line, len(whole) - 1)]:
        flipped = copied(row_file, tmp_path / "copy")
        journal = journal_path(flipped.path)
        journal.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises((RecordError, PlanError)) as caught, RowWriter[Timing](flipped):
            pass
        message = str(caught.value)
        line = whole[:at].count(b"\n") + 1
        named = (
            f"{journal}:{line}: ",
            f"{journal}:{line + 1}: ",
            f"{flipped.path}:",
            f"{journal}:1: ",
        )
        assert message.startswith(named)


def test_a_last_journal_line_without_its_newline_is_torn(
    row_file: RowFile, batch: Batch, write: Write
) -> None:
    write(row_file, range(3))
    journal = journal_path(row_file.path)
    journal.write_bytes(journal.read_bytes()[:-1])
    with RowWriter[Timing](row_file) as writer:
        assert len(writer.state.batches) == 2
    assert row_file.path.read_bytes() == expected_bytes(batch, range(2))


@pytest.mark.parametrize("key", ["plan_digest", "run", "rows_schema"])
def test_rows_of_another_plan_or_run_are_refused_and_the_key_is_named(
    row_file: RowFile, write: Write, key: str
) -> None:
    write(row_file, range(1))
    other = replace(row_file, **{key: "something-else"})
    before = journal_path(row_file.path).read_bytes()
    for attempt in (lambda: RowWriter[Timing](other), lambda: finished(other)):
        with pytest.raises(PlanError, match=rf"expected {key}=something-else, found "):
            attempt()
    assert journal_path(row_file.path).read_bytes() == before


def test_a_sealed_file_refuses_to_reopen(row_file: RowFile, batch: Batch) -> None:
    assert not finished(row_file)
    write_rows(row_file, batch(2))
    assert finished(row_file)
    assert "expected an open row file, found a sealed one" in refused(row_file, InputError)
    assert rows_of(row_file) == batch(2)


def test_no_row_is_taken_after_the_seal(row_file: RowFile, batch: Batch) -> None:
    with RowWriter[Timing](row_file) as writer:
        writer.append(batch(0))
        writer.seal()
        with pytest.raises(RecordError, match="expected nothing after the seal"):
            writer.append(batch(1))


def test_a_sealed_file_whose_rows_are_gone_is_not_called_finished(
    row_file: RowFile, batch: Batch
) -> None:
    write_rows(row_file, batch(2))
    whole = row_file.path.read_bytes()
    row_file.path.write_bytes(whole[:-1])
    with pytest.raises(
        RecordError, match=f"expected {len(whole)} sealed bytes, found {len(whole) - 1}"
    ):
        finished(row_file)
    row_file.path.unlink()
    with pytest.raises(RecordError, match=f"expected {len(whole)} sealed bytes, found none"):
        finished(row_file)


def test_rows_written_again_after_a_cut_give_the_bytes_of_an_uninterrupted_file(
    row_file: RowFile, batch: Batch, write: Write
) -> None:
    with RowWriter[Timing](row_file) as writer:
        for number in range(5):
            writer.append(batch(number))
        writer.cut(2)
        assert row_file.path.read_bytes() == expected_bytes(batch, range(2))
        writer.append(batch(2))
    write(row_file, range(3, 6))
    assert row_file.path.read_bytes() == expected_bytes(batch, range(6))
    (cut,) = [line for line in journal_lines(row_file) if line["kind"] == "cut"]
    gone = expected_bytes(batch, range(2, 5))
    assert (cut["sequence"], cut["rows"], cut["cut_rows"]) == (2, 3, 3 + 1 + 2)
    assert cut["cut_sha256"] == hashlib.sha256(gone).hexdigest()


def test_everything_can_be_cut_and_cutting_nothing_leaves_no_line(
    row_file: RowFile, batch: Batch
) -> None:
    with RowWriter[Timing](row_file) as writer:
        writer.cut(0)
        writer.append(batch(0))
        writer.cut(1)
        assert not writer.state.cuts
        writer.cut(0)
        assert row_file.path.read_bytes() == b""
        writer.append(batch(1))
    assert row_file.path.read_bytes() == expected_bytes(batch, range(1, 2))


@pytest.mark.parametrize("kept", [-1, 3])
def test_cutting_to_batches_that_are_not_there_is_refused(
    row_file: RowFile, batch: Batch, write: Write, kept: int
) -> None:
    write(row_file, range(2))
    with (
        RowWriter[Timing](row_file) as writer,
        pytest.raises(RecordError, match=f"expected at least {kept} committed batches, found 2"),
    ):
        writer.cut(kept)
    assert row_file.path.read_bytes() == expected_bytes(batch, range(2))


def test_a_kill_between_the_cut_line_and_the_truncation_recovers(
    row_file: RowFile, batch: Batch, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(row_file, range(4))
    with monkeypatch.context() as patched:
        patched.setattr(
            rows_module, "_truncate", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
        )
        with RowWriter[Timing](row_file) as writer, pytest.raises(KeyboardInterrupt):
            writer.cut(1)
    assert row_file.path.read_bytes() == expected_bytes(batch, range(4))  # the rows are still there
    write(row_file, range(1, 4))
    assert row_file.path.read_bytes() == expected_bytes(batch, range(4))
    assert broken_files(row_file) == [expected_bytes(batch, range(1, 4))]


def big_rows(count: int = 20_000) -> list[Timing]:
    return [
        Timing(step=i, seconds=i / 8, utc=hashlib.sha256(str(i).encode()).hexdigest())
        for i in range(count)
    ]


def test_a_big_sealed_file_is_kept_compressed_and_reads_the_same(row_file: RowFile) -> None:
    rows = big_rows()
    write_rows(row_file, rows)
    assert not row_file.path.exists()
    packed = sealed_path(row_file.path)
    plain = b"".join(encode(row) + b"\n" for row in rows)
    assert len(plain) > 1 << 20
    assert zstandard.ZstdDecompressor().decompress(packed.read_bytes()) == plain
    assert read_bytes(row_file.path) == plain
    assert rows_of(row_file) == rows
    assert finished(row_file)
    assert sorted(p.name for p in row_file.path.parent.iterdir()) == [
        "timings.journal.jsonl",
        "timings.jsonl.zst",
    ]


@pytest.mark.parametrize("killed_at", ["replace_file", "unlink"])
def test_a_kill_while_a_sealed_file_is_compressed_is_tidied_up(
    row_file: RowFile, monkeypatch: pytest.MonkeyPatch, killed_at: str
) -> None:
    rows = big_rows()

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        target = rows_module if killed_at == "replace_file" else Path
        patched.setattr(target, killed_at, killed)
        with pytest.raises(KeyboardInterrupt):
            write_rows(row_file, rows)
    assert row_file.path.exists()
    assert sealed_path(row_file.path).exists() == (killed_at == "unlink")
    assert rows_of(row_file) == rows
    assert finished(row_file)
    assert not row_file.path.exists()
    assert rows_of(row_file) == rows
    compress_sealed(row_file.path)  # nothing left to do


def test_a_compressed_file_cut_short_or_added_to_is_refused(row_file: RowFile) -> None:
    write_rows(row_file, big_rows())
    packed = sealed_path(row_file.path)
    whole, plain = packed.read_bytes(), read_bytes(row_file.path)
    more = zstandard.ZstdCompressor().compress(encode(big_rows(1)[0]) + b"\n")
    damaged = [whole[:n] for n in (0, 3, 12, len(whole) // 2, len(whole) - 1)]
    undeclared = zstandard.ZstdCompressor(write_content_size=False).compress(plain)
    huge = b"\x28\xb5\x2f\xfd\xe0" + (1 << 62).to_bytes(8, "little") + whole[9:]
    damaged += [undeclared, huge, whole + b"x", whole + more, bytes([whole[0] ^ 1]) + whole[1:]]
    for payload in damaged:
        packed.write_bytes(payload)
        for read in (lambda: rows_of(row_file), lambda: read_bytes(row_file.path)):
            with pytest.raises(RecordError) as caught:
                read()
            assert str(caught.value).startswith(str(packed))


def test_a_row_of_another_type_or_too_long_is_named_by_line(
    row_file: RowFile, batch: Batch, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(row_file, range(2))
    lines = row_file.path.read_bytes().split(b"\n")
    row_file.path.write_bytes(b"\n".join([lines[0], lines[1].replace(b"1.0", b"true"), *lines[2:]]))
    with pytest.raises(RecordError, match=rf"^{row_file.path}:2: .*seconds"):
        rows_of(row_file)
    monkeypatch.setattr(reading_module, "MAX_LINE_BYTES", 20)
    with pytest.raises(RecordError, match=rf"^{row_file.path}:1: .*overlong"):
        rows_of(row_file)


def test_a_missing_row_file_says_so(row_file: RowFile) -> None:
    with pytest.raises(InputError, match="expected a row file, found none"):
        rows_of(row_file)


@pytest.mark.parametrize(
    "row",
    [
        Timing(step=1, seconds=2, utc=""),
        Timing(step=1, seconds=0.5, utc="\ud800"),
        Timing(step=1, seconds=0.5, utc="x" * (16 << 20)),
    ],
    ids=["whole number in a float field", "lone surrogate", "17 MB"],
)
def test_a_row_that_would_not_read_back_is_never_written(
    row_file: RowFile, batch: Batch, row: Timing
) -> None:
    with RowWriter[Timing](row_file) as writer:
        writer.append(batch(0))
        with pytest.raises(RecordError, match=rf"^{row_file.path}:3: "):
            writer.append([*batch(0), row])
        with pytest.raises(ValueError, match="JSON"):
            writer.append([Timing(step=1, seconds=float("nan"), utc="")])
        writer.append(batch(1))
    assert row_file.path.read_bytes() == expected_bytes(batch, range(2))


def test_an_empty_batch_and_an_empty_file_are_sound(row_file: RowFile, batch: Batch) -> None:
    with RowWriter[Timing](row_file) as writer:
        writer.append([])
        writer.append(batch(0))
    write_rows(replace(row_file, path=row_file.path.with_name("empty.jsonl")), [])
    assert rows_of(row_file) == batch(0)
    assert rows_of(replace(row_file, path=row_file.path.with_name("empty.jsonl"))) == []


@pytest.mark.usefixtures("no_fsync")
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(st.sampled_from(["append", "cut", "reopen", "torn"]), max_size=12),
    st.randoms(use_true_random=False),
)
def test_any_order_of_appends_cuts_and_kills_leaves_what_was_committed(
    row_file: RowFile, batch: Batch, actions: list[str], random: object
) -> None:
    if row_file.path.parent.exists():
        shutil.rmtree(row_file.path.parent)
    kept: list[int] = []  # the model: numbers of the batches in force
    number = 0
    writer = RowWriter[Timing](row_file)
    for action in actions:
        if action == "append":
            writer.append(batch(number))
            kept.append(number)
            number += 1
        elif action == "cut":
            keep = random.randint(0, len(kept))  # type: ignore[attr-defined]
            writer.cut(keep)
            del kept[keep:]
        else:
            writer.close()
            if action == "torn":
                with row_file.path.open("ab") as rows:
                    rows.write(b'{"schema":"timing/1","step"')
            writer = RowWriter[Timing](row_file)
    writer.close()
    assert rows_of(row_file) == [row for n in kept for row in batch(n)]
