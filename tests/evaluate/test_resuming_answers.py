"""An answer set on disk, under a generator that is not there: stopped anywhere, doubled never."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from ahalab.errors import InputError, LockedError, ProtocolError, RecordError
from ahalab.evaluate.backends import BackendFacts, Batch
from ahalab.evaluate.protocol import BatchPlan, Weights, batch_seed, make_protocol, with_adapters
from ahalab.evaluate.resume import AnswerSet, Generate, answers_finished, write_answers
from ahalab.records.answer import Answer, Protocol, comparable_digest
from ahalab.records.base import decode_file, digest, encode_pretty
from ahalab.records.prompt import Prompt
from ahalab.store.layout import StudyPaths
from ahalab.store.reading import read_rows
from ahalab.tasks.generation import Completion, batches
from lab import SAMPLED, batches_in, environment, plan_of
from small_disk import Disk

PLAN = plan_of(SAMPLED)
PROMPTS = [
    Prompt(
        prompt_id=f"p{n}", question=f"What is {n} + 1?", gold=str(n + 1), source="here",
        split="eval", prompt_ids=tuple(range(3 + n % 3)), prompt_tokens=3 + n % 3,
    )
    for n in range(7)
]  # fmt: skip
LOCKER = """
import sys, time
from pathlib import Path
from ahalab.store.lock import WriterLock
with WriterLock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


class Stopped(Exception):  # noqa: N818 - a kill, not an error
    pass


def fake_model(stop_after: int = 99, sides: int = 1) -> Generate:
    """Answer from prompt and seed alone, as a seeded model does; stop after some batches."""
    made = 0

    def generate(batch: Batch) -> list[list[Completion]]:
        nonlocal made
        if made == stop_after:
            raise Stopped
        made += 1
        texts = [
            f"seed {batch.seed}, row {row}\u2028\n#### {len(p.prompt_ids)}"
            for row, (p, _) in enumerate(batch.asked)
        ]
        plain = [Completion(text, (len(text), 1), "eos") for text in texts]
        return [
            [Completion(f"side {n} {c.text}", c.ids, c.finish) if n else c for c in plain]
            for n in range(sides)
        ]

    return generate


def answer_set(root: Path, **changed: object) -> AnswerSet:
    facts = BackendFacts("fake", "rows", "cpu", {"do_sample": True}, {"torch": "1"})
    protocol = make_protocol(
        PLAN, PROMPTS, Weights("t", "k", "b"), facts, BatchPlan(size=4, cells=1, seed=5)
    )
    paths = StudyPaths(root / "results" / "s")
    return AnswerSet(PLAN, paths, paths.base_answers(), replace(protocol, **changed), "base")


def answer_round(root: Path) -> list[AnswerSet]:
    """Return the base and two adapters that share their batches."""
    base = answer_set(root, cells_per_batch=3)
    digests = [None, "one", "two"]
    targets = [base.target, *(base.paths.answers(str(arm), 0) for arm in digests[1:])]
    return [
        AnswerSet(
            PLAN,
            base.paths,
            target,
            with_adapters(base.protocol, adapter, digests),
            "adapter" if adapter else "base",
        )
        for target, adapter in zip(targets, digests, strict=True)
    ]


def write(answers: AnswerSet, stop_after: int = 99) -> list[int]:
    counts: list[int] = []
    write_answers([answers], PROMPTS, fake_model(stop_after), counts.append)
    return counts


def rows(answers: AnswerSet) -> list[Answer]:
    return [row for _, row in read_rows(answers.target.answers, Answer)]


@pytest.fixture
def whole(tmp_path: Path) -> AnswerSet:
    answers = answer_set(tmp_path / "whole")
    assert write(answers) == [4, 4, 4, 2]  # 7 prompts, 2 samples, batches of 4
    return answers


def test_every_prompt_and_sample_has_one_row_scored_against_its_own_gold(whole: AnswerSet) -> None:
    found = rows(whole)
    planned = [(p.prompt_id, s) for batch in batches(PROMPTS, 2, 4) for p, s in batch]
    assert [(r.prompt_id, r.sample) for r in found] == planned
    golds = {p.prompt_id: (p.gold, len(p.prompt_ids)) for p in PROMPTS}
    for row in found:
        gold, said = golds[row.prompt_id]
        assert row.strict == ("correct" if gold == str(said) else "wrong")
        assert row.protocol == digest(whole.protocol)
    for number in range(4):
        assert f"seed {batch_seed(5, number)}, row 0" in found[4 * number].completion


@pytest.mark.parametrize("stop_after", [0, 1, 2, 3])
def test_stopped_after_any_batch_and_resumed_it_is_the_same_to_the_byte(
    tmp_path: Path, whole: AnswerSet, stop_after: int
) -> None:
    answers = answer_set(tmp_path)
    with pytest.raises(Stopped):
        write(answers, stop_after)
    assert not answers_finished(answers)
    assert len(write(answers)) == 4 - stop_after
    assert answers.target.answers.read_bytes() == whole.target.answers.read_bytes()
    assert answers.target.protocol.read_bytes() == whole.target.protocol.read_bytes()


def test_a_torn_tail_is_cut_kept_apart_and_its_batch_generated_again(
    tmp_path: Path, whole: AnswerSet
) -> None:
    answers = answer_set(tmp_path)
    with pytest.raises(Stopped):
        write(answers, 2)
    tail = b'{"schema":"answer/1","prot'
    with answers.target.answers.open("ab") as file:
        file.write(tail)
    write(answers)
    assert answers.target.answers.read_bytes() == whole.target.answers.read_bytes()
    kept = list(answers.paths.broken.rglob("*.broken"))
    assert [path.read_bytes() for path in kept] == [tail]


def test_a_finished_set_is_left_alone(whole: AnswerSet) -> None:
    before = whole.target.answers.stat().st_mtime_ns
    assert answers_finished(whole)
    assert write(whole, 0) == []
    assert whole.target.answers.stat().st_mtime_ns == before


def test_answers_edited_before_the_last_commit_stop_the_resume_with_their_line(
    tmp_path: Path,
) -> None:
    answers = answer_set(tmp_path)
    with pytest.raises(Stopped):
        write(answers, 2)
    path = answers.target.answers
    path.write_bytes(path.read_bytes().replace(b"row 1", b"row 9", 1))
    with pytest.raises(RecordError, match=r"answers\.jsonl:1: expected the 4 rows of batch 0"):
        write(answers)


@pytest.mark.parametrize("finished", [False, True])
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("batch_size", 8),
        ("base_digest", "other"),
        ("generation", {"do_sample": False}),
        ("versions", {"torch": "2"}),
        ("seed", 6),
        ("scorer_version", "other"),
    ],
)
def test_another_protocol_is_refused_and_its_field_is_named(
    tmp_path: Path, finished: bool, field: str, value: object
) -> None:
    answers = answer_set(tmp_path)
    if finished:
        write(answers)
    else:
        with pytest.raises(Stopped):
            write(answers, 1)
    before = answers.target.answers.read_bytes()
    with pytest.raises(ProtocolError) as caught:
        write(answer_set(tmp_path, **{field: value}))
    text = str(caught.value)
    assert f"{field}: {value!r} now" in text
    assert text.count(" now, ") == 1
    assert "answers.protocol.json" in text
    assert "\n" not in text
    assert answers.target.answers.read_bytes() == before


def test_an_edited_protocol_file_is_refused_with_the_field(tmp_path: Path) -> None:
    answers = answer_set(tmp_path)
    with pytest.raises(Stopped):
        write(answers, 1)
    path = answers.target.protocol
    protocol = decode_file(path.read_bytes(), Protocol, str(path))
    path.write_bytes(encode_pretty(replace(protocol, dtype="bfloat16")))
    with pytest.raises(ProtocolError, match="dtype: 'float32' now, 'bfloat16' there"):
        write(answers)


def test_a_protocol_file_that_was_taken_away_does_not_let_another_protocol_in(
    tmp_path: Path,
) -> None:
    answers = answer_set(tmp_path)
    with pytest.raises(Stopped):
        write(answers, 1)
    answers.target.protocol.unlink()
    with pytest.raises(InputError, match=r"answers\.protocol\.json") as caught:
        write(answer_set(tmp_path, base_digest="other"))
    assert "\n" not in str(caught.value)
    assert len(rows(answers)) == 4


def test_a_second_process_on_the_same_answers_is_refused_and_the_first_one_named(
    tmp_path: Path,
) -> None:
    answers = answer_set(tmp_path)
    lock = answers.paths.work / "locks" / "base-answers.lock"
    arguments = [sys.executable, "-c", LOCKER, str(lock)]
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, text=True, env=environment()
    ) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            with pytest.raises(LockedError, match=rf'"pid": {holder.pid}\b'):
                write(answers)
            assert not answers.target.answers.exists()
        finally:
            holder.kill()
    assert write(answers) == [4, 4, 4, 2]  # a dead owner's lock is taken over


def test_no_answer_stays_when_a_generator_gives_too_few(tmp_path: Path) -> None:
    answers = answer_set(tmp_path)
    model = fake_model()
    with pytest.raises(ValueError, match="shorter"):
        write_answers([answers], PROMPTS, lambda batch: [model(batch)[0][:-1]], lambda count: None)
    assert batches_in(answers.target.answers.with_name("answers.journal.jsonl")) == 0


# Rounds -------------------------------------------------------------------------------------------


def test_sides_that_share_batches_are_each_written_whole_and_name_their_companions(
    tmp_path: Path,
) -> None:
    sets = answer_round(tmp_path)
    counts: list[int] = []
    write_answers(sets, PROMPTS, fake_model(sides=3), counts.append)
    assert counts == [4] * 9 + [2] * 3
    for number, answers in enumerate(sets):
        assert answers_finished(answers)
        texts = [row.completion for row in rows(answers)]
        assert [text.startswith(f"side {number}") for text in texts] == [number > 0] * 14
        assert answers.protocol.companions == (None, "one", "two")
    assert len({comparable_digest(answers.protocol) for answers in sets}) == 1


@pytest.mark.parametrize("commits", range(12))
def test_a_round_stopped_between_two_sides_of_a_batch_ends_as_undisturbed(
    tmp_path: Path, commits: int
) -> None:
    whole, sets = answer_round(tmp_path / "whole"), answer_round(tmp_path / "cut")
    write_answers(whole, PROMPTS, fake_model(sides=3), lambda count: None)
    left = iter(range(commits))

    def stop(count: int) -> None:
        if next(left, None) is None:
            raise Stopped

    with pytest.raises(Stopped):
        write_answers(sets, PROMPTS, fake_model(sides=3), stop)
    counts: list[int] = []
    write_answers(sets, PROMPTS, fake_model(sides=3), counts.append)
    assert len(counts) == 12 - commits - 1  # what was committed is not committed again
    for ours, theirs in zip(sets, whole, strict=True):
        assert ours.target.answers.read_bytes() == theirs.target.answers.read_bytes()


def test_a_side_that_was_sealed_before_the_kill_is_left_alone(tmp_path: Path) -> None:
    sets = answer_round(tmp_path)
    write_answers(sets, PROMPTS, fake_model(sides=3), lambda count: None)
    shutil.rmtree(sets[1].target.answers.parent)
    before = [sets[n].target.answers.stat().st_mtime_ns for n in (0, 2)]
    first = rows(sets[0])
    write_answers(sets, PROMPTS, fake_model(sides=3), lambda count: None)
    assert answers_finished(sets[1])
    assert [sets[n].target.answers.stat().st_mtime_ns for n in (0, 2)] == before
    assert rows(sets[0]) == first


def test_a_disk_that_fills_up_at_any_write_is_one_line_and_the_answers_resume_to_the_byte(
    whole: AnswerSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    expected = whole.target.answers.read_bytes()
    total = sum(p.stat().st_size for p in whole.target.answers.parent.iterdir())
    refused = 0
    for room in range(0, total, 97):
        answers = answer_set(tmp_path / str(room))
        with monkeypatch.context() as full:
            full.setattr(os, "write", Disk(room, piece=1000))
            with pytest.raises(InputError, match="No space left on device") as caught:
                write(answers)
        refused += "\n" not in str(caught.value)
        write(answers)
        assert answers.target.answers.read_bytes() == expected
    assert refused == len(range(0, total, 97)) > 50
