"""`ahalab evaluate` and `ahalab replay` on a trained study, killed, tampered with, repeated."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from ahalab.plan.load import load_plan
from ahalab.records.answer import Answer, Protocol, comparable_digest
from ahalab.records.base import decode_file, digest, encode_pretty
from ahalab.store.layout import StudyPaths
from ahalab.store.reading import journal_path, read_rows
from ahalab.store.rows import RowFile, write_rows
from ahalab.tasks.prepare import read_prompts
from lab import PLAN, SAMPLED, Trained, WarmLab, batches_in
from tampering import mend_journal

pytestmark = pytest.mark.train
PILOT = "arms/historical/seed-1"


def answers_of(path: Path) -> list[Answer]:
    return [row for _, row in read_rows(path, Answer)]


def protocol_of(answers: Path) -> Protocol:
    path = answers.with_name(answers.stem + ".protocol.json")
    return decode_file(path.read_bytes(), Protocol, str(path))


@pytest.fixture(scope="session")
def evaluated(
    trained: Trained, warm: WarmLab, tmp_path_factory: pytest.TempPathFactory
) -> StudyPaths:
    """The trained study with every answer, uninterrupted. No test may write to it."""
    root = tmp_path_factory.mktemp("evaluated") / "results" / "tiny"
    shutil.copytree(trained.paths.root, root)
    warm.run("evaluate", root)
    return StudyPaths(root)


@pytest.fixture
def done(evaluated: StudyPaths, tmp_path: Path) -> StudyPaths:
    """A copy of the evaluated study that a test may change."""
    return StudyPaths(Path(shutil.copytree(evaluated.root, tmp_path / "results" / "tiny")))


def test_every_side_answers_every_question_under_one_comparable_protocol(
    evaluated: StudyPaths,
) -> None:
    prompts = {p.prompt_id for p in read_prompts(evaluated, "eval")}
    sets = {
        "base": evaluated.base_answers(),
        "historical": evaluated.answers("historical", 1),
        "random": evaluated.answers("random", 1),
    }
    for name, target in sets.items():
        rows = answers_of(target.answers)
        assert len(rows) == 12
        assert {r.prompt_id for r in rows} == prompts
        assert {r.side for r in rows} == {"base" if name == "base" else "adapter"}
        assert {r.protocol for r in rows} == {digest(protocol_of(target.answers))}
    protocols = [protocol_of(target.answers) for target in sets.values()]
    assert len({comparable_digest(p) for p in protocols}) == 1
    assert protocols[0].adapter_digest is None
    assert len({p.adapter_digest for p in protocols}) == 3


def test_the_floor_is_the_base_under_another_batch_plan_and_says_so(evaluated: StudyPaths) -> None:
    base, floor = evaluated.base_answers().answers, evaluated.floor_answers.answers
    assert protocol_of(base).batch_size == 4
    assert protocol_of(floor).batch_size == 3
    assert (batches_in(journal_path(base)), batches_in(journal_path(floor))) == (3, 4)
    assert comparable_digest(protocol_of(base)) != comparable_digest(protocol_of(floor))
    assert {r.prompt_id for r in answers_of(floor)} == {r.prompt_id for r in answers_of(base)}
    assert {r.side for r in answers_of(floor)} == {"base"}


def test_evaluating_again_changes_nothing(done: StudyPaths, warm: WarmLab) -> None:
    before = {p: p.stat().st_mtime_ns for p in done.root.rglob("*") if p.is_file()}
    warm.run("evaluate", done.root)
    assert {p: p.stat().st_mtime_ns for p in done.root.rglob("*") if p.is_file()} == before


def test_killed_in_the_middle_and_resumed_greedy_answers_are_the_same_to_the_byte(
    study: Trained, evaluated: StudyPaths, warm: WarmLab
) -> None:
    journals = [
        journal_path(target.answers)
        for target in (study.paths.base_answers(), study.paths.answers("historical", 1))
    ]
    for journal in journals:
        command = warm.start("evaluate", study.paths.root)
        assert command.kill_when(lambda j=journal: batches_in(j) >= 1) == -signal.SIGKILL  # type: ignore[misc]
    warm.run("evaluate", study.paths.root)
    for arm in ("historical", "random"):
        path = study.paths.answers(arm, 1).answers
        assert path.read_bytes() == evaluated.answers(arm, 1).answers.read_bytes()
    base = study.paths.base_answers().answers
    assert base.read_bytes() == evaluated.base_answers().answers.read_bytes()


def test_killed_in_the_middle_and_resumed_sampled_answers_are_the_same_to_the_byte(
    fresh: Callable[[str], Trained], trained: Trained, warm: WarmLab
) -> None:
    study = fresh(SAMPLED)
    out = study.paths.root.parent
    # The base alone answers: prompts are all that a study needs for it.
    train = warm.start("train", study.plan_file, "--out", out, "--arm", "random", "--seed", 1)
    train.kill_when((study.paths.root / "prompts" / "selection.json").exists)
    target = study.paths.base_answers().answers
    journal = journal_path(target)
    evaluate = ("evaluate", study.paths.root, "--cell", "base")
    warm.run(*evaluate)
    whole = target.read_bytes()
    rows = answers_of(target)
    assert len({(r.prompt_id, r.sample) for r in rows}) == len(rows) == 24
    assert len({r.completion for r in rows}) > 12  # the two samples differ
    shutil.rmtree(target.parent)
    for batches in (1, 4):
        command = warm.start(*evaluate)
        command.kill_when(lambda n=batches: batches_in(journal) >= n)  # type: ignore[misc]
    warm.run(*evaluate)
    assert target.read_bytes() == whole


# Replay -------------------------------------------------------------------------------------------


def lines_of(text: str, *names: str) -> list[list[str]]:
    """Return the figures of these rows of the printed table."""
    found = [line.split() for line in text.splitlines() if line.strip()]
    return [next(words[1:] for words in found if words[0] == name) for name in names]


def as_if_evaluated_elsewhere(paths: StudyPaths) -> None:
    """Let the evaluation's answers say that they were made with another torch."""
    plan = digest(load_plan(paths.plan))
    sets = [paths.base_answers(), paths.floor_answers]
    for target in [*sets, *(paths.answers(arm, 1) for arm in ("historical", "random"))]:
        protocol = protocol_of(target.answers)
        made = replace(protocol, versions={**protocol.versions, "torch": "1.0"})
        rows = [replace(row, protocol=digest(made)) for row in answers_of(target.answers)]
        for old in target.answers.parent.glob(f"{target.answers.stem}.*jsonl*"):
            old.unlink()
        target.protocol.write_bytes(encode_pretty(made))
        write_rows(RowFile(target.answers, "answer/1", plan, target.name, paths.broken), rows)


def test_a_replay_is_equal_to_the_byte_and_one_altered_byte_is_told(
    done: StudyPaths, warm: WarmLab
) -> None:
    text = warm.run("replay", done.root, "--cell", "base", "--cell", PILOT)
    rows = lines_of(text, "base", "historical/seed-1", "all")
    assert [row[:3] for row in rows] == [["12", "12", "100.00"]] * 2 + [["24", "24", "100.00"]]
    assert "No conclusion is drawn: arms/random/seed-1 not generated again." in text
    path = done.answers("historical", 1).answers
    path.write_bytes(path.read_bytes().replace(b'"completion":"', b'"completion":"~', 1))
    said = warm.run("replay", done.root, "--cell", "base", "--cell", PILOT, code=2)
    assert "answers.jsonl:1: expected the 4 rows of batch 0 as committed" in said
    mend_journal(path)
    text = warm.run("replay", done.root, "--cell", "base", "--cell", PILOT, code=1)
    rows = lines_of(text, "base", "historical/seed-1")
    assert [row[:3] for row in rows] == [["12", "12", "100.00"], ["12", "11", "91.66"]]
    assert f"found others in {PILOT}, under an equal protocol" in text
    assert "Traceback" not in text


def test_a_replay_on_another_machine_is_judged_by_its_conclusion_and_may_lie_elsewhere(
    done: StudyPaths, warm: WarmLab, tmp_path: Path
) -> None:
    warm.run("analyze", done.root)
    as_if_evaluated_elsewhere(done)
    before = sorted(done.root.rglob("*"))
    command = warm.start("replay", done.root, "--to", tmp_path / "here")
    again = tmp_path / "here" / "replay" / "arms/random/seed-1/answers.jsonl"
    command.kill_when(lambda: batches_in(journal_path(again)) >= 1)
    text = warm.run("replay", done.root, "--to", tmp_path / "here")
    assert sorted(done.root.rglob("*")) == before
    assert lines_of(text, "all")[0][:3] == ["36", "36", "100.00"]
    assert "versions.torch: " in text
    assert ", was 1.0" in text
    assert "The conclusion stands: all" in text
    record = json.loads((tmp_path / "here" / "analysis" / "replay.json").read_bytes())
    assert (record["n"], record["equal"], record["conclusion"]) == (36, 36, "stands")
    found = json.loads(warm.run("replay", done.root, "--to", tmp_path / "here", "--format", "json",
                                "--quiet"))  # fmt: skip
    assert found == record


def test_a_replay_that_could_not_be_compared_is_refused_before_it_generates(
    done: StudyPaths, trained: Trained, warm: WarmLab
) -> None:
    text = warm.run("replay", trained.paths.root, code=4)
    assert "answers of base to compare a replay with, found none" in text
    text = warm.run("replay", done.root, "--cell", "floor", code=2)
    assert "The noise floor is the base generated again already" in text
    text = warm.run("replay", done.root, "--to", trained.paths.root, code=2)
    assert "expected a folder for this replay alone, found a study" in text
    path = done.base_answers().protocol
    path.write_text(path.read_text("utf-8").replace('"scorer_version": "', '"scorer_version": "9'))
    text = warm.run("replay", done.root, "--cell", "base", "--quiet", code=2)
    assert "scorer_version: '9" in text
    assert "Replay with the ahalab" in text
    assert len(text.strip().splitlines()) == 1, text
    assert not (done.root / "replay").exists()


# Refusals -----------------------------------------------------------------------------------------


def refused(warm: WarmLab, root: Path, *more: object, code: int = 2) -> str:
    text = warm.run("evaluate", root, *more, code=code)
    assert len(text.strip().splitlines()) == 1, text
    return text


def edited_alpha(adapter: Path) -> None:
    path = adapter / "adapter_config.json"
    config = json.loads(path.read_bytes())
    config["lora_alpha"] *= 2
    path.write_text(json.dumps(config))


def flipped_byte(adapter: Path) -> None:
    path = adapter / "adapter_model.safetensors"
    content = bytearray(path.read_bytes())
    content[-2] ^= 1
    path.write_bytes(bytes(content))


def pickle_only(adapter: Path) -> None:
    (adapter / "adapter_model.safetensors").rename(adapter / "adapter_model.bin")


@pytest.mark.parametrize(
    ("fault", "named"),
    [
        (edited_alpha, "expected lora_alpha=32, as it was trained (run.json), found 64"),
        (flipped_byte, "expected adapter sha256"),
        (pickle_only, "adapter_model.bin"),
        (shutil.rmtree, "adapter"),
    ],
)
def test_an_adapter_that_training_did_not_leave_is_refused(
    study: Trained, warm: WarmLab, fault: Callable[[Path], None], named: str
) -> None:
    fault(study.run("historical").adapter)
    text = refused(warm, study.paths.root, "--cell", PILOT)
    assert named in text
    assert not study.paths.answers("historical", 1).answers.exists()


def test_adapters_of_two_arms_exchanged_are_refused(study: Trained, warm: WarmLab) -> None:
    one, two = (study.run(arm).adapter for arm in ("historical", "random"))
    one.rename(one.with_name("aside"))
    two.rename(one)
    one.with_name("aside").rename(two)
    assert "expected adapter sha256" in refused(warm, study.paths.root, "--cell", PILOT)


def test_an_arm_that_was_not_trained_is_missing(study: Trained, warm: WarmLab) -> None:
    study.run("historical").record.unlink()
    text = refused(warm, study.paths.root, "--cell", PILOT, code=5)
    assert "ahalab train" in text


def test_another_protocol_than_the_begun_one_is_refused_and_the_field_named(
    done: StudyPaths, warm: WarmLab
) -> None:
    path = done.base_answers().protocol
    path.write_text(path.read_text("utf-8").replace('"samples": 1', '"samples": 2'))
    assert "samples: 1 now, 2 there" in refused(warm, done.root, "--cell", "base")


def test_a_cell_that_the_plan_lacks_is_refused_with_the_names(
    done: StudyPaths, warm: WarmLab
) -> None:
    text = refused(warm, done.root, "--cell", "arms/nosuch/seed-1")
    assert PILOT in text
    assert "Traceback" not in text


def test_a_study_without_prompts_is_refused(tmp_path: Path, warm: WarmLab) -> None:
    plan = tmp_path / "study.yaml"
    plan.write_text(PLAN, encoding="utf-8")
    text = refused(warm, plan, "--out", tmp_path / "results")
    assert "prompts" in text


# Partial evaluation -------------------------------------------------------------------------------


def test_a_partial_evaluation_draws_by_seed_is_marked_and_leaves_the_study_alone(
    study: Trained, evaluated: StudyPaths, warm: WarmLab
) -> None:
    before = sorted(study.paths.root.rglob("*"))
    text = warm.run("evaluate", study.paths.root, "--limit", 5, "--cell", "base", "--cell", PILOT)
    assert sorted(study.paths.root.rglob("*")) == before
    assert "PARTIAL: 5 questions" in text
    partial = study.paths.partial(5)
    rows = answers_of(partial.base_answers().answers)
    order = [p.prompt_id for p in read_prompts(study.paths, "eval")]
    asked = [row.prompt_id for row in rows]
    assert len(set(asked)) == 5
    assert sorted(asked) != order[:5]
    assert protocol_of(partial.base_answers().answers).limit == 5
    whole = {r.prompt_id: r.completion for r in answers_of(evaluated.base_answers().answers)}
    assert {r.prompt_id: r.completion for r in rows} == {p: whole[p] for p in asked}
    share = 100 * sum(r.strict == "correct" for r in rows) / 5
    line = next(line for line in text.splitlines() if line.startswith("base"))
    assert line.split()[1:3] == ["5", f"{share:.1f}"]


@pytest.mark.parametrize("limit", [0, 12, -1])
def test_a_partial_evaluation_of_none_or_all_is_refused(
    evaluated: StudyPaths, warm: WarmLab, limit: int
) -> None:
    assert "--limit: expected 1 to 11" in refused(warm, evaluated.root, "--limit", limit)


def test_sides_that_share_batches_answer_as_apart_and_resume_to_the_byte(
    fresh: Callable[[str], Trained], evaluated: StudyPaths, warm: WarmLab
) -> None:
    study = fresh(PLAN.replace("replay: true", "cells_per_batch: 3"))
    out = study.paths.root.parent
    for arm in ("historical", "random"):
        warm.run("train", study.plan_file, "--out", out, "--arm", arm, "--seed", 1)
    cells = ("base", "arms/historical/seed-1", "arms/random/seed-1")
    targets = [
        study.paths.base_answers(),
        *(study.paths.answers(c.split("/")[1], 1) for c in cells[1:]),
    ]
    command = warm.start("evaluate", study.paths.root)
    command.kill_when(lambda: batches_in(journal_path(targets[2].answers)) >= 1)
    warm.run("evaluate", study.paths.root)
    resumed = [target.answers.read_bytes() for target in targets]
    for target in targets:
        for path in target.answers.parent.glob("answers.*"):
            path.unlink()
    warm.run("evaluate", study.paths.root)
    assert [target.answers.read_bytes() for target in targets] == resumed
    apart = [evaluated.base_answers(), *(evaluated.answers(c.split("/")[1], 1) for c in cells[1:])]
    for target, alone in zip(targets, apart, strict=True):
        texts = [
            [(r.prompt_id, r.completion) for r in answers_of(t.answers)] for t in (target, alone)
        ]
        assert texts[0] == texts[1]
    digests = tuple(protocol_of(t.answers).adapter_digest for t in targets)
    assert [protocol_of(t.answers).companions for t in targets] == [digests] * 3
